// The soft histogram pair by pair, where the tiles do not apply: double precision, soft bins wider or narrower than their spacing, and
// more than 255 bins.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>

#include "soft.hpp"
#include "workers.hpp"

namespace rankbits {

template <class T>
T distance_in_bins(const Pairs<T>& pairs, size_t i, size_t j) {
    const T *a = pairs.queries + i * pairs.n_bits, *b = pairs.items + j * pairs.n_bits;
    T sums[4] = {};
    size_t k = 0;
    for (; k + 4 <= pairs.n_bits; k += 4)
        for (size_t l = 0; l < 4; ++l) sums[l] += a[k + l] * b[k + l];
    for (; k < pairs.n_bits; ++k) sums[0] += a[k] * b[k];
    const T product = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const T z = (T(pairs.n_bits) - product) * (T(pairs.n_bins) / T(2 * pairs.n_bits));
    return z > T(0) ? std::min(z, T(pairs.n_bins)) : T(0);  // 0 also where it is no number
}

template <class T>
bool is_counted(const Pairs<T>& pairs, size_t i, size_t j) {
    return pairs.is_square ? i != j : !pairs.own || pairs.own[i] != int64_t(j);
}

// The level of item j for query i as the caller gave it.
template <class T>
int64_t level_of(const Pairs<T>& pairs, size_t i, size_t j) {
    return with_levels(pairs.levels, [&](auto* levels) { return int64_t(levels[i * pairs.n_items + j]); });
}

template <class T>
size_t clamp_level(const Pairs<T>& pairs, int64_t level) {
    return std::min(size_t(level), pairs.n_levels - 1);
}

// Runs body(bin, weight, slope of the weight) for the bins that z touches; at a centre the slope is that to the right, at the last
// one that to the left.
template <class T, class Body>
void for_bins(const Pairs<T>& pairs, T z, Body body) {
    const T delta = T(pairs.delta), top = T(pairs.n_bins);
    const int64_t first = std::max<int64_t>(0, int64_t(std::floor(z - delta)));
    const int64_t last = std::min<int64_t>(pairs.n_bins, int64_t(std::ceil(z + delta)));
    for (int64_t d = first; d <= last; ++d) {
        const T away = z - T(d);
        const bool falls = away >= 0 && !(z == top && away == 0);
        if (falls ? away > delta || (away == delta && z != top) : -away > delta) continue;
        body(size_t(d), T(1) - std::abs(away) / delta, (falls ? T(-1) : T(1)) / delta);
    }
}

// Soft counts and hard counts of each level; has_negative is set where a level is below 0. False if stopped.
template <class T>
bool count_pairs(const Pairs<T>& pairs, T* counts, int64_t* level_counts, bool& has_negative, Workers& workers) {
    const size_t stride = pairs.counts_a_row();
    std::atomic<bool> is_negative{false};
    const bool finished = workers.run([&](size_t w) {
        for (size_t i = w; i < pairs.n_queries && !workers.stopped(w); i += workers.size()) {
            T* row = counts + i * stride;
            int64_t* of_level = level_counts + i * pairs.n_levels;
            std::fill_n(row, stride, T(0));
            std::fill_n(of_level, pairs.n_levels, 0);
            for (size_t j = 0; j < pairs.n_items; ++j) {
                const int64_t given = level_of(pairs, i, j);
                if (given < 0) is_negative.store(true, std::memory_order_relaxed);
                if (!is_counted(pairs, i, j)) continue;
                const size_t level = clamp_level(pairs, given);
                ++of_level[level];
                for_bins(pairs, distance_in_bins(pairs, i, j), [&](size_t bin, T weight, T) { row[bin * pairs.n_levels + level] += weight; });
            }
        }
    });
    has_negative = is_negative;
    return finished;
}

// A gradient of the counts, each query's times its weight; weights are null for 1.
template <class T>
struct CountGradient {
    const T* by_counts;
    const T* weights;
};

// The gradient of pair (i, j)'s distance from query i's counts.
template <class T>
T step_of(const Pairs<T>& pairs, size_t i, size_t j, T z, const CountGradient<T>& gradient) {
    const T* grad = gradient.by_counts + i * pairs.counts_a_row() + clamp_level(pairs, level_of(pairs, i, j));
    T step = 0;
    for_bins(pairs, z, [&](size_t bin, T, T slope) { step += slope * grad[bin * pairs.n_levels]; });
    return gradient.weights ? gradient.weights[i] * step : step;
}

// out[i] = -scale * sum over j of step(i, j) * others[j], for i < n; each row has one worker, so threads do not change the sum.
template <class T, class Step>
bool pull_rows(size_t n, const T* others, size_t n_others, size_t n_bits, T scale, T* out, Workers& workers, Step step) {
    return workers.run([&](size_t w) {
        for (size_t i = w; i < n && !workers.stopped(w); i += workers.size()) {
            T* row = out + i * n_bits;
            std::fill_n(row, n_bits, T(0));
            for (size_t j = 0; j < n_others; ++j) {
                const T by = -scale * step(i, j);
                for (size_t k = 0; k < n_bits; ++k) row[k] += by * others[j * n_bits + k];
            }
        }
    });
}

template <class T>
bool pull_pairs(const Pairs<T>& pairs, const CountGradient<T>& gradient, T* grad_queries, T* grad_items, Workers& workers) {
    const T scale = T(pairs.n_bins) / T(2 * pairs.n_bits);
    const auto one_way = [&](size_t i, size_t j) {
        return is_counted(pairs, i, j) ? step_of(pairs, i, j, distance_in_bins(pairs, i, j), gradient) : T(0);
    };
    const auto both_ways = [&](size_t i, size_t j) {
        if (i == j) return T(0);
        const T z = distance_in_bins(pairs, std::min(i, j), std::max(i, j));
        return step_of(pairs, i, j, z, gradient) + step_of(pairs, j, i, z, gradient);
    };
    if (pairs.is_square)
        return pull_rows(pairs.n_queries, pairs.items, pairs.n_items, pairs.n_bits, scale, grad_queries, workers, both_ways);
    if (!pull_rows(pairs.n_queries, pairs.items, pairs.n_items, pairs.n_bits, scale, grad_queries, workers, one_way)) return false;
    return !grad_items || pull_rows(pairs.n_items, pairs.queries, pairs.n_queries, pairs.n_bits, scale, grad_items, workers,
                                    [&](size_t j, size_t i) { return one_way(i, j); });
}

}  // namespace rankbits
