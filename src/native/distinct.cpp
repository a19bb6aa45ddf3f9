#include "distinct.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "buffers.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t SAMPLE = 4096;
constexpr size_t FEW_PAIRS = size_t{1} << 23;   // below this, counting takes a few milliseconds: leave it alone
constexpr double COLD_HASH = 4.0;               // hashing a whole chunk misses the caches that a sample stays in

uint64_t hash_of(const uint8_t* code, size_t width, int32_t item_class) {
    uint64_t hash = static_cast<uint32_t>(item_class) * 0x9E3779B97F4A7C15ull;
    for (size_t at = 0; at < width; at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, code + at, width - at < 8 ? width - at : 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
        hash ^= hash >> 32;
    }
    return hash;
}

// The distinct ones among items step, 2 step, ...: open addressing over a table at most half full.
Distinct compress(const Codes& items, const int32_t* item_class, size_t step) {
    const size_t n = items.n / step;
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    std::vector<uint32_t> table(slots, UINT32_MAX);
    Distinct found;
    for (size_t k = 0; k < n; ++k) {
        const size_t i = k * step;
        const uint8_t* code = items.data + i * items.width;
        for (size_t slot = hash_of(code, items.width, item_class[i]);; ++slot) {
            uint32_t& entry = table[slot & (slots - 1)];
            if (entry == UINT32_MAX) {
                entry = static_cast<uint32_t>(found.items.size());
                found.items.push_back(static_cast<uint32_t>(i));
                found.weights.push_back(1);
                break;
            }
            const size_t other = found.items[entry];
            if (item_class[other] == item_class[i] && !std::memcmp(items.data + other * items.width, code, items.width)) {
                ++found.weights[entry];
                break;
            }
        }
    }
    return found;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Pairs of sampled items that share code and class tell how many distinct ones the whole chunk has, if drawn from a fixed pool.
double expected_distinct(const Distinct& sample, size_t n_sample, size_t n) {
    double sharing = 0;
    for (uint32_t weight : sample.weights) sharing += 0.5 * weight * (weight - 1.0);
    if (sharing == 0) return static_cast<double>(n);
    const double pool = 0.5 * static_cast<double>(n_sample) * (static_cast<double>(n_sample) - 1) / sharing;
    const double drawn = pool * -std::expm1(-static_cast<double>(n) / pool);
    const double seen = static_cast<double>(sample.items.size());  // unequal shares: there are at least as many as were seen
    return std::max(drawn, std::min(seen, static_cast<double>(n)));
}

// Seconds a pair takes, on the sample itself.
double seconds_a_pair(const Codes& items, const Codes& queries, size_t n_bins) {
    const size_t n = std::min(SAMPLE, items.n);
    auto block = zeroed<uint8_t>(kernels().block_bytes(n, items.width));
    auto joint = zeroed<uint32_t>(kernels().joint_cells(n_bins));
    auto rows = zeroed<uint32_t>(MAX_GROUP * n_bins);
    kernels().lay_out(items.data, nullptr, n, items.width, block.get());
    Group group{{}, std::min(kernels().group_size(n_bins), queries.n)};
    uint32_t* row[MAX_GROUP];
    for (size_t q = 0; q < group.n; ++q) {
        group.codes[q] = queries.data + q * queries.width;
        row[q] = rows.get() + q * n_bins;
    }
    const Range all{0, n};
    const auto start = std::chrono::steady_clock::now();
    kernels().count_group({block.get(), nullptr, n, items.width}, group, &all, 1, n_bins, {joint.get()}, row);
    return seconds_since(start) / static_cast<double>(group.n * n);
}

}  // namespace

Distinct compress_if_it_pays(const Codes& items, const int32_t* item_class, const Codes& queries, size_t n_bins) {
    if (items.n < 2 * SAMPLE || items.n * queries.n < FEW_PAIRS) return {};
    const size_t step = items.n / SAMPLE;
    const auto start = std::chrono::steady_clock::now();
    const Distinct sample = compress(items, item_class, step);
    const double hashing = COLD_HASH * seconds_since(start) / static_cast<double>(items.n / step) * static_cast<double>(items.n);
    const double n_saved = static_cast<double>(items.n) - expected_distinct(sample, items.n / step, items.n);
    const double saved = n_saved * static_cast<double>(queries.n) * seconds_a_pair(items, queries, n_bins);
    if (saved < 2 * hashing) return {};
    Distinct found = compress(items, item_class, 1);
    if (found.items.size() > items.n / 10 * 9) return {};
    return found;
}

}  // namespace rankbits
