#include "ranked_ties.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rankbits {

RankedTies::RankedTies(const double* marks, const int64_t* starts, size_t n_queries)
    : marks_(marks, marks + starts[n_queries]),
      starts_(starts, starts + n_queries + 1),
      grids_(n_queries),
      before_(marks_.size()),
      at_(marks_.size()) {
    for (size_t q = 0; q < n_queries; ++q) {
        const size_t n = starts_[q + 1] - starts_[q];
        if (n == 0) continue;
        Grid& grid = grids_[q];
        const double* own = marks_.data() + starts_[q];
        grid = {own[0], own[n - 1], 0.0, std::bit_ceil(n), cells_.size()};
        const double scale = static_cast<double>(grid.n_cells) / (grid.last - grid.first);
        if (std::isfinite(scale)) grid.cells_per_unit = scale;  // else all marks share a cell
        cells_.resize(grid.start + grid.n_cells + 1, static_cast<uint32_t>(n));
        for (size_t i = n; i-- > 0;) cells_[grid.start + cell_of(grid, own[i])] = static_cast<uint32_t>(i);
        for (size_t c = grid.n_cells; c-- > 0;) {  // an empty cell begins where the next one does
            uint32_t& first = cells_[grid.start + c];
            first = std::min(first, cells_[grid.start + c + 1]);
        }
    }
}

size_t RankedTies::cell_of(const Grid& grid, double distance) const {
    const double cell = (distance - grid.first) * grid.cells_per_unit;
    if (!(cell > 0.0)) return 0;
    return cell >= static_cast<double>(grid.n_cells - 1) ? grid.n_cells - 1 : static_cast<size_t>(cell);
}

size_t RankedTies::first_not_below(size_t q, double distance) const {
    const Grid& grid = grids_[q];
    const size_t cell = grid.start + cell_of(grid, distance);
    const double* own = marks_.data() + starts_[q];
    return static_cast<size_t>(std::lower_bound(own + cells_[cell], own + cells_[cell + 1], distance) - own);
}

bool RankedTies::add_block(const double* distances, size_t n, const double* slack, uint8_t* is_open, size_t* n_open, Workers& workers) {
    std::atomic<size_t> next{0}, total{0};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t q; (q = next++) < n_queries();) {  // each query owns its counts: threads split on q, no race
            if (workers.stopped(w)) return;
            const size_t n_own = starts_[q + 1] - starts_[q];
            const double *row = distances + q * n, *own = marks_.data() + starts_[q];
            uint8_t* open = is_open + q * n;
            std::fill_n(open, n, uint8_t{0});
            if (n_own == 0) continue;
            size_t n_here = 0;
            for (size_t i = 0; i < n; ++i) {
                const double low = row[i] - slack[q], high = row[i] + slack[q];
                if (low > own[n_own - 1]) continue;  // beyond the last mark
                const size_t mark = first_not_below(q, low);
                if (high < own[mark]) {
                    ++before_[starts_[q] + mark];
                } else if (low == high) {
                    ++at_[starts_[q] + mark];
                } else {  // also where the distance is not a number
                    open[i] = 1;
                    ++n_here;
                }
            }
            total += n_here;
        }
    });
    *n_open = total;
    return is_finished;
}

void RankedTies::add_pairs(const int64_t* queries, const double* distances, size_t n, int step) {
    for (size_t i = 0; i < n; ++i) {
        const auto q = static_cast<size_t>(queries[i]);
        const size_t n_own = starts_[q + 1] - starts_[q];
        if (n_own == 0 || distances[i] > marks_[starts_[q] + n_own - 1]) continue;
        const size_t mark = starts_[q] + first_not_below(q, distances[i]);
        (distances[i] < marks_[mark] ? before_ : at_)[mark] += static_cast<uint32_t>(step);
    }
}

}  // namespace rankbits
