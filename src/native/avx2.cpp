// AVX2 loop nests.
//
// Layout: nibble planes, [tile of 128 items][nibble][128 bytes]. A query turns each nibble position into a 16-entry table of partial
// distances, so that 32 items take one byte shuffle a nibble. Two queries go together, their partial distances side by side in the
// table's bytes: one shuffle serves both, and their two distances to an item make one index of a joint u32 counter; up to 32 bits, a
// third query joins them. A block of planes stays in L2, tables and counters in L1. The bound is one increment a cycle, a half or a
// third of one a pair; a tile's increments are spread between the shuffles of the next tile, since too few fit into the reorder window
// to overlap by themselves.
#include "kernels.hpp"

#if defined(__AVX2__)
#include <type_traits>

#include "avx2_tiles.hpp"

namespace rankbits {
namespace {

constexpr size_t MAX_JOINT_BINS = 136; // 128 bits, or 64 bits with two levels: counters of more bins would leave the L1 cache
constexpr size_t MAX_TRIPLE_BINS = 33; // 32 bits: three queries share a counter, of which the busy ones still fit
constexpr size_t SHORT_RUN = 1024;     // fewer items than this do not pay for clearing the joint counters of two queries,
constexpr size_t LONG_RUN = 12288;     // fewer than this not for clearing those of three

size_t stride_of(size_t n_bins) { return (n_bins + 7) / 8 * 8; }

size_t group_size(size_t n_bins) { return n_bins <= MAX_TRIPLE_BINS ? 3 : 2; }

size_t joint_cells(size_t n_bins) {
    if (n_bins > MAX_JOINT_BINS) return 0;
    return (n_bins <= MAX_TRIPLE_BINS ? n_bins * n_bins : n_bins) * stride_of(n_bins) + 8;
}

uint32_t total(__m256i eight) {
    alignas(32) uint32_t parts[8];
    store(parts, eight);
    uint32_t sum = 0;
    for (uint32_t part : parts) sum += part;
    return sum;
}

// Adds the joint counters to both rows and clears them; many lines have only zeros, and a sum shows it.
void fold(uint32_t* __restrict joint, size_t n_bins, uint32_t* const rows[2]) {
    const size_t stride = stride_of(n_bins);
    alignas(32) uint32_t columns[MAX_JOINT_BINS] = {};
    for (size_t second = 0; second < n_bins; ++second) {
        uint32_t* line = joint + second * stride;
        __m256i sum = _mm256_setzero_si256();
        for (size_t first = 0; first < stride; first += 8) sum = _mm256_add_epi32(sum, load(line + first));
        if (_mm256_testz_si256(sum, sum)) continue;
        for (size_t first = 0; first < stride; first += 8) {
            store(columns + first, _mm256_add_epi32(load(columns + first), load(line + first)));
            store(line + first, _mm256_setzero_si256());
        }
        rows[1][second] += total(sum);
    }
    joint[n_bins * stride] = 0;
    for (size_t first = 0; first < n_bins; ++first) rows[0][first] += columns[first];
}

template <bool IsWeighted>
void count_pair(const Items& items, const uint8_t* first_query, const uint8_t* second_query, const Range* ranges, size_t n_ranges,
                size_t n_bins, uint32_t* joint, uint32_t* const rows[2]) {
    const Tables tables(first_query, second_query, items.width);
    const size_t stride = stride_of(n_bins);
    for_nibbles(items.width, [&]<size_t N>() {
        count_tiles<IsWeighted>(items, ranges, n_ranges, joint, n_bins * stride, [&](const uint8_t* planes, auto& pending, size_t) __attribute__((always_inline)) {
            __m256i first[4], second[4];
            two_distances<N>(planes, tables.bytes, 2 * items.width, pending, first, second);
            joint_index(first, second, stride, pending.index);
        });
    });
    fold(joint, n_bins, rows);
}

// N of the quads that are pending, from the given one on.
template <class Pending, size_t N, size_t FROM>
struct Part {
    static constexpr size_t N_QUADS = N;
    Pending& pending;
    RANKBITS_INLINE void quad(size_t which) { pending.quad(FROM + which); }
};

// Adds the joint counters of three queries to their rows and clears them; most lines have only zeros.
void fold_three(uint32_t* joint, size_t n_bins, uint32_t* const rows[3]) {
    const size_t stride = stride_of(n_bins);
    __m256i columns[(MAX_TRIPLE_BINS + 7) / 8];
    for (__m256i& column : columns) column = _mm256_setzero_si256();
    for (size_t third = 0; third < n_bins; ++third) {
        uint32_t plane = 0;
        for (size_t second = 0; second < n_bins; ++second) {
            uint32_t* line = joint + (third * n_bins + second) * stride;
            __m256i sum = _mm256_setzero_si256();
            for (size_t v = 0; 8 * v < stride; ++v) sum = _mm256_add_epi32(sum, load(line + 8 * v));
            if (_mm256_testz_si256(sum, sum)) continue;
            for (size_t v = 0; 8 * v < stride; ++v) {
                columns[v] = _mm256_add_epi32(columns[v], load(line + 8 * v));
                store(line + 8 * v, _mm256_setzero_si256());
            }
            const uint32_t n = total(sum);
            rows[1][second] += n;
            plane += n;
        }
        rows[2][third] += plane;
    }
    joint[n_bins * n_bins * stride] = 0;
    alignas(32) uint32_t column[(MAX_TRIPLE_BINS + 7) / 8 * 8] = {};
    for (size_t v = 0; 8 * v < stride; ++v) store(column + 8 * v, columns[v]);
    for (size_t first = 0; first < n_bins; ++first) rows[0][first] += column[first];
}

template <bool IsWeighted>
void count_triple(const Items& items, const uint8_t* const queries[3], const Range* ranges, size_t n_ranges, size_t n_bins,
                  uint32_t* joint, uint32_t* const rows[3]) {
    const Tables two(queries[0], queries[1], items.width), one(queries[2], nullptr, items.width);
    const size_t stride = stride_of(n_bins), plane = n_bins * stride;
    const __m256i factor = _mm256_set1_epi16(static_cast<short>(plane)), zero = _mm256_setzero_si256();
    const __m256i weights = _mm256_set1_epi16(static_cast<short>(1 | stride << 8));
    for_nibbles(items.width, [&]<size_t N>() {
        count_tiles<IsWeighted>(items, ranges, n_ranges, joint, n_bins * plane, [&](const uint8_t* planes, auto& pending, size_t) __attribute__((always_inline)) {
            using Work = std::remove_reference_t<decltype(pending)>;
            Part<Work, 24, 0> most{pending};
            Part<Work, 8, 24> rest{pending};
            __m256i first[4], second[4], third[4];
            two_distances<N>(planes, two.bytes, 2 * items.width, most, first, second);
            one_distance<N>(planes, one.bytes, 2 * items.width, rest, third);
            for (size_t v = 0; v < 4; ++v) {
                const __m256i low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(first[v], second[v]), weights);
                const __m256i high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(first[v], second[v]), weights);
                store_words(pending.index + 32 * v, _mm256_add_epi16(low, _mm256_mullo_epi16(_mm256_unpacklo_epi8(third[v], zero), factor)),
                            _mm256_add_epi16(high, _mm256_mullo_epi16(_mm256_unpackhi_epi8(third[v], zero), factor)));
            }
        });
    });
    fold_three(joint, n_bins, rows);
}

