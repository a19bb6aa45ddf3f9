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
#include <immintrin.h>

#include <cstring>
#include <type_traits>

namespace rankbits {
namespace {

// The loops below are one loop in many pieces: left to itself, the compiler may cut it into calls.
#define RANKBITS_INLINE inline __attribute__((always_inline))

constexpr size_t TILE = 128;
constexpr size_t MAX_NIBBLES = 1024;   // 4,096 bits
constexpr size_t MAX_JOINT_BINS = 136; // 128 bits, or 64 bits with two levels: counters of more bins would leave the L1 cache
constexpr size_t MAX_TRIPLE_BINS = 33; // 32 bits: three queries share a counter, of which the busy ones still fit
constexpr size_t SHORT_RUN = 1024;     // fewer items than this do not pay for clearing the joint counters of two queries,
constexpr size_t LONG_RUN = 12288;     // fewer than this not for clearing those of three

size_t tiles_of(size_t n) { return (n + TILE - 1) / TILE; }

size_t block_bytes(size_t n, size_t width) { return tiles_of(n) * TILE * 2 * width; }

size_t stride_of(size_t n_bins) { return (n_bins + 7) / 8 * 8; }

size_t group_size(size_t n_bins) { return n_bins <= MAX_TRIPLE_BINS ? 3 : 2; }

size_t joint_cells(size_t n_bins) {
    if (n_bins > MAX_JOINT_BINS) return 0;
    return (n_bins <= MAX_TRIPLE_BINS ? n_bins * n_bins : n_bins) * stride_of(n_bins) + 8;
}

// Up to 8 bytes of a code, the rest zero.
RANKBITS_INLINE __m128i eight_bytes(const uint8_t* code, size_t n) {
    if (n >= 8) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(code));
    uint64_t word = 0;
    if (n == 4) {
        std::memcpy(&word, code, 4);
    } else {
        for (size_t k = 0; k < n; ++k) word |= static_cast<uint64_t>(code[k]) << (8 * k);
    }
    return _mm_cvtsi64_si128(static_cast<long long>(word));
}

// 16 items by 8 bytes, turned into 8 columns of 16 bytes: interleaving the halves of a table moves the top bit of every place to the
// bottom, and four such moves take the four bits of the item number behind the three of the byte number.
RANKBITS_INLINE void transpose(__m128i rows[8]) {
    for (int round = 0; round < 4; ++round) {
        __m128i next[8];
        for (int i = 0; i < 4; ++i) {
            next[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 4]);
            next[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 4]);
        }
        for (int i = 0; i < 8; ++i) rows[i] = next[i];
    }
}

// Planes of bytes [8 group, 8 group + 8) of 16 items whose codes begin at code[0..15].
RANKBITS_INLINE void lay_out_group(const uint8_t* const code[16], size_t group, size_t width, uint8_t* planes) {
    const size_t n = width - 8 * group < 8 ? width - 8 * group : 8;
    __m128i rows[8];
    for (size_t i = 0; i < 8; ++i) {
        rows[i] = _mm_unpacklo_epi64(eight_bytes(code[2 * i] + 8 * group, n), eight_bytes(code[2 * i + 1] + 8 * group, n));
    }
    transpose(rows);
    const __m128i low = _mm_set1_epi8(15);
    for (size_t k = 0; k < n; ++k) {
        uint8_t* plane = planes + (8 * group + k) * 2 * TILE;
        _mm_store_si128(reinterpret_cast<__m128i*>(plane), _mm_and_si128(rows[k], low));
        _mm_store_si128(reinterpret_cast<__m128i*>(plane + TILE), _mm_and_si128(_mm_srli_epi16(rows[k], 4), low));
    }
}

void lay_out(const uint8_t* codes, const uint32_t* order, size_t n, size_t width, uint8_t* block) {
    for (size_t first = 0; first < tiles_of(n) * TILE; first += 16) {
        const uint8_t* code[16];
        for (size_t i = 0; i < 16; ++i) {
            const size_t at = first + i < n ? first + i : n - 1;  // what stands behind the last item is never counted
            code[i] = codes + (order ? order[at] : at) * width;
        }
        uint8_t* planes = block + first / TILE * TILE * 2 * width + first % TILE;
        for (size_t group = 0; 8 * group < width; ++group) lay_out_group(code, group, width, planes);
    }
}

