// Where items rank among a few marks: for each query, how many items lie at each of its marks and how many between two of them.
//
// Marks are the distances of the relevant items; between two of them order does not matter. A distance may be known up to a slack only:
// where a mark lies within it, the pair stays open, and its exact distance is to be added later.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mark_grid.hpp"
#include "workers.hpp"

namespace rankbits {

struct RankCounts {
    uint32_t* before;  // items beyond the mark in front of it and nearer than it
    uint32_t* at;      // few of which are not zero, so that most of their memory is never touched
};

template <class Number>  // float or double
struct RankBlock {
    const Number* distances;     // n for each query
    const double* slack;         // one for each query
    const uint8_t* is_left_out;  // pairs that are not counted
    uint8_t* is_open;            // whether the exact distance of a pair is still to be added
    size_t n;
};

class RankedTies {
public:
    // Query q has the marks from starts[q] to starts[q + 1], ascending; of equal ones the first counts. Marks and counts stay the caller's.
    RankedTies(const double* marks, const int64_t* starts, size_t n_queries, RankCounts counts)
        : starts_(starts, starts + n_queries + 1), counts_(counts), grid_(marks, starts, n_queries) {}

    size_t n_queries() const { return starts_.size() - 1; }

    // Adds items to every query; n_open says how many pairs are open. A slack of 0 leaves none open. False if stopped.
    template <class Number>
    bool add_block(const RankBlock<Number>& block, size_t* n_open, Workers& workers);

    // Adds single pairs with exact distances.
    void add_pairs(const int64_t* queries, const double* distances, size_t n);

private:
    template <class Number>
    struct Row;
    template <class Number>
    struct Scratch;

    template <bool IsExact, class Number>
    size_t add_part(const Row<Number>& row, Scratch<Number>& scratch);
    template <class Number>
    size_t add_by_cells(const Row<Number>& row);
    template <bool IsExact>
    size_t add_item(const MarkGrid::Query& query, const MarkGrid::Bucket& bucket, const RankCounts& counts, double distance, double slack,
                    uint8_t* is_open) const;
    RankCounts counts_of(size_t q) const { return {counts_.before + starts_[q], counts_.at + starts_[q]}; }

    std::vector<size_t> starts_;
    RankCounts counts_;
    MarkGrid grid_;
};

}  // namespace rankbits