// Few items: two queries together, an increment each.
void count_short(const Items& items, const uint8_t* const queries[2], const Range& range, uint32_t* const rows[2]) {
    const Tables tables(queries[0], queries[1], items.width);
    alignas(32) uint8_t distance[2][TILE];
    Idle idle;
    for (size_t first = range.begin / TILE * TILE; first < range.end; first += TILE) {
        __m256i sums[2][4];
        two_distances<0>(items.block + first * 2 * items.width, tables.bytes, 2 * items.width, idle, sums[0], sums[1]);
        for (size_t q = 0; q < 2; ++q) {
            for (size_t v = 0; v < 4; ++v) store(distance[q] + 32 * v, sums[q][v]);
        }
        const size_t from = range.begin > first ? range.begin - first : 0, to = range.end - first < TILE ? range.end - first : TILE;
        for (size_t i = from; i < to; ++i) {
            const uint32_t weight = items.weights ? items.weights[first + i] : 1;
            rows[0][distance[0][i]] += weight;
            rows[1][distance[1][i]] += weight;
        }
    }
}

// Codes too long for joint counters.
void count_long(const Items& items, const uint8_t* query, const Range& range, uint32_t* row) {
    if (items.weights) {
        each_distance(items, query, range.begin, range.end, [&](size_t i, size_t d) { row[d] += items.weights[i]; });
    } else {
        each_distance(items, query, range.begin, range.end, [&](size_t, size_t d) { ++row[d]; });
    }
}

