// Where items rank among a few marks: for each query, how many items lie at each of its marks and how many between two of them.
//
// Marks are the distances of the relevant items; between two of them order does not matter. A distance may be known up to a slack only:
// where a mark lies within it, the pair stays open, and its exact distance is to be added later.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "workers.hpp"

namespace rankbits {

struct RankCounts {
    uint32_t before;  // items beyond the mark in front of it and nearer than it
    uint32_t at;
};

class RankedTies {
public:
    // Query q has the marks from starts[q] to starts[q + 1], ascending; of equal ones the first counts. Marks and counts stay the caller's.
    RankedTies(const double* marks, const int64_t* starts, size_t n_queries, RankCounts* counts);

    size_t n_queries() const { return starts_.size() - 1; }

    // Adds n items to every query, distances in rows. is_open[q][i] says whether the exact distance is still to be added; n_open says of
    // how many pairs. A slack of 0 leaves none open. False if stopped.
    template <class Number>  // float or double
    bool add_block(const Number* distances, size_t n, const double* slack, uint8_t* is_open, size_t* n_open, Workers& workers);

    // Adds single pairs with exact distances.
    void add_pairs(const int64_t* queries, const double* distances, size_t n);

private:
    // A query's marks lie in equal cells of distance, so that a place is found in a step or two.
    struct Grid {
        double first = 0.0, last = 0.0, cells_per_unit = 0.0;
        size_t n_cells = 0, start = 0;  // in cells_
    };

    size_t cell_of(const Grid& grid, double distance) const;  // in cells_
    size_t first_not_below(size_t q, size_t cell, double distance) const;
    template <bool IsExact, class Number>
    size_t add_row(size_t q, const Number* row, size_t n, double slack, uint8_t* is_open);
    template <class Number>
    size_t add_row_by_cells(size_t q, const Number* row, size_t n, double slack, uint8_t* is_open);
    double cell_width(size_t q) const;
    bool is_counted_by_cells(size_t q, double slack) const;
    size_t add_near_a_mark(size_t q, double distance, double slack, uint8_t* is_open);

    const double* marks_;
    RankCounts* counts_;
    std::vector<size_t> starts_;
    std::vector<Grid> grids_;
    std::vector<uint32_t> cells_;  // number of the first mark in each cell, within its query, and behind the last cell
};

}  // namespace rankbits
