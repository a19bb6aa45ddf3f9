// Planes under AVX2. A query turns every half byte into a table of 16 distances, so a byte shuffle looks 32 items up at once; a table
// byte holds the distances of two queries, half a byte each, and three look-ups fit in it before they must be taken apart. A tile is
// split into half bytes once for all queries and stays in L1; four arithmetic instructions a cycle are what bounds it.
#include "near.hpp"

#if defined(__AVX2__)
#include <immintrin.h>

#include <type_traits>

namespace rankbits {
namespace {

#define RANKBITS_INLINE inline __attribute__((always_inline))

RANKBITS_INLINE __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
RANKBITS_INLINE void store(void* p, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(p), value); }
RANKBITS_INLINE __m256i table_of(const uint8_t* tables, size_t k) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables + 16 * k)));
}
RANKBITS_INLINE __m256i byte(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }

constexpr size_t AHEAD = 4096;  // bytes: a lone query waits for memory, which is to be asked for early
constexpr size_t BYTE_PLANES = 31;  // so many bytes differ in 248 bits at most, which a byte holds

size_t tables_bytes(size_t width) { return 32 * width; }

void make_tables(const uint8_t* first, const uint8_t* second, size_t width, uint8_t* tables) {
    const __m128i ones = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m128i entry = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto differing = [&](const uint8_t* query, size_t k) {
        const int half = k % 2 ? query[k / 2] >> 4 : query[k / 2] & 15;
        return _mm_shuffle_epi8(ones, _mm_xor_si128(entry, _mm_set1_epi8(static_cast<char>(half))));
    };
    for (size_t k = 0; k < 2 * width; ++k) {
        const __m128i high = second ? _mm_slli_epi16(differing(second, k), 4) : _mm_setzero_si128();
        _mm_storeu_si128(reinterpret_cast<__m128i*>(tables + 16 * k), _mm_or_si128(differing(first, k), high));
    }
}

size_t split_bytes(size_t width) { return 2 * width * GROUP; }

void split(const uint8_t* planes, size_t n_groups, size_t width, uint8_t* out) {
    const __m256i low = byte(15);
    for (size_t k = 0; k < n_groups * width; ++k) {
        for (size_t v = 0; v < 2; ++v) {
            const __m256i bytes = load(planes + k * GROUP + 32 * v);
            store(out + 2 * k * GROUP + 32 * v, _mm256_and_si256(bytes, low));
            store(out + (2 * k + 1) * GROUP + 32 * v, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low));
        }
    }
}

// Distances of 32 V items to both queries, each begun at its bias, from n half bytes: 62 at most. Group g begins at halves + g * stride.
template <size_t V>
RANKBITS_INLINE void two_distances(const uint8_t* halves, size_t stride, const uint8_t* tables, size_t n, __m256i bias_first,
                                   __m256i bias_second, __m256i first[V], __m256i second[V]) {
    const __m256i low = byte(15);
    for (size_t v = 0; v < V; ++v) {
        first[v] = bias_first;
        second[v] = _mm256_setzero_si256();
    }
    const auto at = [&](size_t k, size_t v) { return load(halves + v / 2 * stride + k * GROUP + v % 2 * 32); };
    const auto take = [&](__m256i sum, size_t v) {  // first gathers first + 16 second, modulo 256
        first[v] = _mm256_add_epi8(first[v], sum);
        second[v] = _mm256_add_epi8(second[v], _mm256_and_si256(_mm256_srli_epi16(sum, 4), low));
    };
    size_t k = 0;
#pragma GCC unroll 16
    for (; k + 3 <= n; k += 3) {
        const __m256i one = table_of(tables, k), two = table_of(tables, k + 1), three = table_of(tables, k + 2);
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) {
            const __m256i pair = _mm256_add_epi8(_mm256_shuffle_epi8(one, at(k, v)), _mm256_shuffle_epi8(two, at(k + 1, v)));
            take(_mm256_add_epi8(pair, _mm256_shuffle_epi8(three, at(k + 2, v))), v);
        }
    }
    if (n - k == 2) {
        const __m256i one = table_of(tables, k), two = table_of(tables, k + 1);
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) take(_mm256_add_epi8(_mm256_shuffle_epi8(one, at(k, v)), _mm256_shuffle_epi8(two, at(k + 1, v))), v);
    } else if (n - k == 1) {
        const __m256i one = table_of(tables, k);
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) take(_mm256_shuffle_epi8(one, at(k, v)), v);
    }
    const __m256i high = byte(0xf0);
#pragma GCC unroll 4
    for (size_t v = 0; v < V; ++v) {
        first[v] = _mm256_sub_epi8(first[v], _mm256_and_si256(_mm256_slli_epi16(second[v], 4), high));
        second[v] = _mm256_add_epi8(second[v], bias_second);
    }
}