RANKBITS_INLINE __m256i load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
RANKBITS_INLINE void store(void* p, __m256i value) { _mm256_store_si256(static_cast<__m256i*>(p), value); }

// [nibble][32 bytes]: entry x holds in its low half the bits in which x differs from the first query's nibble, in its high half
// those in which it differs from the second's.
struct Tables {
    alignas(32) uint8_t bytes[MAX_NIBBLES * 32];

    Tables(const uint8_t* first, const uint8_t* second, size_t width) {
        const __m256i ones = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        const __m256i entry = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        const auto differing = [&](const uint8_t* query, size_t k) {
            const int nibble = k % 2 ? query[k / 2] >> 4 : query[k / 2] & 15;
            return _mm256_shuffle_epi8(ones, _mm256_xor_si256(entry, _mm256_set1_epi8(static_cast<char>(nibble))));
        };
        for (size_t k = 0; k < 2 * width; ++k) {
            const __m256i high = second ? _mm256_slli_epi16(differing(second, k), 4) : _mm256_setzero_si256();
            store(bytes + 32 * k, _mm256_or_si256(differing(first, k), high));
        }
    }
};

// Increments that wait for the shuffles of the next tile to be hidden among them, four by four.
template <bool IsWeighted>
struct Pending {
    uint32_t* counters;
    const uint32_t* weights;  // of the tile's items
    alignas(32) uint16_t index[TILE];

    Pending(uint32_t* table, uint16_t trash, const uint32_t* some_weights) : counters(table), weights(some_weights) {
        for (size_t i = 0; i < TILE; ++i) index[i] = trash;
    }

    RANKBITS_INLINE void four(size_t i) {
        uint64_t four_of_them;
        std::memcpy(&four_of_them, index + i, 8);
        add(static_cast<uint16_t>(four_of_them), i);
        add(static_cast<uint16_t>(four_of_them >> 16), i + 1);
        add(static_cast<uint16_t>(four_of_them >> 32), i + 2);
        add(four_of_them >> 48, i + 3);
    }

    RANKBITS_INLINE void add(size_t counter, size_t i) { counters[counter] += IsWeighted ? weights[i] : 1; }

    static constexpr size_t N_QUADS = TILE / 4;
    RANKBITS_INLINE void quad(size_t which) { four(4 * which); }
};

constexpr bool is_even_share(size_t n_quads, size_t n_nibbles) { return n_nibbles > 0 && n_quads % n_nibbles == 0; }

struct Idle {  // nothing pending
    static constexpr size_t N_QUADS = 0;
    RANKBITS_INLINE void quad(size_t) {}
};

// Adds nibbles k and k + 1 to both queries' distances: together they are 8 at most, which a half byte holds. The work of the two,
// PER quads each, is spread over the four vectors.
template <size_t PER, class Work>
RANKBITS_INLINE void add_nibbles(const uint8_t* planes, const uint8_t* tables, size_t k, Work& work, __m256i first[4], __m256i second[4]) {
    const __m256i low = _mm256_set1_epi8(15), one = load(tables + 32 * k), two = load(tables + 32 * (k + 1));
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; ++v) {
        const uint8_t* at = planes + k * TILE + 32 * v;
        const __m256i sum = _mm256_add_epi8(_mm256_shuffle_epi8(one, load(at)), _mm256_shuffle_epi8(two, load(at + TILE)));
        first[v] = _mm256_add_epi8(first[v], _mm256_and_si256(sum, low));
        second[v] = _mm256_add_epi8(second[v], _mm256_and_si256(_mm256_srli_epi16(sum, 4), low));
#pragma GCC unroll 32
        for (size_t quad = 2 * PER * v / 4; quad < 2 * PER * (v + 1) / 4; ++quad) work.quad(k * PER + quad);
    }
}

// Distances of a tile to both queries, as bytes: at most 252 bits. N is the number of nibbles, 0 if only known at run time.
template <size_t N, class Work>
RANKBITS_INLINE void two_distances(const uint8_t* planes, const uint8_t* tables, size_t n_nibbles, Work& work, __m256i first[4],
                                   __m256i second[4]) {
    for (size_t v = 0; v < 4; ++v) first[v] = second[v] = _mm256_setzero_si256();
    if constexpr (is_even_share(Work::N_QUADS, N)) {
#pragma GCC unroll 2
        for (size_t k = 0; k < N; k += 2) add_nibbles<Work::N_QUADS / N>(planes, tables, k, work, first, second);
    } else {
        for (size_t k = 0; k < n_nibbles; k += 2) {
            add_nibbles<0>(planes, tables, k, work, first, second);
            for (size_t quad = k * Work::N_QUADS / n_nibbles; quad < (k + 2) * Work::N_QUADS / n_nibbles; ++quad) work.quad(quad);
        }
    }
}

