// The pool of threads. They belong to the process: neither they nor their memory are ever given back, so that nothing can be pulled away
// from under a thread when the interpreter ends, and a thread that sleeps at the end of the process does no harm.
#include "workers.hpp"

#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace rankbits {
namespace {

constexpr size_t MAX_HELPERS = 256;                       // a call that wants more has its shares done by these
constexpr auto SPIN = std::chrono::microseconds(20);      // looking for the next call before falling asleep: what waking would take

void pause() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

class Helper {
public:
    // On the caller's thread. The helper must be idle.
    void give(Shares& shares) {
        shares_.store(&shares);
        if (!is_asleep_.load()) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        awake_.notify_one();
    }

    // True if the helper had not begun, and now never will.
    bool take_back(Shares& shares) {
        Shares* expected = &shares;
        return shares_.compare_exchange_strong(expected, nullptr);
    }

    template <class Idle>
    [[noreturn]] void work(Idle idle) {
        for (;;) {
            wait();
            if (Shares* shares = shares_.exchange(nullptr)) {
                shares->take_all();
                shares->finish();
                idle();
            }
        }
    }

private:
    // Until there are shares, which may be taken back again before they are looked at.
    void wait() {
        const auto until = std::chrono::steady_clock::now() + SPIN;
        while (std::chrono::steady_clock::now() < until) {
            for (size_t i = 0; i < 16; ++i) {
                if (shares_.load(std::memory_order_relaxed)) return;
                pause();
            }
        }
        // Whoever gives shares first stores them, then looks whether this is asleep; here it is the other way round, so that one sees
        // the other.
        std::unique_lock<std::mutex> lock(mutex_);
        is_asleep_ = true;
        awake_.wait(lock, [&] { return shares_.load() != nullptr; });
        is_asleep_ = false;
    }

    std::atomic<Shares*> shares_{nullptr};
    std::atomic<bool> is_asleep_{false};
    std::mutex mutex_;
    std::condition_variable awake_;
};

namespace {

class Pool {
public:
    std::vector<Helper*> borrow(size_t n, Shares& shares) {
        std::vector<Helper*> helpers;
        helpers.reserve(n < MAX_HELPERS ? n : MAX_HELPERS);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (helpers.size() < n && (!idle_.empty() || start())) {
                helpers.push_back(idle_.back());
                idle_.pop_back();
            }
        }
        for (Helper* helper : helpers) helper->give(shares);
        return helpers;
    }

    void put_back(Helper* helper) {
        const std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(helper);
    }

private:
    // One more idle helper; false if it cannot be had. idle_ has room for all, so that putting one back never throws.
    bool start() {
        if (n_started_ == MAX_HELPERS) return false;
        try {
            idle_.reserve(MAX_HELPERS);
            auto* helper = new Helper;
            try {
                std::thread([this, helper] { helper->work([&] { put_back(helper); }); }).detach();
            } catch (...) {
                delete helper;
                throw;
            }
            idle_.push_back(helper);
        } catch (const std::exception&) {
            return false;
        }
        ++n_started_;
        return true;
    }

    std::mutex mutex_;
    std::vector<Helper*> idle_;  // the one that worked last is the last: its caches are warm
    size_t n_started_ = 0;
};

std::atomic<Pool*> current{nullptr};

// A process that was forked has none of the threads, and perhaps a lock that nobody will ever open: it begins anew.
void forget_threads() { current = nullptr; }

Pool& pool() {
    Pool* there = current.load();
    if (there) return *there;
#if defined(__unix__) || defined(__APPLE__)
    static const int registered = pthread_atfork(nullptr, nullptr, forget_threads);
    static_cast<void>(registered);
#endif
    auto* fresh = new Pool;
    if (current.compare_exchange_strong(there, fresh)) return *fresh;
    delete fresh;
    return *there;
}

}  // namespace

std::vector<Helper*> borrow_helpers(size_t n, Shares& shares) { return pool().borrow(n, shares); }

size_t recall_helpers(const std::vector<Helper*>& helpers, Shares& shares) {
    size_t n_begun = 0;
    for (Helper* helper : helpers) {
        if (helper->take_back(shares)) {
            pool().put_back(helper);
        } else {
            ++n_begun;
        }
    }
    return n_begun;
}

}  // namespace rankbits
