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

class RankedTies {
public:
    // Query q has the marks from starts[q] to starts[q + 1], ascending, none twice.
    RankedTies(const double* marks, const int64_t* starts, size_t n_queries);

    size_t n_queries() const { return starts_.size() - 1; }
    size_t n_marks() const { return marks_.size(); }

    // Adds n items to every query, distances in rows. is_open[q][i] says whether the exact distance is still to be added; n_open says of
    // how many pairs. False if stopped.
    bool add_block(const double* distances, size_t n, const double* slack, uint8_t* is_open, size_t* n_open, Workers& workers);

    // Adds single pairs with exact distances, or takes them away again where `step` is -1.
    void add_pairs(const int64_t* queries, const double* distances, size_t n, int step);

    const uint32_t* before() const { return before_.data(); }  // items beyond the mark in front and nearer than this one
    const uint32_t* at() const { return at_.data(); }

private:
    // A query's marks lie in equal cells of distance, so that a place is found in a step or two.
    struct Grid {
        double first = 0.0, last = 0.0, cells_per_unit = 0.0;
        size_t n_cells = 0, start = 0;  // in cells_
    };

    size_t cell_of(const Grid& grid, double distance) const;
    size_t first_not_below(size_t q, double distance) const;

    std::vector<double> marks_;
    std::vector<size_t> starts_;
    std::vector<Grid> grids_;
    std::vector<uint32_t> cells_;  // number of the first mark in each cell, within its query, and behind the last cell
    std::vector<uint32_t> before_, at_;
};

}  // namespace rankbits
