#include "ranked_ties.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankbits {
namespace {

constexpr size_t PART = 1 << 16;  // items of a row that are taken together
constexpr size_t AHEAD = 32;
constexpr size_t FINE_CELLS = 1 << 12;  // of a row that is counted by cells: their counts stay in the nearest cache
constexpr size_t MARKS_BY_CELLS = 1 << 8, LEAST_ITEMS_BY_CELLS = 1 << 12;

// Of cells that hold all marks of a query, with two more on either side.
double cell_width(const MarkGrid::Query& query) { return (query.last - query.marks[0]) / (FINE_CELLS - 4); }

bool is_counted_by_cells(const MarkGrid::Query& query, double slack) {
    if (query.n_marks < 2 || query.n_marks > MARKS_BY_CELLS) return false;
    const double width = cell_width(query), largest = std::max(std::fabs(query.marks[0]), std::fabs(query.last));
    return largest < 1e30 && width > 1e-30 && width > 1e-5 * largest && slack < 0.75 * width;  // floats can tell cells apart
}

// The cell of a place in cells: the first or the last for one that lies beyond, the first for what is no number.
size_t cell_at(double place) { return place > 0.0 ? static_cast<size_t>(std::min(place, FINE_CELLS - 1.0)) : 0; }

}  // namespace

template <class Number>
struct RankedTies::Row {  // items of one query
    size_t q;
    const Number* distances;
    double slack;
    const uint8_t* is_left_out;
    uint8_t* is_open;
    size_t n;
};

template <class Number>
struct RankedTies::Scratch {  // of a thread: items in the order of their buckets
    explicit Scratch(size_t n) : buckets(n), items(n), distances(n) {}

    std::vector<uint16_t> buckets;
    std::vector<uint32_t> items;
    std::vector<Number> distances;
};

// One item that is not beyond the last mark, and whose nearest distance lies in the bucket; returns whether it is open.
template <bool IsExact>
inline size_t RankedTies::add_item(const MarkGrid::Query& query, const MarkGrid::Bucket& bucket, const RankCounts& counts, double distance,
                                   double slack, uint8_t* is_open) const {
    const size_t mark = grid_.first_not_below(query, bucket, distance - slack);
    if (IsExact) {
        const bool is_at = distance == query.marks[mark];
        ++(is_at ? counts.at : counts.before)[mark];
    } else if (distance + slack < query.marks[mark]) {
        ++counts.before[mark];
    } else {  // also where the distance is not a number
        *is_open = 1;
        return 1;
    }
    return 0;
}

// Items are brought into the order of their buckets first, which is quick, so that the marks, cells and counts of one bucket stay in the
// nearest cache while its items are placed: all of a query with many marks are larger than that.
template <bool IsExact, class Number>
size_t RankedTies::add_part(const Row<Number>& row, Scratch<Number>& scratch) {
    const MarkGrid::Query query = grid_.query(row.q);
    const RankCounts counts = counts_of(row.q);
    const auto left_out = static_cast<uint32_t>(query.n_buckets);
    uint16_t* bucket_of = scratch.buckets.data();
    for (size_t i = 0; i < row.n; ++i) {
        const double low = row.distances[i] - row.slack;
        const uint32_t bucket = MarkGrid::bucket_of(query, low);
        bucket_of[i] = static_cast<uint16_t>((row.is_left_out[i] != 0) | (low > query.last) ? left_out : bucket);
    }
    uint32_t ends[MarkGrid::MOST_BUCKETS + 2] = {};  // first the starts, which become ends as items are put into their places
    for (size_t i = 0; i < row.n; ++i) ++ends[bucket_of[i] + 1];
    for (size_t b = 0; b < query.n_buckets; ++b) ends[b + 1] += ends[b];
    Number* distances = scratch.distances.data();
    uint32_t* items = scratch.items.data();
    for (size_t i = 0; i < row.n; ++i) {
        const uint32_t place = ends[bucket_of[i]]++;
        distances[place] = row.distances[i];
        items[place] = static_cast<uint32_t>(i);
    }
    size_t n_open = 0, i = 0;
    for (size_t b = 0; b < query.n_buckets; ++b) {
        const MarkGrid::Bucket bucket = grid_.buckets(query)[b];
        for (; i < ends[b]; ++i) {
            n_open += add_item<IsExact>(query, bucket, counts, distances[i], row.slack, row.is_open + items[i]);
        }
    }
    return n_open;
}

