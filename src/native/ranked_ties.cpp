#include "ranked_ties.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rankbits {
namespace {

constexpr size_t AHEAD = 32;           // items whose memory is asked for together
constexpr size_t FEW_MARKS = 1 << 10;  // up to which a query can have more cells

}  // namespace

inline size_t RankedTies::cell_of(const Grid& grid, double distance) const {
    const double cell = (distance - grid.first) * grid.cells_per_unit;
    const double inside = std::min(cell > 0.0 ? cell : 0.0, static_cast<double>(grid.n_cells - 1));
    return grid.start + static_cast<size_t>(static_cast<int64_t>(inside));
}

RankedTies::RankedTies(const double* marks, const int64_t* starts, size_t n_queries, RankCounts* counts)
    : marks_(marks), counts_(counts), starts_(starts, starts + n_queries + 1), grids_(n_queries) {
    for (size_t q = 0; q < n_queries; ++q) {
        const size_t n = starts_[q + 1] - starts_[q];
        if (n == 0) continue;
        Grid& grid = grids_[q];
        const double* own = marks_ + starts_[q];
        grid = {own[0], own[n - 1], 0.0, std::bit_ceil((n < FEW_MARKS ? 4 : 2) * n), cells_.size()};
        const double scale = static_cast<double>(grid.n_cells) / (grid.last - grid.first);
        if (std::isfinite(scale)) grid.cells_per_unit = scale;  // else all marks share a cell
        cells_.resize(grid.start + grid.n_cells + 1, static_cast<uint32_t>(n));
        for (size_t i = n; i-- > 0;) cells_[cell_of(grid, own[i])] = static_cast<uint32_t>(i);
        for (size_t c = grid.n_cells; c-- > 0;) {  // an empty cell begins where the next one does
            uint32_t& first = cells_[grid.start + c];
            first = std::min(first, cells_[grid.start + c + 1]);
        }
    }
}

// The first mark that is not nearer, given the distance's cell; two steps without a branch are enough for most, since most cells have one
// mark or none.
inline size_t RankedTies::first_not_below(size_t q, size_t cell, double distance) const {
    const double* own = marks_ + starts_[q];
    size_t mark = cells_[cell];
    const size_t end = cells_[cell + 1], last = starts_[q + 1] - starts_[q] - 1;
    mark += (mark < end) & (own[std::min(mark, last)] < distance);
    mark += (mark < end) & (own[std::min(mark, last)] < distance);
    if (mark < end && own[mark] < distance) mark = static_cast<size_t>(std::lower_bound(own + mark, own + end, distance) - own);
    return mark;
}

// A few items at a time, in three steps, each of which asks for the memory that the next one reads: the tables of a query with many marks are
// larger than the nearer caches.
template <bool IsExact>
size_t RankedTies::add_row(size_t q, const double* row, size_t n, double slack, uint8_t* is_open) {
    const size_t n_own = starts_[q + 1] - starts_[q];
    if (n_own == 0) return 0;
    const double *own = marks_ + starts_[q], last = own[n_own - 1];
    RankCounts* counts = counts_ + starts_[q];
    size_t n_open = 0;
    for (size_t first = 0; first < n; first += AHEAD) {
        size_t items[AHEAD], cells[AHEAD], n_here = 0;
        for (size_t i = first; i < std::min(first + AHEAD, n); ++i) {
            cells[n_here] = cell_of(grids_[q], row[i] - slack);
            __builtin_prefetch(&cells_[cells[n_here]]);
            items[n_here] = i;
            n_here += !(row[i] - slack > last);  // beyond the last mark nothing is counted
        }
        for (size_t j = 0; j < n_here; ++j) {
            const size_t mark = cells_[cells[j]];
            __builtin_prefetch(own + mark);
            __builtin_prefetch(counts + mark, 1);
        }
        for (size_t j = 0; j < n_here; ++j) {
            const double low = row[items[j]] - slack, high = row[items[j]] + slack;
            const size_t mark = first_not_below(q, cells[j], low);
            if (IsExact) {
                const bool is_at = low == own[mark];
                counts[mark].at += is_at;
                counts[mark].before += !is_at;
            } else if (high < own[mark]) {
                ++counts[mark].before;
            } else {  // also where the distance is not a number
                is_open[items[j]] = 1;
                ++n_open;
            }
        }
    }
    return n_open;
}

bool RankedTies::add_block(const double* distances, size_t n, const double* slack, uint8_t* is_open, size_t* n_open, Workers& workers) {
    std::atomic<size_t> next{0}, total{0};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t q; (q = next++) < n_queries();) {  // each query owns its counts: threads split on q, no race
            if (workers.stopped(w)) return;
            const double* row = distances + q * n;
            std::fill_n(is_open + q * n, n, uint8_t{0});
            total += slack[q] == 0.0 ? add_row<true>(q, row, n, 0.0, nullptr) : add_row<false>(q, row, n, slack[q], is_open + q * n);
        }
    });
    *n_open = total;
    return is_finished;
}

void RankedTies::add_pairs(const int64_t* queries, const double* distances, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const auto q = static_cast<size_t>(queries[i]);
        const size_t n_own = starts_[q + 1] - starts_[q];
        if (n_own == 0 || distances[i] > marks_[starts_[q] + n_own - 1]) continue;
        const size_t mark = starts_[q] + first_not_below(q, cell_of(grids_[q], distances[i]), distances[i]);
        ++(distances[i] == marks_[mark] ? counts_[mark].at : counts_[mark].before);
    }
}

}  // namespace rankbits
