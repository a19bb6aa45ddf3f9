// The soft tie histogram of a set of pairs, and the gradient of their codes from a gradient of its counts.
#pragma once
#include <vector>

#include "buffers.hpp"
#include "soft.hpp"
#include "workers.hpp"

namespace rankbits {

// Soft counts that can be read query by query, whatever they are stored as.
class SoftRows {
public:
    virtual ~SoftRows() = default;
    // counts (n_bins + 1, n_levels) and the hard count of each level; the ties among them that matter.
    virtual Span read(size_t query, double* counts, int64_t* level_counts) const = 0;
};

// Ties with items, and one more on either side: a pair may stand between the two.
Span span_of(const double* counts, size_t n_ties, size_t n_levels);

template <class T>
class SoftHistogram : public SoftRows {
public:
    // The arrays behind the pairs must outlive this. Only a histogram that keeps cells can be pulled.
    SoftHistogram(const Pairs<T>& pairs, bool keeps_cells) : pairs_(pairs), keeps_cells_(keeps_cells) {}

    const Pairs<T>& pairs() const { return pairs_; }
    bool has_negative_level() const { return has_negative_level_; }

    bool count(Workers& workers);  // once, before anything else; false if stopped

    Span read(size_t query, double* counts, int64_t* level_counts) const override;

    // Gradients of the codes from a gradient of the counts, each query's times its weight; weights are null for 1. grad_items is null
    // where it is not needed, and not read in a square problem. False if stopped.
    bool pull(const T* grad_counts, const T* weights, T* grad_queries, T* grad_items, Workers& workers) const;

private:
    bool is_tiled() const;
    bool count_tiles(Workers& workers);
    bool pull_tiles(const T* grad_counts, const T* weights, T* grad_queries, T* grad_items, Workers& workers) const;

    Pairs<T> pairs_;
    bool keeps_cells_;
    bool has_negative_level_ = false;
    Buffer<uint64_t> packed_;     // of tiles
    Buffer<uint8_t> cells_;
    Buffer<T> counts_;            // of pairs one by one
    Buffer<int64_t> level_counts_;
};

}  // namespace rankbits