void count_group(const Items& items, const Group& group, const Range* ranges, size_t n_ranges, size_t n_bins, const Scratch& scratch,
                 uint32_t* const* rows) {
    size_t n = 0;
    for (size_t r = 0; r < n_ranges; ++r) n += ranges[r].end - ranges[r].begin;
    if (n_bins > MAX_JOINT_BINS) {
        for (size_t q = 0; q < group.n; ++q) {
            for (size_t r = 0; r < n_ranges; ++r) count_long(items, group.codes[q], ranges[r], rows[q]);
        }
        return;
    }
    if (group.n == 3 && n_bins <= MAX_TRIPLE_BINS && n >= LONG_RUN) {
        (items.weights ? count_triple<true> : count_triple<false>)(items, group.codes, ranges, n_ranges, n_bins, scratch.joint, rows);
        return;
    }
    uint32_t nobody[MAX_JOINT_BINS] = {};  // a lone query stands in both places
    for (size_t q = 0; q < group.n; q += 2) {
        const bool is_lone = q + 1 == group.n;
        const uint8_t* const codes[2] = {group.codes[q], group.codes[is_lone ? q : q + 1]};
        uint32_t* const both[2] = {rows[q], is_lone ? nobody : rows[q + 1]};
        if (n < SHORT_RUN) {
            for (size_t r = 0; r < n_ranges; ++r) count_short(items, codes, ranges[r], both);
        } else {
            (items.weights ? count_pair<true> : count_pair<false>)(items, codes[0], codes[1], ranges, n_ranges, n_bins, scratch.joint, both);
        }
    }
}

// One increment an item into table[distance * n_levels + level]; fill(first item, levels of a tile) says the levels.
template <class Fill>
void count_by_level(const Items& items, const uint8_t* query, size_t n_levels, size_t n_bins, uint32_t* table, Fill fill) {
    const Tables tables(query, nullptr, items.width);
    const Range all{0, items.n};
    for_nibbles(items.width, [&]<size_t N>() {
        count_tiles<false>(items, &all, 1, table, n_bins * n_levels, [&](const uint8_t* planes, auto& pending, size_t first) __attribute__((always_inline)) {
            __m256i distance[4];
            one_distance<N>(planes, tables.bytes, 2 * items.width, pending, distance);
            alignas(32) uint8_t room[TILE];
            level_index(distance, fill(first, room), n_levels, pending.index);
        });
    });
}

// Whether distances fit in bytes and indices, the one nobody reads among them, in words.
bool is_small(size_t n_bins, size_t n_levels) { return n_bins <= 253 && n_bins * n_levels < 65536; }

// Long codes and very many levels.
template <class Level>
void count_levels_long(const Items& items, const uint8_t* query, const Level* levels, size_t n_levels, uint32_t* table) {
    const size_t last = n_levels - 1;
    each_distance(items, query, 0, items.n, [&](size_t i, size_t d) { ++table[d * n_levels + (levels[i] < last ? levels[i] : last)]; });
}

void count_levels(const Items& items, const uint8_t* query, const void* levels, bool is_wide, size_t n_levels, size_t n_bins,
                  uint32_t* table) {
    const auto* narrow = static_cast<const uint8_t*>(levels);
    if (is_wide) return count_levels_long(items, query, static_cast<const uint16_t*>(levels), n_levels, table);
    if (!is_small(n_bins, n_levels)) return count_levels_long(items, query, narrow, n_levels, table);
    count_by_level(items, query, n_levels, n_bins, table, [&](size_t first, uint8_t* room) -> const uint8_t* {
        if (first + TILE <= items.n) return narrow + first;
        std::memset(room, 0, TILE);
        std::memcpy(room, narrow + first, items.n - first);
        return room;
    });
}

// 32 bits of a row as bytes of 0 and 1.
RANKBITS_INLINE __m256i bytes_of_bits(const uint8_t* row) {
    const __m256i which = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    int32_t bits;
    std::memcpy(&bits, row, 4);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), which);
    return _mm256_min_epu8(_mm256_and_si256(spread, bit), _mm256_set1_epi8(1));
}

// Shared tags of 32 items, at most `most`.
RANKBITS_INLINE __m256i shared_tags(const TagQuery& query, size_t first, __m256i most) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t t = 0; t < query.n_tags; ++t) sum = _mm256_min_epu8(_mm256_add_epi8(sum, bytes_of_bits(query.rows[t] + first / 8)), most);
    return sum;
}

