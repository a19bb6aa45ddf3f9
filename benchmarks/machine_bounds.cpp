// What this machine can do at best, measured: the yardsticks of the benchmarks. machine_bounds.py compiles it and calls it.

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace {

constexpr int ROUNDS = 15;

// Units a second of the fastest of several rounds.
template <class Body>
double best_rate(double units, Body body) {
    double best = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        const auto start = std::chrono::steady_clock::now();
        body();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best = std::max(best, units / took.count());
    }
    return best;
}

template <class T>
void keep(T& value) {
    asm volatile("" : "+m"(value) : : "memory");
}

// One pass over n words, asking for memory AHEAD bytes early where that is not 0.
template <size_t AHEAD>
void read_all(const uint64_t* data, size_t n) {
    uint64_t sum[16] = {};
    for (size_t i = 0; i + 16 <= n; i += 16) {
        if (AHEAD) {
            __builtin_prefetch(data + i + AHEAD / 8);
            __builtin_prefetch(data + i + AHEAD / 8 + 8);
        }
        for (size_t j = 0; j < 16; ++j) sum[j] += data[i + j];
    }
    keep(sum);
}

}  // namespace

extern "C" {

// Counters of n_bins, or of n_bins squared, at random distances.
double increments_per_second(size_t n_bins, bool is_joint) {
    constexpr size_t N = 4096, REPEATS = 200;
    std::mt19937_64 random(1);
    std::binomial_distribution<int> distance(static_cast<int>(n_bins) - 1, 0.5);
    std::vector<uint32_t> counters(n_bins * n_bins);
    std::vector<uint16_t> index(N);
    for (auto& i : index) i = static_cast<uint16_t>(distance(random) + (is_joint ? static_cast<int>(n_bins) * distance(random) : 0));
    uint32_t* const table = counters.data();
    return best_rate(static_cast<double>(N * REPEATS), [&] {
        for (size_t repeat = 0; repeat < REPEATS; ++repeat) {
            for (size_t i = 0; i < N; i += 8) {
                for (size_t j = 0; j < 8; ++j) ++table[index[i + j]];
            }
            keep(table[0]);
        }
    });
}

// Pairs of 64 bits: load, xor, popcnt.
double popcounts_per_second() {
    constexpr size_t N = 1024, REPEATS = 800;
    std::mt19937_64 random(2);
    std::vector<uint64_t> items(N);
    for (auto& item : items) item = random();
    uint64_t total = 0, query = random();
    return best_rate(static_cast<double>(N * REPEATS), [&] {
        for (size_t repeat = 0; repeat < REPEATS; ++repeat) {
            for (size_t i = 0; i < N; ++i) total += static_cast<uint64_t>(std::popcount(items[i] ^ query));
            keep(total);
        }
    });
}

// Summing an array of this size, over and over; 0 if there is no memory for it.
double read_bytes_per_second(size_t bytes) {
    const size_t n = bytes / 8;
    const size_t repeats = n < (size_t{1} << 21) ? (size_t{1} << 21) / n : 1;
    const size_t page = size_t{1} << 21, size = (bytes + page) / page * page;
    const std::unique_ptr<uint64_t[], decltype(&std::free)> data(static_cast<uint64_t*>(std::aligned_alloc(page, size)), &std::free);
    if (!data) return 0;
#if defined(__linux__)
    madvise(data.get(), size, MADV_HUGEPAGE);  // as NumPy does for its large arrays
#endif
    std::fill_n(data.get(), n, uint64_t{1});
    const auto rate = [&](auto read) {
        return best_rate(static_cast<double>(n * 8 * repeats), [&] {
            for (size_t repeat = 0; repeat < repeats; ++repeat) read(data.get(), n);
        });
    };
    return std::max({rate(read_all<0>), rate(read_all<1024>), rate(read_all<4096>)});
}

}  // extern "C"