// The same for one query, whose partial distances fill the low half bytes.
template <size_t N, class Work>
RANKBITS_INLINE void one_distance(const uint8_t* planes, const uint8_t* tables, size_t n_nibbles, Work& work, __m256i sums[4]) {
    const size_t n = N ? N : n_nibbles;
    for (size_t v = 0; v < 4; ++v) sums[v] = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (size_t k = 0; k < n; ++k) {
        const __m256i table = load(tables + 32 * k);
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; ++v) sums[v] = _mm256_add_epi8(sums[v], _mm256_shuffle_epi8(table, load(planes + k * TILE + 32 * v)));
        if constexpr (is_even_share(Work::N_QUADS, N)) {
            constexpr size_t PER = Work::N_QUADS / N;
#pragma GCC unroll 32
            for (size_t quad = 0; quad < PER; ++quad) work.quad(k * PER + quad);
        } else {
            for (size_t quad = k * Work::N_QUADS / n; quad < (k + 1) * Work::N_QUADS / n; ++quad) work.quad(quad);
        }
    }
}

// Stores 32 numbers of 16 bits in item order; unpacking had left them in order within lanes only.
RANKBITS_INLINE void store_words(uint16_t* out, __m256i low, __m256i high) {
    store(out, _mm256_permute2x128_si256(low, high, 0x20));
    store(out + 16, _mm256_permute2x128_si256(low, high, 0x31));
}

// index = first + second * stride, byte by byte.
RANKBITS_INLINE void joint_index(const __m256i first[4], const __m256i second[4], size_t stride, uint16_t* index) {
    const __m256i factor = _mm256_set1_epi16(static_cast<short>(stride));
    const __m256i weights = _mm256_set1_epi16(static_cast<short>(1 | stride << 8));
    for (size_t v = 0; v < 4; ++v) {
        const __m256i low = _mm256_unpacklo_epi8(first[v], second[v]), high = _mm256_unpackhi_epi8(first[v], second[v]);
        if (stride < 128) {
            store_words(index + 32 * v, _mm256_maddubs_epi16(low, weights), _mm256_maddubs_epi16(high, weights));
        } else {  // beyond the signed bytes that maddubs takes
            const __m256i rest = _mm256_set1_epi16(255);
            const auto combine = [&](__m256i pair) {
                return _mm256_add_epi16(_mm256_and_si256(pair, rest), _mm256_mullo_epi16(_mm256_srli_epi16(pair, 8), factor));
            };
            store_words(index + 32 * v, combine(low), combine(high));
        }
    }
}

// index = distance * n_levels + level.
RANKBITS_INLINE void level_index(const __m256i distance[4], const uint8_t* levels, size_t n_levels, uint16_t* index) {
    const __m256i zero = _mm256_setzero_si256(), factor = _mm256_set1_epi16(static_cast<short>(n_levels));
    for (size_t v = 0; v < 4; ++v) {
        const __m256i level = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(levels + 32 * v));
        const auto combine = [&](__m256i d, __m256i l) { return _mm256_add_epi16(_mm256_mullo_epi16(d, factor), l); };
        store_words(index + 32 * v, combine(_mm256_unpacklo_epi8(distance[v], zero), _mm256_unpacklo_epi8(level, zero)),
                    combine(_mm256_unpackhi_epi8(distance[v], zero), _mm256_unpackhi_epi8(level, zero)));
    }
}

// Sends items of tile `first` that lie outside [begin, end) to a counter that nobody reads.
RANKBITS_INLINE void drop_outside(size_t first, size_t begin, size_t end, uint16_t trash, uint16_t* index) {
    for (size_t i = 0; first + i < begin && i < TILE; ++i) index[i] = trash;
    for (size_t i = end > first ? end - first : 0; i < TILE; ++i) index[i] = trash;
}

constexpr uint32_t NO_WEIGHTS[TILE] = {};