constexpr size_t MAX_BLOCK = 1 << 16;  // items, as callers cut them

// Whether an item has any of the query's tags, a bit each: the rows or-ed, once for the block.
struct AnyTag {
    alignas(32) uint8_t bits[MAX_BLOCK / 8];

    AnyTag(const TagQuery& query, size_t n) {
        for (size_t at = 0; 8 * at < n; at += 32) {
            __m256i any = _mm256_setzero_si256();
            for (size_t t = 0; t < query.n_tags; ++t) {
                any = _mm256_or_si256(any, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query.rows[t] + at)));
            }
            store(bits + at, any);
        }
    }
};

// Joint index of 2 * distance + tag.
RANKBITS_INLINE void tag_index(const __m256i first[4], const __m256i second[4], const uint8_t* first_tags, const uint8_t* second_tags,
                               size_t stride, uint16_t* index) {
    __m256i one[4], two[4];
    for (size_t v = 0; v < 4; ++v) {
        one[v] = _mm256_add_epi8(_mm256_add_epi8(first[v], first[v]), bytes_of_bits(first_tags + 4 * v));
        two[v] = _mm256_add_epi8(_mm256_add_epi8(second[v], second[v]), bytes_of_bits(second_tags + 4 * v));
    }
    joint_index(one, two, stride, index);
}

void count_tags_jointly(const Items& items, const TagQuery queries[2], size_t n_bins, uint32_t* joint, uint32_t* const rows[2]) {
    const Tables tables(queries[0].code, queries[1].code, items.width);
    const AnyTag any[2] = {{queries[0], items.n}, {queries[1], items.n}};
    const size_t stride = stride_of(2 * n_bins);
    const Range all{0, items.n};
    for_nibbles(items.width, [&]<size_t N>() {
        count_tiles<false>(items, &all, 1, joint, 2 * n_bins * stride, [&](const uint8_t* planes, auto& pending, size_t at) __attribute__((always_inline)) {
            __m256i first[4], second[4];
            two_distances<N>(planes, tables.bytes, 2 * items.width, pending, first, second);
            tag_index(first, second, any[0].bits + at / 8, any[1].bits + at / 8, stride, pending.index);
        });
    });
    fold(joint, 2 * n_bins, rows);
}

void count_tags(const Items& items, const TagQuery queries[2], size_t n_levels, size_t n_bins, const Scratch& scratch,
                uint32_t* const rows[2]) {
    if (n_levels == 2 && 2 * n_bins <= MAX_JOINT_BINS && items.n >= SHORT_RUN) {
        count_tags_jointly(items, queries, n_bins, scratch.joint, rows);
        return;
    }
    for (int q = 0; q < 2; ++q) {
        uint32_t* const row = rows[q];
        if (n_levels == 2 && n_bins <= 253) {
            const AnyTag any(queries[q], items.n);
            count_by_level(items, queries[q].code, n_levels, n_bins, row, [&](size_t first, uint8_t* room) -> const uint8_t* {
                for (size_t v = 0; v < TILE; v += 32) store(room + v, bytes_of_bits(any.bits + (first + v) / 8));
                return room;
            });
        } else if (n_levels <= 256 && is_small(n_bins, n_levels)) {
            const __m256i most = _mm256_set1_epi8(static_cast<char>(n_levels - 1));
            count_by_level(items, queries[q].code, n_levels, n_bins, row, [&](size_t first, uint8_t* room) -> const uint8_t* {
                for (size_t v = 0; v < TILE; v += 32) store(room + v, shared_tags(queries[q], first + v, most));
                return room;
            });
        } else {
            each_distance(items, queries[q].code, 0, items.n, [&](size_t i, size_t d) {
                size_t shared = 0;
                for (size_t t = 0; t < queries[q].n_tags; ++t) shared += queries[q].rows[t][i / 8] >> (i % 8) & 1;
                ++row[d * n_levels + (shared < n_levels ? shared : n_levels - 1)];
            });
        }
    }
}

}  // namespace

const Kernels* avx2_kernels() {
    static const Kernels kernels{"avx2", block_bytes, joint_cells, lay_out, group_size, count_group, count_levels, count_tags};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") ? &kernels : nullptr;
}

}  // namespace rankbits

#else

namespace rankbits {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace rankbits

#endif
