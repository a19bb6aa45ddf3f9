#include "faults.hpp"

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

// What the signal handler reads is atomic; all else is read under the mutex.
struct Watch {
    std::atomic<uintptr_t> start{0};  // 0: not in use
    std::atomic<size_t> n_bytes{0};
    std::atomic<bool> is_lost{false};
    int file = -1;
    Signature signature;
    int number = 0;
    Watch* next = nullptr;  // set before the watch is published, never changed: watches are used again, not freed
};

std::atomic<Watch*> first_watch{nullptr};
std::mutex mutex;
std::deque<Watch>& watches() {
    static auto* all = new std::deque<Watch>;  // never destroyed: a fault may come at exit too
    return *all;
}
std::vector<int>& free_numbers() {
    static auto* numbers = new std::vector<int>;
    return *numbers;
}

struct sigaction previous;
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

// Only what is safe in a signal handler: no allocation, no lock. The whole mapping becomes zeros at once, lest each page of a large
// one be a fault and a mapping of its own.
bool replace_lost(uintptr_t address) {
    bool is_replaced = false;
    for (Watch* watch = first_watch.load(std::memory_order_acquire); watch; watch = watch->next) {
        const uintptr_t start = watch->start.load(std::memory_order_acquire);
        const size_t n_bytes = (watch->n_bytes.load(std::memory_order_relaxed) + PAGE - 1) / PAGE * PAGE;
        if (start == 0 || address < start || address >= start + n_bytes) continue;
        watch->is_lost.store(true, std::memory_order_release);
        if (is_replaced) continue;
        void* zeros = mmap(reinterpret_cast<void*>(start), n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
        is_replaced = zeros != MAP_FAILED;
    }
    return is_replaced;
}

// Whoever was there before gets a fault that is not ours; if it comes back from there, the process ends as it would without handlers.
void pass_on(int signal_number, siginfo_t* info, void* context) {
    static std::atomic<bool> is_passed_on{false};
    const bool is_function = (previous.sa_flags & SA_SIGINFO) || (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
    if (!is_function || is_passed_on.exchange(true)) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);  // delivered when the handler returns
    } else if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(signal_number, info, context);
    } else {
        previous.sa_handler(signal_number);
    }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
    const bool is_sent = info->si_code <= 0;  // by a process, not by a page
    if (is_sent || !replace_lost(reinterpret_cast<uintptr_t>(info->si_addr))) pass_on(signal_number, info, context);
}

// Others install handlers too, such as faulthandler, so this one is looked for before each use.
void require_handler() {
    struct sigaction current;
    if (sigaction(SIGBUS, nullptr, &current) != 0 || ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_fault)) return;
    const std::lock_guard held(mutex);
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    previous = current;
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
    watch->n_bytes = n_bytes;
    watch->start.store(reinterpret_cast<uintptr_t>(start), std::memory_order_release);
    return watch->number;
}

FileChange look_at_mapping(int number) {
    require_handler();
    const std::lock_guard held(mutex);
    const Watch& watch = watches().at(number);
    if (watch.is_lost.load(std::memory_order_acquire)) return FileChange::cut;
    Signature now;
    if (!read_signature(watch.file, now)) return FileChange::none;
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
    watch.start.store(0, std::memory_order_release);
    if (watch.file >= 0) close(watch.file);
    watch.file = -1;
    free_numbers().push_back(number);
}

}  // namespace rankbits