// Counts the ranges tile by tile. find(planes, pending, tile) is to compute a tile's indices, doing what is pending meanwhile.
template <bool IsWeighted, class Find>
RANKBITS_INLINE void count_tiles(const Items& items, const Range* ranges, size_t n_ranges, uint32_t* counters, size_t trash, Find find) {
    const size_t tile_bytes = TILE * 2 * items.width;
    Pending<IsWeighted> pending(counters, static_cast<uint16_t>(trash), NO_WEIGHTS);
    for (const Range* range = ranges; range != ranges + n_ranges; ++range) {
        for (size_t first = range->begin / TILE * TILE; first < range->end; first += TILE) {
            find(items.block + first / TILE * tile_bytes, pending, first);
            drop_outside(first, range->begin, range->end, static_cast<uint16_t>(trash), pending.index);
            if (IsWeighted) pending.weights = items.weights + first;
        }
    }
    for (size_t i = 0; i < TILE; i += 4) pending.four(i);
}

// Calls body with the number of nibbles as a constant for the usual code lengths, else with 0.
template <class Body>
RANKBITS_INLINE void for_nibbles(size_t width, Body body) {
    switch (width) {
        case 1: return body.template operator()<2>();
        case 2: return body.template operator()<4>();
        case 3: return body.template operator()<6>();
        case 4: return body.template operator()<8>();
        case 6: return body.template operator()<12>();
        case 8: return body.template operator()<16>();
        case 12: return body.template operator()<24>();
        case 16: return body.template operator()<32>();
        default: return body.template operator()<0>();
    }
}

// Adds the joint counters to both rows and clears them.
void fold(uint32_t* __restrict joint, size_t n_bins, uint32_t* const rows[2]) {
    const size_t stride = stride_of(n_bins);
    alignas(32) uint32_t columns[MAX_JOINT_BINS] = {};
    for (size_t second = 0; second < n_bins; ++second) {
        uint32_t* line = joint + second * stride;
        uint32_t sum = 0;
        for (size_t first = 0; first < stride; ++first) {
            columns[first] += line[first];
            sum += line[first];
            line[first] = 0;
        }
        rows[1][second] += sum;
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
            alignas(32) uint32_t eight[8];
            store(eight, sum);
            uint32_t total = 0;
            for (uint32_t one : eight) total += one;
            rows[1][second] += total;
            plane += total;
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

// Distances of a tile to one query of any length: bytes over at most 62 nibbles, gathered in words.
RANKBITS_INLINE void long_distance(const uint8_t* planes, const uint8_t* tables, size_t n_nibbles, uint16_t* distance) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i sums[4], low[4], high[4];
    for (size_t v = 0; v < 4; ++v) low[v] = high[v] = zero;
    Idle idle;
    for (size_t k = 0; k < n_nibbles; k += 62) {
        one_distance<0>(planes + k * TILE, tables + 32 * k, n_nibbles - k < 62 ? n_nibbles - k : 62, idle, sums);
        for (size_t v = 0; v < 4; ++v) {
            low[v] = _mm256_add_epi16(low[v], _mm256_unpacklo_epi8(sums[v], zero));
            high[v] = _mm256_add_epi16(high[v], _mm256_unpackhi_epi8(sums[v], zero));
        }
    }
    for (size_t v = 0; v < 4; ++v) store_words(distance + 32 * v, low[v], high[v]);
}

// Calls body(item, distance) for items [begin, end): for short runs, long codes and very many levels.
template <class Body>
RANKBITS_INLINE void each_distance(const Items& items, const uint8_t* query, size_t begin, size_t end, Body body) {
    const Tables tables(query, nullptr, items.width);
    alignas(32) uint16_t distance[TILE];
    for (size_t first = begin / TILE * TILE; first < end; first += TILE) {
        long_distance(items.block + first * 2 * items.width, tables.bytes, 2 * items.width, distance);
        const size_t from = begin > first ? begin - first : 0, to = end - first < TILE ? end - first : TILE;
        for (size_t i = from; i < to; ++i) body(first + i, distance[i]);
    }
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

void count_levels(const Items& items, const uint8_t* query, const void* levels, bool is_wide, size_t n_levels, size_t n_bins,
                  uint32_t* table) {
    const auto* narrow = static_cast<const uint8_t*>(levels);
    const auto* wide = static_cast<const uint16_t*>(levels);
    if (is_wide || !is_small(n_bins, n_levels)) {
        each_distance(items, query, 0, items.n, [&](size_t i, size_t d) { ++table[d * n_levels + (is_wide ? wide[i] : narrow[i])]; });
        return;
    }
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
