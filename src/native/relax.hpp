// Relaxed AP and NDCG of soft counts, and their gradients, one query a row. Equations and notation: docs/math.md.
#pragma once
#include <cstddef>
#include <cstdint>

#include "soft_histogram.hpp"
#include "workers.hpp"

namespace rankbits {

enum class Form { exact, simplified, cvpr, arxiv };

// Where the papers' printed forms divide by a count or take its logarithm, the count is at least this; 1 / (c - 1) is
// (c - 1) / ((c - 1)^2 + GUARD^2).
constexpr double GUARD = 0.1;

// The values of the queries, one a row of soft counts, and their gradients.
template <class T>
struct Relaxed {
    size_t n_queries, n_centres, n_levels;
    T* values;  // one a query, NaN where nothing is relevant
    T* grads;   // of the value by the counts (n_queries, n_centres, n_levels), zero where it is NaN; or null
};

// relevance of the levels, from 0 to 1: the chance that an item is relevant. A query that expects less than one relevant item counts
// by what it expects. False if stopped.
template <class T>
bool relaxed_ap(const SoftRows& rows, const Relaxed<T>& out, Form form, const double* relevance, Workers& workers);

// sums[r] = the first r discounts together, r < n: up to the longest list.
struct DiscountSums {
    const double* sums;
    size_t n;
};

// gains of the levels, gains[0] = 0.
template <class T>
bool relaxed_ndcg(const SoftRows& rows, const Relaxed<T>& out, Form form, const double* gains, const DiscountSums& discount_sums,
                  Workers& workers);

}  // namespace rankbits
