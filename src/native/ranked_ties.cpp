#include "ranked_ties.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rankbits {
namespace {

constexpr size_t AHEAD = 32;           // items whose memory is asked for together
constexpr size_t FEW_MARKS = 1 << 10;  // up to which a query can have more cells
constexpr size_t FINE_CELLS = 1 << 12;  // of a row that is counted by cells: their counts stay in the nearest cache
constexpr size_t MARKS_BY_CELLS = 1 << 8, LEAST_ITEMS_BY_CELLS = 1 << 12;

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
template <bool IsExact, class Number>
size_t RankedTies::add_row(size_t q, const Number* row, size_t n, double slack, uint8_t* is_open) {
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

// One item whose cell has a mark within the slack; returns whether it is open.
size_t RankedTies::add_near_a_mark(size_t q, double distance, double slack, uint8_t* is_open) {
    const size_t n_own = starts_[q + 1] - starts_[q];
    const double *own = marks_ + starts_[q], low = distance - slack, high = distance + slack;
    if (low > own[n_own - 1]) return 0;
    const size_t mark = first_not_below(q, cell_of(grids_[q], low), low);
    if (high < own[mark]) {
        ++counts_[starts_[q] + mark].before;
        return 0;
    }
    *is_open = 1;  // also where the distance is not a number
    return 1;
}

// Of cells that hold all marks of a query, with two more on either side.
double RankedTies::cell_width(size_t q) const {
    return (marks_[starts_[q + 1] - 1] - marks_[starts_[q]]) / (FINE_CELLS - 4);
}

bool RankedTies::is_counted_by_cells(size_t q, double slack) const {
    const size_t n_own = starts_[q + 1] - starts_[q];
    if (n_own < 2 || n_own > MARKS_BY_CELLS) return false;
    const double width = cell_width(q), largest = std::max(std::fabs(marks_[starts_[q]]), std::fabs(marks_[starts_[q + 1] - 1]));
    return largest < 1e30 && width > 1e-30 && width > 1e-5 * largest && slack < 0.75 * width;  // floats can tell cells apart
}

// Few marks leave most of many equal cells without one: items are counted by cell, which takes one look at a table, and only those of a
// cell with a mark within the slack, which are few, are compared with it. The first cell holds all
// items far in front of the marks, the last all that lie far behind.
template <class Number>
size_t RankedTies::add_row_by_cells(size_t q, const Number* row, size_t n, double slack, uint8_t* is_open) {
    const size_t n_own = starts_[q + 1] - starts_[q];
    const double* own = marks_ + starts_[q];
    const double width = cell_width(q), first = own[0] - 2 * width;
    const auto scale = static_cast<Number>(1.0 / width), shift = static_cast<Number>(first);
    // A rounded place in cells is off by less than this; so is the slack in cells.
    const double reach = slack / width + FINE_CELLS * 8.0 * std::numeric_limits<Number>::epsilon() * (1.0 + std::fabs(first) / (width * FINE_CELLS));
    uint32_t in_cell[FINE_CELLS] = {};
    uint8_t has_mark[FINE_CELLS] = {};
    for (size_t i = 0; i < n_own; ++i) {
        const double place = (own[i] - first) / width;
        const double low = std::max(place - reach, 0.0), high = std::min(place + reach, FINE_CELLS - 1.0);
        for (auto c = static_cast<size_t>(low); c <= static_cast<size_t>(high); ++c) has_mark[c] = 1;
    }
    size_t n_open = 0;
    for (size_t start = 0; start < n; start += AHEAD) {
        size_t items[AHEAD], n_near = 0;
        for (size_t i = start; i < std::min(start + AHEAD, n); ++i) {
            const Number place = (row[i] - shift) * scale;
            const Number inside = std::min(place > Number{0} ? place : Number{0}, static_cast<Number>(FINE_CELLS - 1));
            const auto cell = static_cast<size_t>(static_cast<int32_t>(inside));
            items[n_near] = i;
            const bool is_near = has_mark[cell] | !(place == place);
            n_near += is_near;
            in_cell[cell] += !is_near;
        }
        for (size_t j = 0; j < n_near; ++j) n_open += add_near_a_mark(q, row[items[j]], slack, is_open + items[j]);
    }
    for (size_t c = 0, mark = 0; c < FINE_CELLS; ++c) {  // all marks before a cell lie before its items
        while (mark < n_own && (own[mark] - first) / width < static_cast<double>(c)) ++mark;
        if (mark == n_own) break;
        if (in_cell[c] == 0) continue;
        const size_t equal = static_cast<size_t>(std::lower_bound(own, own + mark, own[mark]) - own);  // of equal marks the first counts
        counts_[starts_[q] + equal].before += in_cell[c];
    }
    return n_open;
}

template <class Number>
bool RankedTies::add_block(const Number* distances, size_t n, const double* slack, uint8_t* is_open, size_t* n_open, Workers& workers) {
    std::atomic<size_t> next{0}, total{0};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t q; (q = next++) < n_queries();) {  // each query owns its counts: threads split on q, no race
            if (workers.stopped(w)) return;
            const Number* row = distances + q * n;
            uint8_t* open_row = is_open + q * n;
            std::fill_n(open_row, n, uint8_t{0});
            if (slack[q] == 0.0) {
                total += add_row<true>(q, row, n, 0.0, nullptr);
            } else if (n >= LEAST_ITEMS_BY_CELLS && is_counted_by_cells(q, slack[q])) {
                total += add_row_by_cells(q, row, n, slack[q], open_row);
            } else {
                total += add_row<false>(q, row, n, slack[q], open_row);
            }
        }
    });
    *n_open = total;
    return is_finished;
}

template bool RankedTies::add_block(const float*, size_t, const double*, uint8_t*, size_t*, Workers&);
template bool RankedTies::add_block(const double*, size_t, const double*, uint8_t*, size_t*, Workers&);

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
