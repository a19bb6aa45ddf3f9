// Affinity of any kind, level by level; tags as bit rows; and the plain loops over all pairs.
#include <algorithm>
#include <bit>
#include <vector>

#include "buffers.hpp"
#include "count.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

// Lays the chunk out block by block and calls body(worker, query, first item, block, table) for each query of the worker's share.
// The table is added to the query's counts and cleared behind it.
template <class Prepare, class Body>
bool each_block(const Codes& queries, const Codes& items, const Counts& counts, Workers& workers, Prepare prepare, Body body) {
    const size_t n_block = std::min(items_a_block(items.width), items.n), cells = counts.n_bins * counts.n_levels;
    return workers.run([&](size_t w) {
        auto block = zeroed<uint8_t>(kernels().block_bytes(n_block, items.width));
        auto table = zeroed<uint32_t>(cells);
        for (size_t first = 0; first < items.n; first += n_block) {
            const Items laid{block.get(), nullptr, std::min(n_block, items.n - first), items.width};
            kernels().lay_out(items.data + first * items.width, nullptr, laid.n, items.width, block.get());
            auto prepared = prepare(first, laid.n);
            for (size_t q = w * queries.n / workers.size(); q < (w + 1) * queries.n / workers.size(); ++q) {
                if (workers.stopped(w)) return;
                body(q, first, laid, prepared, table.get());
                int64_t* const row = counts.data + q * cells;
                for (size_t i = 0; i < cells; ++i) row[i] += table[i];
                std::memset(table.get(), 0, cells * sizeof(uint32_t));
            }
        }
    });
}

// Bit i of row t: whether item first + i has tag t. Rows are zero up to a multiple of 256 items.
struct TagRows {
    std::vector<uint8_t> bits;
    size_t stride;

    TagRows(const uint8_t* rows, size_t n_tags, size_t first, size_t n) : stride((n + 255) / 256 * 32) {
        bits.assign(n_tags * stride, 0);
        for (size_t i = 0; i < n; ++i) {
            const uint8_t* row = rows + (first + i) * n_tags;
            for (size_t t = 0; t < n_tags; ++t) {
                if (row[t]) bits[t * stride + i / 8] = static_cast<uint8_t>(bits[t * stride + i / 8] | 1u << (i % 8));
            }
        }
    }
};

}  // namespace

bool count_levels(const Codes& queries, const Codes& items, const void* levels, bool is_wide, const Counts& counts, Workers& workers) {
    const size_t bytes = is_wide ? 2 : 1;
    return each_block(
        queries, items, counts, workers, [](size_t, size_t) { return 0; },
        [&](size_t q, size_t first, const Items& block, int, uint32_t* table) {
            const auto* row = static_cast<const uint8_t*>(levels) + (q * items.n + first) * bytes;
            kernels().count_levels(block, queries.data + q * queries.width, row, is_wide, counts.n_levels, counts.n_bins, table);
        });
}

bool count_tags(const Codes& queries, const Codes& items, const int64_t* starts, const int32_t* tags, const uint8_t* rows, size_t n_tags,
                const Counts& counts, Workers& workers) {
    return each_block(
        queries, items, counts, workers, [&](size_t first, size_t n) { return TagRows(rows, n_tags, first, n); },
        [&](size_t q, size_t, const Items& block, const TagRows& of, uint32_t* table) {
            thread_local std::vector<const uint8_t*> mine;
            mine.clear();
            for (int64_t k = starts[q]; k < starts[q + 1]; ++k) mine.push_back(of.bits.data() + static_cast<size_t>(tags[k]) * of.stride);
            kernels().count_tags(block, queries.data + q * queries.width, mine.data(), mine.size(), counts.n_levels, counts.n_bins, table);
        });
}

namespace {

size_t distance(const uint8_t* a, const uint8_t* b, size_t width) {
    size_t sum = 0, at = 0;
    for (; at + 8 <= width; at += 8) {
        uint64_t x, y;
        std::memcpy(&x, a + at, 8);
        std::memcpy(&y, b + at, 8);
        sum += static_cast<size_t>(std::popcount(x ^ y));
    }
    for (; at < width; ++at) sum += static_cast<size_t>(std::popcount(static_cast<unsigned>(a[at] ^ b[at])));
    return sum;
}

template <class Body>
bool each_pair(const Codes& queries, const Codes& items, Workers& workers, Body body) {
    constexpr size_t PIECE = 1 << 14;
    return workers.run([&](size_t w) {
        for (size_t q = w * queries.n / workers.size(); q < (w + 1) * queries.n / workers.size(); ++q) {
            for (size_t first = 0; first < items.n; first += PIECE) {
                if (workers.stopped(w)) return;
                for (size_t i = first; i < std::min(first + PIECE, items.n); ++i) {
                    body(q, i, distance(queries.data + q * queries.width, items.data + i * items.width, items.width));
                }
            }
        }
    });
}

}  // namespace

bool largest_counts(const Codes& queries, const Codes& codes, const int64_t* n_items, int64_t* largest, size_t n_bins, Workers& workers) {
    return each_pair(queries, codes, workers, [&](size_t q, size_t i, size_t d) {
        int64_t& most = largest[q * n_bins + d];
        most = std::max(most, n_items[i]);
    });
}

bool all_distances(const Codes& queries, const Codes& items, uint16_t* distances, Workers& workers) {
    return each_pair(queries, items, workers,
                     [&](size_t q, size_t i, size_t d) { distances[q * items.n + i] = static_cast<uint16_t>(d); });
}

}  // namespace rankbits