// Few marks leave most of many equal cells without one: items are counted by cell, which takes one look at a table, and only those of a
// cell with a mark within the slack, which are few, are compared with it. The first cell holds all
// items far in front of the marks, the last all that lie far behind.
template <class Number>
size_t RankedTies::add_by_cells(const Row<Number>& row) {
    const MarkGrid::Query query = grid_.query(row.q);
    const RankCounts counts = counts_of(row.q);
    const double* own = query.marks;
    const double width = cell_width(query), first = own[0] - 2 * width;
    const auto scale = static_cast<Number>(1.0 / width), shift = static_cast<Number>(first);
    // A rounded place in cells is off by less than this; so is the slack in cells.
    const double reach =
        row.slack / width + FINE_CELLS * 8.0 * std::numeric_limits<Number>::epsilon() * (1.0 + std::fabs(first) / (width * FINE_CELLS));
    uint32_t in_cell[FINE_CELLS] = {};
    uint8_t has_mark[FINE_CELLS] = {};
    for (size_t i = 0; i < query.n_marks; ++i) {
        const double place = (own[i] - first) / width;
        for (size_t c = cell_at(place - reach), last = cell_at(place + reach); c <= last; ++c) has_mark[c] = 1;
    }
    size_t n_open = 0;
    for (size_t start = 0; start < row.n; start += AHEAD) {
        size_t items[AHEAD], n_near = 0;
        for (size_t i = start; i < std::min(start + AHEAD, row.n); ++i) {
            const Number place = (row.distances[i] - shift) * scale;
            const Number inside = std::min(place > Number{0} ? place : Number{0}, static_cast<Number>(FINE_CELLS - 1));
            const auto cell = static_cast<size_t>(static_cast<int32_t>(inside));
            const bool is_counted = row.is_left_out[i] == 0, is_near = has_mark[cell] | !(place == place);
            items[n_near] = i;
            n_near += is_near & is_counted;
            in_cell[cell] += !is_near & is_counted;
        }
        for (size_t j = 0; j < n_near; ++j) {
            const double distance = row.distances[items[j]], low = distance - row.slack;
            if (low > query.last) continue;
            const MarkGrid::Bucket& bucket = grid_.buckets(query)[MarkGrid::bucket_of(query, low)];
            n_open += add_item<false>(query, bucket, counts, distance, row.slack, row.is_open + items[j]);
        }
    }
    for (size_t c = 0, mark = 0; c < FINE_CELLS; ++c) {  // all marks before a cell lie before its items
        while (mark < query.n_marks && (own[mark] - first) / width < static_cast<double>(c)) ++mark;
        if (mark == query.n_marks) break;
        if (in_cell[c] == 0) continue;
        const auto equal = static_cast<size_t>(std::lower_bound(own, own + mark, own[mark]) - own);  // of equal marks the first counts
        counts.before[equal] += in_cell[c];
    }
    return n_open;
}

template <class Number>
bool RankedTies::add_block(const RankBlock<Number>& block, size_t* n_open, Workers& workers) {
    std::atomic<size_t> next{0}, total{0};
    const size_t n = block.n;
    const bool is_finished = workers.run([&](size_t w) {
        Scratch<Number> scratch(std::min(PART, n));
        for (size_t q; (q = next++) < n_queries();) {  // each query owns its counts: threads split on q, no race
            if (workers.stopped(w)) return;
            std::fill_n(block.is_open + q * n, n, uint8_t{0});
            const MarkGrid::Query& query = grid_.query(q);
            if (query.n_marks == 0) continue;
            const Row<Number> row{q, block.distances + q * n, block.slack[q], block.is_left_out + q * n, block.is_open + q * n, n};
            if (row.slack != 0.0 && n >= LEAST_ITEMS_BY_CELLS && is_counted_by_cells(query, row.slack)) {
                total += add_by_cells(row);
                continue;
            }
            for (size_t first = 0; first < n; first += PART) {
                const size_t n_here = std::min(PART, n - first);
                const Row<Number> part{q, row.distances + first, row.slack, row.is_left_out + first, row.is_open + first, n_here};
                total += row.slack == 0.0 ? add_part<true>(part, scratch) : add_part<false>(part, scratch);
            }
        }
    });
    *n_open = total;
    return is_finished;
}

template bool RankedTies::add_block(const RankBlock<float>&, size_t*, Workers&);
template bool RankedTies::add_block(const RankBlock<double>&, size_t*, Workers&);

void RankedTies::add_pairs(const int64_t* queries, const double* distances, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const auto q = static_cast<size_t>(queries[i]);
        const MarkGrid::Query& query = grid_.query(q);
        if (query.n_marks == 0 || distances[i] > query.last) continue;
        const MarkGrid::Bucket& bucket = grid_.buckets(query)[MarkGrid::bucket_of(query, distances[i])];
        add_item<true>(query, bucket, counts_of(q), distances[i], 0.0, nullptr);
    }
}

}  // namespace rankbits