// Distances of a group to one query, from planes as they are.
RANKBITS_INLINE void one_distance(const uint8_t* planes, const uint8_t* tables, size_t width, __m256i bias, __m256i sums[2]) {
    const __m256i low = byte(15);
    sums[0] = sums[1] = bias;
#pragma GCC unroll 4
    for (size_t k = 0; k < width; ++k) {
        const __m256i one = table_of(tables, 2 * k), two = table_of(tables, 2 * k + 1);
        __builtin_prefetch(planes + k * GROUP + AHEAD);
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
            const __m256i bytes = load(planes + k * GROUP + 32 * v);
            const __m256i near = _mm256_shuffle_epi8(one, _mm256_and_si256(bytes, low));
            const __m256i far = _mm256_shuffle_epi8(two, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low));
            sums[v] = _mm256_add_epi8(sums[v], _mm256_add_epi8(near, far));
        }
    }
}

// A limit as a bias: with 127 - limit added, a distance within the limit leaves the top bit of its byte clear, one beyond it sets it.
// That holds up to 127 bits, and up to 128 but for limit -1. Longer codes compare instead.
struct Limit {
    __m256i bias, most;
    int subtract;
    bool is_biased;

    RANKBITS_INLINE Limit(int limit, bool bias_it) : is_biased(bias_it) {
        subtract = is_biased ? 127 - (limit < -1 ? -1 : limit) : 0;
        bias = byte(subtract);
        most = byte(limit < 0 ? 0 : limit > 255 ? 255 : limit);
    }

    // Top bits set where a distance is beyond the limit.
    RANKBITS_INLINE __m256i beyond(__m256i sums) const {
        if (is_biased) return sums;
        return _mm256_xor_si256(_mm256_cmpeq_epi8(_mm256_min_epu8(sums, most), sums), byte(255));
    }
};

// Writes what is within the limit among 32 V items that begin at position. Mostly that is one item, and which of them cannot be foreseen:
// so there is one loop over all of their bits, whose end is foreseen, instead of a branch for every vector.
template <size_t V>
RANKBITS_INLINE Hit* take_hits(const __m256i sums[V], const Limit& limit, size_t position, Hit* hit) {
    alignas(32) uint8_t distance[32 * V];
    uint64_t within[2] = {0, 0};
#pragma GCC unroll 4
    for (size_t v = 0; v < V; ++v) {
        store(distance + 32 * v, _mm256_sub_epi8(sums[v], byte(limit.subtract)));
        const uint32_t bits = ~static_cast<uint32_t>(_mm256_movemask_epi8(limit.beyond(sums[v])));
        within[v / 2] |= static_cast<uint64_t>(bits) << (32 * (v % 2));
    }
    uint64_t first = within[0], second = within[1];
    do {
        const bool is_first = first != 0;
        const uint64_t word = is_first ? first : second, rest = word & (word - 1);
        const size_t i = static_cast<size_t>(__builtin_ctzll(word)) + (is_first ? 0 : 64);
        *hit++ = {static_cast<uint16_t>(position + i), distance[i]};
        second = is_first ? second : rest;
        first = is_first ? rest : 0;
    } while (first | second);
    return hit;
}

template <size_t V>
RANKBITS_INLINE Hit* emit(const __m256i sums[V], const Limit& limit, size_t position, Hit* hit) {
    __m256i all = limit.beyond(sums[0]);
#pragma GCC unroll 4
    for (size_t v = 1; v < V; ++v) all = _mm256_and_si256(all, limit.beyond(sums[v]));
    if (__builtin_expect(_mm256_movemask_epi8(all) == -1, 1)) return hit;
    return take_hits<V>(sums, limit, position, hit);
}

// Hits of one query in a tile, step by step of 128 items: each step is looked at as soon as its distances are there.
class AtOnce {
public:
    explicit AtOnce(Hit* hit) : hit_(hit) {}

    RANKBITS_INLINE void add(const __m256i sums[4], const Limit& limit, size_t position) { hit_ = emit<4>(sums, limit, position, hit_); }
    RANKBITS_INLINE Hit* finish(const Limit&) { return hit_; }

private:
    Hit* hit_;
};

// The same, but steps with hits are set aside until the end. Whether a step has any cannot be foreseen, and a branch that is foreseen
// wrongly loses what has been begun of the next steps: with short codes, more than it takes to store all distances of every step.
class SetAside {
public:
    explicit SetAside(Hit* hit) : hit_(hit) {}

