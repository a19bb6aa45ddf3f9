// Places of distances among a query's marks, found in a step or two.
//
// Equal buckets hold most of a query's marks, the first and the last one also those beyond; each bucket has equal cells of its own, twice
// as many as its marks, so that cells are small where marks are dense. A bucket's marks and cells fit into the nearest cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace rankbits {

class MarkGrid {
public:
    static constexpr size_t MOST_BUCKETS = 1 << 12;

    struct Bucket {
        double first, cells_per_unit, last_cell;
        size_t cell;    // its first in cells_
        uint32_t mark;  // the first that is not in a bucket before this one
    };

    struct Query {
        const double* marks;  // ascending
        size_t n_marks;
        double first, buckets_per_unit, last;  // the last mark
        size_t n_buckets, bucket;              // the first of its buckets
    };

    // Query q has the marks from starts[q] to starts[q + 1]; they stay the caller's.
    MarkGrid(const double* marks, const int64_t* starts, size_t n_queries) {
        cells_.reserve(CELLS_A_MARK * static_cast<size_t>(starts[n_queries]) + MOST_BUCKETS);
        for (size_t q = 0; q < n_queries; ++q) add_query(marks + starts[q], static_cast<size_t>(starts[q + 1] - starts[q]));
    }

    const Query& query(size_t q) const { return queries_[q]; }
    const Bucket* buckets(const Query& query) const { return buckets_.data() + query.bucket; }

    // Ascends with the distance; what is not a number goes into the first.
    static uint32_t bucket_of(const Query& query, double distance) {
        return place((distance - query.first) * query.buckets_per_unit, static_cast<double>(query.n_buckets) - 1.0);
    }

    // The first mark that is not nearer, for a distance of this bucket that is not beyond the last mark. The two steps have no branch.
    size_t first_not_below(const Query& query, const Bucket& bucket, double distance) const {
        size_t mark = bucket.mark + cells_[bucket.cell + cell_of(bucket, distance)];
        mark += query.marks[mark] < distance;
        mark += query.marks[mark] < distance;
        if (query.marks[mark] < distance) [[unlikely]] {
            mark = static_cast<size_t>(std::lower_bound(query.marks + mark, query.marks + query.n_marks, distance) - query.marks);
        }
        return mark;
    }

    size_t first_not_below(const Query& query, double distance) const {
        return first_not_below(query, buckets(query)[bucket_of(query, distance)], distance);
    }

private:
    static constexpr size_t MARKS_A_BUCKET = 32, CELLS_A_MARK = 2;
    static constexpr size_t TAIL = 64;  // so that outliers do not matter: a 64th of the marks may lie beyond the buckets on each side

    static uint32_t place(double at, double last) {
        at = at > 0.0 ? at : 0.0;
        return static_cast<uint32_t>(static_cast<int32_t>(at < last ? at : last));
    }

    static uint32_t cell_of(const Bucket& bucket, double distance) {
        return place((distance - bucket.first) * bucket.cells_per_unit, bucket.last_cell);
    }

    static double per_unit(size_t n, double first, double last) {
        const double scale = static_cast<double>(n) / (last - first);
        return std::isfinite(scale) ? scale : 0.0;  // then all share one
    }

    void add_query(const double* marks, size_t n) {
        Query query{marks, n, 0.0, 0.0, 0.0, std::clamp<size_t>(n / MARKS_A_BUCKET, 1, MOST_BUCKETS), buckets_.size()};
        if (n > 0) {
            query.first = marks[n / TAIL];
            query.last = marks[n - 1];
            query.buckets_per_unit = per_unit(query.n_buckets, query.first, marks[n - 1 - n / TAIL]);
        }
        size_t first = 0;
        for (size_t mark = 0, b = 0; mark < n; ++mark) {
            for (const size_t own = bucket_of(query, marks[mark]); b < own; ++b) {
                add_bucket(marks, first, mark);
                first = mark;
            }
        }
        while (buckets_.size() < query.bucket + query.n_buckets) {
            add_bucket(marks, first, n);
            first = n;
        }
        queries_.push_back(query);
    }

    void add_bucket(const double* marks, size_t first, size_t end) {
        const size_t n = end - first, is_counted = n > 0 && n <= std::numeric_limits<uint16_t>::max();
        const size_t n_cells = is_counted ? CELLS_A_MARK * n : 1;
        Bucket bucket{0.0, 0.0, static_cast<double>(n_cells - 1), cells_.size(), static_cast<uint32_t>(first)};
        if (is_counted) {
            bucket.first = marks[first];
            bucket.cells_per_unit = per_unit(n_cells, marks[first], marks[end - 1]);
        }
        cells_.resize(bucket.cell + n_cells);
        uint16_t* cells = cells_.data() + bucket.cell;
        for (size_t mark = first; is_counted && mark < end; ++mark) ++cells[cell_of(bucket, marks[mark])];
        for (size_t c = 0, n_before = 0; c < n_cells; ++c) n_before += std::exchange(cells[c], static_cast<uint16_t>(n_before));
        buckets_.push_back(bucket);
    }

    std::vector<Query> queries_;
    std::vector<Bucket> buckets_;
    std::vector<uint16_t> cells_;  // number of the first mark in each cell, within its bucket
};

}  // namespace rankbits
