// Portable loop nests: 64-bit words, std::popcount. The reference for every faster set.
#include <bit>
#include <cstring>

#include "kernels.hpp"

namespace rankbits {
namespace {

size_t words_of(size_t width) { return (width + 7) / 8; }

size_t block_bytes(size_t n, size_t width) { return n * words_of(width) * 8; }

size_t joint_cells(size_t) { return 0; }

void lay_out(const uint8_t* codes, const uint32_t* order, size_t n, size_t width, uint8_t* block) {
    const size_t stride = words_of(width) * 8;
    for (size_t i = 0; i < n; ++i) {
        const uint8_t* code = codes + (order ? order[i] : i) * width;
        std::memcpy(block + i * stride, code, width);
        std::memset(block + i * stride + width, 0, stride - width);
    }
}

// Distance of item i to a query; both as words, the last one filled up with zeros.
template <size_t W>
inline size_t distance(const uint8_t* block, size_t i, size_t n_words, const uint64_t* query) {
    if (W) n_words = W;
    size_t sum = 0;
    for (size_t w = 0; w < n_words; ++w) {
        uint64_t word;
        std::memcpy(&word, block + (i * n_words + w) * 8, 8);
        sum += static_cast<size_t>(std::popcount(word ^ query[w]));
    }
    return sum;
}

struct Query {
    uint64_t words[64];  // 4,096 bits
    Query(const uint8_t* code, size_t width) {
        words[words_of(width) - 1] = 0;
        std::memcpy(words, code, width);
    }
};

// Calls body(i, distance) for items [begin, end); one and two words are worth a loop of their own.
template <class Body>
inline void each_distance(const Items& items, const uint8_t* code, size_t begin, size_t end, Body body) {
    const Query query(code, items.width);
    const size_t n_words = words_of(items.width);
    if (n_words == 1) {
        for (size_t i = begin; i < end; ++i) body(i, distance<1>(items.block, i, 1, query.words));
    } else if (n_words == 2) {
        for (size_t i = begin; i < end; ++i) body(i, distance<2>(items.block, i, 2, query.words));
    } else {
        for (size_t i = begin; i < end; ++i) body(i, distance<0>(items.block, i, n_words, query.words));
    }
}

size_t group_size(size_t) { return 1; }

void count_group(const Items& items, const Group& group, const Range* ranges, size_t n_ranges, size_t, const Scratch&,
                 uint32_t* const* rows) {
    for (size_t q = 0; q < group.n; ++q) {
        uint32_t* row = rows[q];
        for (const Range* range = ranges; range != ranges + n_ranges; ++range) {
            if (items.weights) {
                each_distance(items, group.codes[q], range->begin, range->end, [&](size_t i, size_t d) { row[d] += items.weights[i]; });
            } else {
                each_distance(items, group.codes[q], range->begin, range->end, [&](size_t, size_t d) { ++row[d]; });
            }
        }
    }
}

void count_levels(const Items& items, const uint8_t* query, const void* levels, bool is_wide, size_t n_levels, size_t, uint32_t* table) {
    const auto* narrow = static_cast<const uint8_t*>(levels);
    const auto* wide = static_cast<const uint16_t*>(levels);
    each_distance(items, query, 0, items.n, [&](size_t i, size_t d) {
        const size_t level = is_wide ? wide[i] : narrow[i];
        ++table[d * n_levels + (level < n_levels ? level : n_levels - 1)];
    });
}

void count_tags(const Items& items, const TagQuery queries[2], size_t n_levels, size_t, const Scratch&, uint32_t* const rows[2]) {
    for (int q = 0; q < 2; ++q) {
        const TagQuery& query = queries[q];
        uint32_t* row = rows[q];
        each_distance(items, query.code, 0, items.n, [&](size_t i, size_t d) {
            size_t shared = 0;
            for (size_t t = 0; t < query.n_tags; ++t) shared += query.rows[t][i / 8] >> (i % 8) & 1;
            ++row[d * n_levels + (shared < n_levels ? shared : n_levels - 1)];
        });
    }
}

}  // namespace

const Kernels& portable_kernels() {
    static const Kernels kernels{"portable", block_bytes, joint_cells, lay_out, group_size, count_group, count_levels, count_tags};
    return kernels;
}

}  // namespace rankbits