    RANKBITS_INLINE void add(const __m256i sums[4], const Limit& limit, size_t position) {
        __m256i all = limit.beyond(sums[0]);
        store(sums_[n_], sums[0]);
#pragma GCC unroll 4
        for (size_t v = 1; v < 4; ++v) {
            all = _mm256_and_si256(all, limit.beyond(sums[v]));
            store(sums_[n_] + 32 * v, sums[v]);
        }
        positions_[n_] = position;
        n_ += _mm256_movemask_epi8(all) != -1;  // or the next step overwrites this one
    }

    RANKBITS_INLINE Hit* finish(const Limit& limit) {
        for (size_t i = 0; i < n_; ++i) {
            const __m256i sums[4] = {load(sums_[i]), load(sums_[i] + 32), load(sums_[i] + 64), load(sums_[i] + 96)};
            hit_ = take_hits<4>(sums, limit, positions_[i], hit_);
        }
        return hit_;
    }

private:
    static constexpr size_t STEP = 128;  // items

    alignas(32) uint8_t sums_[MAX_TILE / STEP][STEP];
    size_t positions_[MAX_TILE / STEP];
    size_t n_ = 0;
    Hit* hit_;
};

constexpr size_t SHORT = 4;  // bytes: codes whose hits are set aside

// W is the width where it is known when compiling, else 0.
template <size_t W, bool IsBiased>
void two_of_width(const uint8_t* halves, size_t n_groups, size_t width, const uint8_t* tables, const int limits[2], Hit* const out[2],
                  size_t n_hits[2]) {
    using Taken = std::conditional_t<W != 0 && W <= SHORT, SetAside, AtOnce>;
    const size_t n = 2 * (W ? W : width), stride = n * GROUP;
    const Limit first_limit(limits[0], IsBiased), second_limit(limits[1], IsBiased);
    Taken first_taken(out[0]), second_taken(out[1]);
    size_t g = 0;
    for (; g + 2 <= n_groups; g += 2) {
        __m256i first[4], second[4];
        asm("" : "+r"(tables));  // a table is loaded anew in each step: there are not enough registers to keep them, and copies gain nothing
        two_distances<4>(halves + g * stride, stride, tables, n, first_limit.bias, second_limit.bias, first, second);
        first_taken.add(first, first_limit, g * GROUP);
        second_taken.add(second, second_limit, g * GROUP);
    }
    Hit *first_hit = first_taken.finish(first_limit), *second_hit = second_taken.finish(second_limit);
    if (g < n_groups) {
        __m256i first[2], second[2];
        two_distances<2>(halves + g * stride, stride, tables, n, first_limit.bias, second_limit.bias, first, second);
        first_hit = emit<2>(first, first_limit, g * GROUP, first_hit);
        second_hit = emit<2>(second, second_limit, g * GROUP, second_hit);
    }
    n_hits[0] = static_cast<size_t>(first_hit - out[0]);
    n_hits[1] = static_cast<size_t>(second_hit - out[1]);
}

// One group after the other, front to back, or memory would not come as fast as it can.
template <size_t W, bool IsBiased>
size_t one_of_width(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int some_limit, Hit* out) {
    const size_t w = W ? W : width;
    const Limit limit(some_limit, IsBiased);
    Hit* hit = out;
    for (size_t g = 0; g < n_groups; ++g) {
        __m256i sums[2];
        one_distance(planes + g * w * GROUP, tables, w, limit.bias, sums);
        hit = emit<2>(sums, limit, g * GROUP, hit);
    }
    return static_cast<size_t>(hit - out);
}

// Distances of a group to one query whose codes have more than 248 bits: bytes over 31 planes at a time, gathered in words.
class LongDistances {
public:
    RANKBITS_INLINE void add(const __m256i sums[2]) {
        const __m256i zero = _mm256_setzero_si256();
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
            words_[2 * v] = _mm256_add_epi16(words_[2 * v], _mm256_unpacklo_epi8(sums[v], zero));
            words_[2 * v + 1] = _mm256_add_epi16(words_[2 * v + 1], _mm256_unpackhi_epi8(sums[v], zero));
        }
    }

    RANKBITS_INLINE Hit* emit(int limit, size_t position, Hit* hit) const {
        const __m256i most = _mm256_set1_epi16(static_cast<short>(limit < -1 ? -1 : limit > 0x7fff ? 0x7fff : limit));
        __m256i all = _mm256_cmpgt_epi16(words_[0], most);
#pragma GCC unroll 4
        for (size_t v = 1; v < 4; ++v) all = _mm256_and_si256(all, _mm256_cmpgt_epi16(words_[v], most));
        if (__builtin_expect(_mm256_movemask_epi8(all) == -1, 1)) return hit;
        return take_hits(limit, position, hit);
    }

