// Tiles of 128 items under AVX2: their layout, their distances to one or two queries, and the increments hidden among the shuffles.
// For avx2.cpp alone, which is compiled for AVX2 and says why this is fast.
#pragma once
#include <immintrin.h>

#include <cstring>

#include "kernels.hpp"

namespace rankbits {
namespace {

// The loops below are one loop in many pieces: left to itself, the compiler may cut it into calls.
#define RANKBITS_INLINE inline __attribute__((always_inline))

constexpr size_t TILE = 128;
constexpr size_t MAX_NIBBLES = 1024;  // 4,096 bits

size_t tiles_of(size_t n) { return (n + TILE - 1) / TILE; }

size_t block_bytes(size_t n, size_t width) { return tiles_of(n) * TILE * 2 * width; }

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
        uint32_t pairs[2];  // a load and two cheap moves for two of them: fewer than from eight bytes at once
        std::memcpy(pairs, index + i, 8);
        add(pairs[0] & 0xffff, i);
        add(pairs[0] >> 16, i + 1);
        add(pairs[1] & 0xffff, i + 2);
        add(pairs[1] >> 16, i + 3);
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

// Adds nibbles k and k + 1 to what both queries' distances are found from: together they are 8 at most, which a half byte holds. With a, b
// the parts of the two distances, sums gets the byte a + 16 b, and shifted the same bytes moved down by four bits in words: b, and in
// the lower byte of a word 16 a of the upper one besides. The work of the two nibbles, PER quads each, is spread over the four vectors.
template <size_t PER, class Work>
RANKBITS_INLINE void add_nibbles(const uint8_t* planes, const uint8_t* tables, size_t k, Work& work, __m256i sums[4], __m256i shifted[4]) {
    const __m256i one = load(tables + 32 * k), two = load(tables + 32 * (k + 1));
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; ++v) {
        const uint8_t* at = planes + k * TILE + 32 * v;
        const __m256i sum = _mm256_add_epi8(_mm256_shuffle_epi8(one, load(at)), _mm256_shuffle_epi8(two, load(at + TILE)));
        sums[v] = _mm256_add_epi8(sums[v], sum);
        shifted[v] = _mm256_add_epi8(shifted[v], _mm256_srli_epi16(sum, 4));
#pragma GCC unroll 32
        for (size_t quad = 2 * PER * v / 4; quad < 2 * PER * (v + 1) / 4; ++quad) work.quad(k * PER + quad);
    }
}

// Distances from those sums. Bytes are exact modulo 256, and so is each distance once 16 times the other is taken off: first the upper byte of
// a word, whose second distance stands alone, then the lower one. This spares two masks for every two nibbles.
RANKBITS_INLINE void separate(__m256i sums, __m256i shifted, __m256i& first, __m256i& second) {
    const __m256i upper = _mm256_set1_epi16(static_cast<short>(0xf000)), lower = _mm256_set1_epi16(0x00f0);
    const __m256i upper_done = _mm256_sub_epi8(sums, _mm256_and_si256(_mm256_slli_epi16(shifted, 4), upper));
    second = _mm256_sub_epi8(shifted, _mm256_and_si256(_mm256_srli_epi16(upper_done, 4), lower));
    first = _mm256_sub_epi8(upper_done, _mm256_and_si256(_mm256_slli_epi16(second, 4), lower));
}

// Distances of a tile to both queries, as bytes: at most 252 bits. N is the number of nibbles, 0 if only known at run time.
template <size_t N, class Work>
RANKBITS_INLINE void two_distances(const uint8_t* planes, const uint8_t* tables, size_t n_nibbles, Work& work, __m256i first[4],
                                   __m256i second[4]) {
    __m256i sums[4], shifted[4];
    for (size_t v = 0; v < 4; ++v) sums[v] = shifted[v] = _mm256_setzero_si256();
    if constexpr (is_even_share(Work::N_QUADS, N)) {
#pragma GCC unroll 2
        for (size_t k = 0; k < N; k += 2) add_nibbles<Work::N_QUADS / N>(planes, tables, k, work, sums, shifted);
    } else {
        for (size_t k = 0; k < n_nibbles; k += 2) {
            add_nibbles<0>(planes, tables, k, work, sums, shifted);
            for (size_t quad = k * Work::N_QUADS / n_nibbles; quad < (k + 2) * Work::N_QUADS / n_nibbles; ++quad) work.quad(quad);
        }
    }
    for (size_t v = 0; v < 4; ++v) separate(sums[v], shifted[v], first[v], second[v]);
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

// index = distance * n_levels + level, or the last level where there is no such level.
RANKBITS_INLINE void level_index(const __m256i distance[4], const uint8_t* levels, size_t n_levels, uint16_t* index) {
    const __m256i zero = _mm256_setzero_si256(), factor = _mm256_set1_epi16(static_cast<short>(n_levels));
    const __m256i last = _mm256_set1_epi8(static_cast<char>(n_levels > 256 ? 255 : n_levels - 1));
    for (size_t v = 0; v < 4; ++v) {
        const __m256i level = _mm256_min_epu8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(levels + 32 * v)), last);
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

}  // namespace
}  // namespace rankbits
