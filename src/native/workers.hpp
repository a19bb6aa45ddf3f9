// Threads that can be stopped: the caller's thread is worker 0 and asks now and then whether to go on.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace rankbits {

class Workers {
public:
    // keep_going is called by worker 0 about 20 times a second; once it says false, every worker stops at its next chance.
    Workers(size_t n, std::function<bool()> keep_going) : n_(n ? n : 1), keep_going_(std::move(keep_going)) {}

    size_t size() const { return n_; }

    // Runs body(worker) on every worker; false if it was stopped.
    template <class Body>
    bool run(Body body) {
        std::vector<std::thread> others;
        for (size_t w = 1; w < n_; ++w) others.emplace_back([&body, w] { body(w); });
        body(0);
        for (std::thread& other : others) other.join();
        return !stopped_;
    }

    // To be asked by a worker between two pieces of work of some microseconds.
    bool stopped(size_t worker) {
        if (worker == 0) {
            const auto now = std::chrono::steady_clock::now();
            if (now - asked_ > std::chrono::milliseconds(50)) {
                asked_ = now;
                if (!keep_going_()) stopped_ = true;
            }
        }
        return stopped_.load(std::memory_order_relaxed);
    }

private:
    size_t n_;
    std::function<bool()> keep_going_;
    std::atomic<bool> stopped_{false};
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

}  // namespace rankbits