private:
    Hit* take_hits(int limit, size_t position, Hit* hit) const {
        alignas(32) uint16_t distance[GROUP];
        for (size_t v = 0; v < 2; ++v) {  // unpacking had left them in order within lanes only
            store(distance + 32 * v, _mm256_permute2x128_si256(words_[2 * v], words_[2 * v + 1], 0x20));
            store(distance + 32 * v + 16, _mm256_permute2x128_si256(words_[2 * v], words_[2 * v + 1], 0x31));
        }
        for (size_t i = 0; i < GROUP; ++i) {
            *hit = {static_cast<uint16_t>(position + i), distance[i]};
            hit += distance[i] <= limit;
        }
        return hit;
    }

    __m256i words_[4] = {};
};

// Calls run(k, n) for planes k to k + n, at most 31 at a time.
template <class Run>
RANKBITS_INLINE void each_run(size_t width, Run run) {
    for (size_t k = 0; k < width; k += BYTE_PLANES) run(k, width - k < BYTE_PLANES ? width - k : BYTE_PLANES);
}

size_t one_long(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, Hit* out) {
    Hit* hit = out;
    for (size_t g = 0; g < n_groups; ++g) {
        const uint8_t* group = planes + g * width * GROUP;
        LongDistances distances;
        each_run(width, [&](size_t k, size_t n) {
            __m256i sums[2];
            one_distance(group + k * GROUP, tables + 32 * k, n, _mm256_setzero_si256(), sums);
            distances.add(sums);
        });
        hit = distances.emit(limit, g * GROUP, hit);
    }
    return static_cast<size_t>(hit - out);
}

void two_long(const uint8_t* halves, size_t n_groups, size_t width, const uint8_t* tables, const int limits[2], Hit* const out[2],
              size_t n_hits[2]) {
    Hit *first_hit = out[0], *second_hit = out[1];
    const __m256i zero = _mm256_setzero_si256();
    for (size_t g = 0; g < n_groups; ++g) {
        const uint8_t* group = halves + g * 2 * width * GROUP;
        LongDistances first, second;
        each_run(width, [&](size_t k, size_t n) {
            __m256i first_sums[2], second_sums[2];
            two_distances<2>(group + 2 * k * GROUP, 0, tables + 32 * k, 2 * n, zero, zero, first_sums, second_sums);
            first.add(first_sums);
            second.add(second_sums);
        });
        first_hit = first.emit(limits[0], g * GROUP, first_hit);
        second_hit = second.emit(limits[1], g * GROUP, second_hit);
    }
    n_hits[0] = static_cast<size_t>(first_hit - out[0]);
    n_hits[1] = static_cast<size_t>(second_hit - out[1]);
}

void near_two(const uint8_t* halves, size_t n_groups, size_t width, const uint8_t* tables, const int limits[2], Hit* const out[2],
              size_t n_hits[2]) {
    if (width > BYTE_PLANES) return two_long(halves, n_groups, width, tables, limits, out, n_hits);
    if (width > 16 || limits[0] > 127 || limits[1] > 127) return two_of_width<0, false>(halves, n_groups, width, tables, limits, out, n_hits);
    switch (width) {
        case 1: return two_of_width<1, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 2: return two_of_width<2, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 3: return two_of_width<3, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 4: return two_of_width<4, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 6: return two_of_width<6, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 8: return two_of_width<8, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 12: return two_of_width<12, true>(halves, n_groups, width, tables, limits, out, n_hits);
        case 16: return two_of_width<16, true>(halves, n_groups, width, tables, limits, out, n_hits);
        default: return two_of_width<0, true>(halves, n_groups, width, tables, limits, out, n_hits);
    }
}

size_t near_one(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, Hit* out) {
    if (width > BYTE_PLANES) return one_long(planes, n_groups, width, tables, limit, out);
    if (width > 16 || limit > 127) return one_of_width<0, false>(planes, n_groups, width, tables, limit, out);
    switch (width) {
        case 2: return one_of_width<2, true>(planes, n_groups, width, tables, limit, out);
        case 4: return one_of_width<4, true>(planes, n_groups, width, tables, limit, out);
        case 8: return one_of_width<8, true>(planes, n_groups, width, tables, limit, out);
        case 16: return one_of_width<16, true>(planes, n_groups, width, tables, limit, out);
        default: return one_of_width<0, true>(planes, n_groups, width, tables, limit, out);
    }
}

}  // namespace

const NearKernels* avx2_near_kernels() {
    static constexpr NearKernels TABLE{tables_bytes, make_tables, split_bytes, split, near_two, near_one};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") ? &TABLE : nullptr;
}

}  // namespace rankbits
#else
namespace rankbits {

const NearKernels* avx2_near_kernels() { return nullptr; }

}  // namespace rankbits
#endif
