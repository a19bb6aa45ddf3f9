// Affinity of any kind, level by level; tags as bit rows; and the plain loops over all pairs.
#include <algorithm>
#include <bit>
#include <vector>

#include "buffers.hpp"
#include "count.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

// Lays the chunk out block by block and calls body(queries, block, first item, prepared, tables) for the worker's share of the
// queries, two at a time; a lone last query comes twice, and its second table is dropped. Tables are added to the counts and cleared.
template <class Prepare, class Body>
bool each_block(const Codes& queries, const Codes& items, const Counts& counts, Workers& workers, Prepare prepare, Body body) {
    const size_t n_block = items_a_block(items.width, items.n), row_cells = counts.n_bins * counts.n_levels;
    const size_t cells = bins_of_bytes(items.width) * counts.n_levels;
    const size_t n_pairs = (queries.n + 1) / 2;
    return workers.run([&](size_t w) {
        const auto block = zeroed<uint8_t>(kernels().block_bytes(n_block, items.width));
        const auto room = zeroed<uint32_t>(2 * (cells + 16));
        uint32_t* const tables[2] = {room.get(), room.get() + cells + 16};
        for (size_t first = 0; first < items.n; first += n_block) {
            const Items laid{block.get(), nullptr, std::min(n_block, items.n - first), items.width};
            kernels().lay_out(items.data + first * items.width, nullptr, laid.n, items.width, block.get());
            const auto prepared = prepare(first, laid.n);
            for (size_t pair = w * n_pairs / workers.size(); pair < (w + 1) * n_pairs / workers.size(); ++pair) {
                if (workers.stopped(w)) return;
                const size_t last = std::min(2 * pair + 1, queries.n - 1), asked[2] = {2 * pair, last};
                body(asked, laid, first, prepared, tables);
                for (size_t q = asked[0]; q <= last; ++q) {
                    int64_t* const row = counts.data + q * row_cells;
                    for (size_t i = 0; i < row_cells; ++i) row[i] += tables[q - asked[0]][i];
                }
                std::memset(room.get(), 0, 2 * (cells + 16) * sizeof(uint32_t));
            }
        }
    });
}

// Bit i of row t: whether item first + i has tag t. Rows are zero up to a multiple of 256 items.
struct TagRows {
    std::vector<uint8_t> bits;
    size_t stride;

    TagRows(const uint8_t* rows, size_t n_tags, size_t first, size_t n) : bits(n_tags * ((n + 255) / 256 * 32), 0), stride((n + 255) / 256 * 32) {
        for (size_t i = 0; i < n; ++i) {
            const uint8_t* row = rows + (first + i) * n_tags;
            for (size_t t = 0; t < n_tags; t += 8) {
                for (uint64_t word = eight(row, t, n_tags); word; word &= word - 1) {  // each byte is 0 or 1
                    set(t + static_cast<size_t>(std::countr_zero(word)) / 8, i);
                }
            }
        }
    }

    // Bytes t .. t + 7 of a row of n, zero behind its end.
    static uint64_t eight(const uint8_t* row, size_t t, size_t n) {
        uint64_t word = 0;
        if (t + 8 <= n) {
            std::memcpy(&word, row + t, 8);
        } else if (n >= 8) {
            std::memcpy(&word, row + n - 8, 8);
            word >>= 8 * (t + 8 - n);
        } else {
            std::memcpy(&word, row, n);
        }
        return word;
    }

    void set(size_t tag, size_t item) {
        uint8_t& byte = bits[tag * stride + item / 8];
        byte = static_cast<uint8_t>(byte | 1u << (item % 8));
    }
};

}  // namespace

bool count_levels(const Codes& queries, const Codes& items, const void* levels, bool is_wide, const Counts& counts, Workers& workers) {
    const auto nothing = [](size_t, size_t) { return 0; };
    return each_block(queries, items, counts, workers, nothing,
                      [&](const size_t asked[2], const Items& block, size_t first, int, uint32_t* const tables[2]) {
                          for (int q = 0; q < (asked[0] == asked[1] ? 1 : 2); ++q) {
                              const size_t offset = (asked[q] * items.n + first) * (is_wide ? 2 : 1);
                              kernels().count_levels(block, queries.data + asked[q] * queries.width,
                                                     static_cast<const uint8_t*>(levels) + offset, is_wide, counts.n_levels,
                                                     bins_of_bytes(items.width), tables[q]);
                          }
                      });
}

bool count_tags(const Codes& queries, const Codes& items, const int64_t* starts, const int32_t* tags, const uint8_t* rows, size_t n_tags,
                const Counts& counts, Workers& workers) {
    const size_t n_bins = bins_of_bytes(items.width), joint = kernels().joint_cells(n_bins * 2);
    return each_block(queries, items, counts, workers, [&](size_t first, size_t n) { return TagRows(rows, n_tags, first, n); },
                      [&](const size_t asked[2], const Items& block, size_t, const TagRows& of, uint32_t* const tables[2]) {
                          thread_local Buffer<uint32_t> counters;
                          thread_local size_t n_counters = 0;
                          thread_local std::vector<const uint8_t*> mine[2];
                          if (n_counters < joint) counters = zeroed<uint32_t>(n_counters = joint);
                          TagQuery both[2];
                          for (int q = 0; q < 2; ++q) {
                              mine[q].clear();
                              for (int64_t k = starts[asked[q]]; k < starts[asked[q] + 1]; ++k) {
                                  mine[q].push_back(of.bits.data() + static_cast<size_t>(tags[k]) * of.stride);
                              }
                              both[q] = {queries.data + asked[q] * queries.width, mine[q].data(), mine[q].size()};
                          }
                          kernels().count_tags(block, both, counts.n_levels, n_bins, {counters.get()}, tables);
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

bool largest_counts(const Codes& queries, const Codes& codes, const int64_t* n_items, int64_t* largest, Workers& workers) {
    const size_t n_bins = bins_of_bytes(codes.width);
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
