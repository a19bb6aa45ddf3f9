// Threads that can be stopped: the caller's thread is worker 0 and asks now and then whether to go on. The others come from a pool of
// threads that stay, since starting one takes as long as a short search.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rankbits {

// Shares of one call, which the caller and its helpers take one after the other. A thread that comes late finds none left, so that
// nobody waits for a thread that is not running yet, and a call always ends, even if it gets no helper at all.
class Shares {
public:
    Shares(size_t n, std::function<void(size_t)> body) : n_(n), body_(std::move(body)) {}

    void take_all() {
        for (size_t share; (share = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) body_(share);
    }

    // A helper is through; nothing of this may be touched by it afterwards.
    void finish() {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++n_finished_;
        done_.notify_one();
    }

    // Until n helpers are through; calls meanwhile() about 20 times a second.
    template <class Meanwhile>
    void wait(size_t n, Meanwhile meanwhile) {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!done_.wait_for(lock, std::chrono::milliseconds(50), [&] { return n_finished_ == n; })) {
            lock.unlock();
            meanwhile();
            lock.lock();
        }
    }

private:
    const size_t n_;
    const std::function<void(size_t)> body_;
    std::atomic<size_t> next_{0};
    std::mutex mutex_;
    std::condition_variable done_;
    size_t n_finished_ = 0;
};

class Helper;  // a thread of the pool

// Helpers that were idle, or have been started, and now know of the shares: n at most, fewer if threads cannot be had.
std::vector<Helper*> borrow_helpers(size_t n, Shares& shares);

// Takes shares away from helpers that have not begun; returns how many have, whose finish() is to be waited for.
size_t recall_helpers(const std::vector<Helper*>& helpers, Shares& shares);

class Workers {
public:
    // keep_going is called on the caller's thread about 20 times a second; once it says false, every worker stops at its next chance.
    Workers(size_t n, std::function<bool()> keep_going) : n_(n ? n : 1), keep_going_(std::move(keep_going)) {}

    size_t size() const { return n_; }

    // Runs body(worker) once for every worker, on any thread; false if it was stopped. What a worker throws is thrown here.
    template <class Body>
    bool run(Body body) {
        Shares shares(n_, [&](size_t w) {
            try {
                body(w);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!error_) error_ = std::current_exception();
                stopped_ = true;
            }
        });
        const std::vector<Helper*> helpers = n_ > 1 ? borrow_helpers(n_ - 1, shares) : std::vector<Helper*>();
        shares.take_all();
        if (!helpers.empty()) shares.wait(recall_helpers(helpers, shares), [&] { ask(); });
        if (error_) std::rethrow_exception(error_);
        return !stopped_;
    }

    // To be asked by a worker between two pieces of work of some microseconds.
    bool stopped(size_t) {
        if (std::this_thread::get_id() == caller_) ask();
        return stopped_.load(std::memory_order_relaxed);
    }

private:
    void ask() {
        const auto now = std::chrono::steady_clock::now();
        if (stopped_ || now - asked_ < std::chrono::milliseconds(50)) return;
        asked_ = now;
        if (!keep_going_()) stopped_ = true;
    }

    size_t n_;
    std::function<bool()> keep_going_;
    std::atomic<bool> stopped_{false};
    const std::thread::id caller_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace rankbits
