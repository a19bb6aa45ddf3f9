// Threads that can be stopped: the caller's thread is worker 0 and asks now and then whether to go on.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace rankbits {

class Workers {
public:
    // keep_going is called on the caller's thread about 20 times a second; once it says false, every worker stops at its next chance.
    Workers(size_t n, std::function<bool()> keep_going) : n_(n ? n : 1), keep_going_(std::move(keep_going)) {}

    size_t size() const { return n_; }

    // Runs body(worker) on every worker; false if it was stopped. What a worker throws is thrown here. A share whose thread cannot be
    // had runs on the caller's.
    template <class Body>
    bool run(Body body) {
        std::vector<std::thread> threads;
        const auto guarded = [&](size_t w) {
            try {
                body(w);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!error_) error_ = std::current_exception();
                stopped_ = true;
            }
        };
        running_ = n_ - 1;
        size_t started = 1;
        try {
            threads.reserve(n_);
            for (; started < n_; ++started) threads.emplace_back([&, w = started] { guarded(w), finish(1); });
        } catch (const std::system_error&) {
            finish(n_ - started);
        }
        guarded(0);
        for (size_t w = started; w < n_; ++w) guarded(w);
        wait();
        for (std::thread& thread : threads) thread.join();
        if (error_) std::rethrow_exception(error_);
        return !stopped_;
    }

    // To be asked by a worker between two pieces of work of some microseconds.
    bool stopped(size_t worker) {
        if (worker == 0) ask();
        return stopped_.load(std::memory_order_relaxed);
    }

private:
    void ask() {
        const auto now = std::chrono::steady_clock::now();
        if (stopped_ || now - asked_ < std::chrono::milliseconds(50)) return;
        asked_ = now;
        if (!keep_going_()) stopped_ = true;
    }

    void finish(size_t n) {
        const std::lock_guard<std::mutex> lock(mutex_);
        running_ -= n;
        if (running_ == 0) done_.notify_one();
    }

    // Until the other threads are through, still asking.
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!done_.wait_for(lock, std::chrono::milliseconds(50), [&] { return running_ == 0; })) {
            lock.unlock();
            ask();
            lock.lock();
        }
    }

    size_t n_, running_ = 0;
    std::function<bool()> keep_going_;
    std::atomic<bool> stopped_{false};
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
    std::condition_variable done_;
    std::exception_ptr error_;
};

}  // namespace rankbits
