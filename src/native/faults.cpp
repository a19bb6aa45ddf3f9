#include "faults.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace rankbits {
namespace {

constexpr int64_t YOUNG_NS = 20'000'000;  // the clock of a file system ticks every 4 to 10 ms

struct Signature {
    int64_t size = 0, written_ns = 0;
    bool is_young = false;  // another write may bear the same time
};

// What the signal handler reads is atomic; all else is read under the mutex. Place and size belong together only if the version was the same
// even number before and after they were read.
struct Watch {
    std::atomic<uint64_t> version{0};
    std::atomic<uintptr_t> start{0};  // 0: not in use
    std::atomic<size_t> n_bytes{0};
    std::atomic<bool> is_lost{false};
    int file = -1;
    Signature signature;
    int number = 0;
    Watch* next = nullptr;  // set before the watch is published, never changed: watches are used again, not freed
};

std::atomic<Watch*> first_watch{nullptr};
std::mutex mutex;  // taken with the GIL only, which a process that forks holds: so a child never finds it locked
std::deque<Watch>& watches() {
    static auto* all = new std::deque<Watch>;  // never destroyed: a fault may come at exit too
    return *all;
}
std::vector<int>& free_numbers() {
    static auto* numbers = new std::vector<int>;
    return *numbers;
}

std::atomic<const struct sigaction*> previous{nullptr};  // never freed: a handler may be about to read it
std::atomic<bool> is_passed_on{false};                      // whether it was called since a mapping was last looked at
const uintptr_t PAGE = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool read_signature(int file, Signature& signature) {
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) return false;
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
#ifdef __APPLE__
    const timespec written = status.st_mtimespec;
#else
    const timespec written = status.st_mtim;
#endif
    signature = {status.st_size, nanoseconds(written), false};
    signature.is_young = nanoseconds(now) - signature.written_ns < YOUNG_NS;
    return true;
}

void place(Watch& watch, uintptr_t start, size_t n_bytes) {
    watch.version.fetch_add(1, std::memory_order_acq_rel);
    watch.start.store(start, std::memory_order_release);
    watch.n_bytes.store(n_bytes, std::memory_order_release);
    watch.version.fetch_add(1, std::memory_order_release);
}

// Whether an address lies in the pages of a watch, and where these are. A watch that changes meanwhile is none that is in use.
bool covers(const Watch& watch, uintptr_t address, uintptr_t& start, size_t& n_bytes) {
    const uint64_t version = watch.version.load(std::memory_order_acquire);
    start = watch.start.load(std::memory_order_acquire);
    n_bytes = (watch.n_bytes.load(std::memory_order_acquire) + PAGE - 1) / PAGE * PAGE;
    return version % 2 == 0 && watch.version.load(std::memory_order_acquire) == version && start != 0 && address >= start &&
           address - start < n_bytes;
}

// Only what is safe in a signal handler: no allocation, no lock. The whole mapping becomes zeros at once, lest each page of a large
// one be a fault and a mapping of its own.
bool replace_lost(uintptr_t address) {
    bool is_replaced = false;
    for (Watch* watch = first_watch.load(std::memory_order_acquire); watch; watch = watch->next) {
        uintptr_t start;
        size_t n_bytes;
        if (!covers(*watch, address, start, n_bytes)) continue;
        watch->is_lost.store(true, std::memory_order_release);
        if (is_replaced) continue;
        void* zeros = mmap(reinterpret_cast<void*>(start), n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
        is_replaced = zeros != MAP_FAILED;
    }
    return is_replaced;
}

void end_process(int signal_number) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);  // delivered when the handler returns
}

// Whoever was there before gets what is not ours. If it raises the signal once more, as faulthandler does, or leaves the fault as it is, the
// process ends as it would without handlers.
void pass_on(int signal_number, siginfo_t* info, void* context, bool is_sent) {
    const struct sigaction* other = previous.load(std::memory_order_acquire);
    const bool has_info = other != nullptr && (other->sa_flags & SA_SIGINFO);
    if (is_sent && other != nullptr && !has_info && other->sa_handler == SIG_IGN) return;
    const bool is_function = other != nullptr && (has_info || (other->sa_handler != SIG_DFL && other->sa_handler != SIG_IGN));
#ifdef SI_TKILL
    const bool is_raised = info->si_code == SI_TKILL && info->si_pid == getpid();
#else
    const bool is_raised = is_sent && info->si_pid == getpid();
#endif
    const bool was_passed_on = is_passed_on.exchange(true) && (!is_sent || is_raised);
    if (!is_function || was_passed_on) {
        end_process(signal_number);
    } else if (has_info) {
        other->sa_sigaction(signal_number, info, context);
    } else {
        other->sa_handler(signal_number);
    }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
    const int error = errno;
    const bool is_sent = info->si_code <= 0;  // by a process, not by a page
    if (is_sent || !replace_lost(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(signal_number, info, context, is_sent);
    errno = error;
}

bool is_ours(const struct sigaction& action) { return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_fault; }

// Others install handlers too, such as faulthandler, so this one is looked for before each use.
void require_handler() {
    is_passed_on = false;
    const std::lock_guard held(mutex);
    struct sigaction current;
    if (sigaction(SIGBUS, nullptr, &current) != 0 || is_ours(current)) return;
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    const struct sigaction* known = previous.load();
    if (known == nullptr || known->sa_flags != current.sa_flags || known->sa_sigaction != current.sa_sigaction) {
        previous.store(new struct sigaction(current), std::memory_order_release);
    }
    sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

int watch_mapping(const void* start, size_t n_bytes, int file) {
    require_handler();
    const std::lock_guard held(mutex);
    Watch* watch;
    if (free_numbers().empty()) {
        watch = &watches().emplace_back();
        watch->number = static_cast<int>(watches().size()) - 1;
        watch->next = first_watch.load();
        first_watch.store(watch, std::memory_order_release);
    } else {
        watch = &watches()[free_numbers().back()];
        free_numbers().pop_back();
    }
    watch->file = file;
    watch->signature = {};
    read_signature(file, watch->signature);
    watch->is_lost = false;
    place(*watch, reinterpret_cast<uintptr_t>(start), n_bytes);
    return watch->number;
}

FileChange look_at_mapping(int number) {
    require_handler();
    const std::lock_guard held(mutex);
    const Watch& watch = watches().at(number);
    if (watch.is_lost.load(std::memory_order_acquire)) return FileChange::cut;
    Signature now;
    if (watch.file < 0) return FileChange::none;
    if (!read_signature(watch.file, now)) return FileChange::failed;
    if (now.size < static_cast<int64_t>(watch.n_bytes)) return FileChange::cut;
    if (now.size != watch.signature.size || now.written_ns != watch.signature.written_ns) return FileChange::written;
    return watch.signature.is_young ? FileChange::unknown : FileChange::none;
}

void accept_mapping(int number) {
    const std::lock_guard held(mutex);
    Signature& signature = watches().at(number).signature;
    Signature now;
    if (!read_signature(watches().at(number).file, now)) return;
    if (now.size == signature.size && now.written_ns == signature.written_ns) signature = now;
}

void release_mapping(int number) {
    const std::lock_guard held(mutex);
    Watch& watch = watches().at(number);
    place(watch, 0, 0);
    if (watch.file >= 0) close(watch.file);
    watch.file = -1;
    free_numbers().push_back(number);
}

}  // namespace rankbits
