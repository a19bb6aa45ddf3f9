// Sums of real-valued queries under AVX2: a byte shuffle looks 32 items up at once, four look-ups are added as bytes, and these sums in
// words of 16 bits. A word holds two items; one accumulator takes the word as it is, another its upper half, and in the end the second
// is taken out of the first. So a half byte of 32 items costs a shuffle and one and a half further instructions.
#include "real.hpp"

#if defined(__AVX2__)
#include <immintrin.h>

namespace rankbits {
namespace {

#define RANKBITS_INLINE inline __attribute__((always_inline))

constexpr size_t AHEAD = 4096;  // bytes: a lone query waits for memory, which is to be asked for early

RANKBITS_INLINE __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
RANKBITS_INLINE __m256i table_of(const uint8_t* tables, size_t half) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables + 16 * half)));
}

// Half bytes of a group that were split before.
struct Split {
    const uint8_t* halves;
    RANKBITS_INLINE __m256i operator()(size_t half, size_t v) const { return load(halves + half * GROUP + 32 * v); }
};

// The same out of a group's planes.
struct Whole {
    const uint8_t* planes;
    RANKBITS_INLINE __m256i operator()(size_t half, size_t v) const {
        const __m256i bytes = load(planes + half / 2 * GROUP + 32 * v);
        return _mm256_and_si256(half % 2 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
    }
};

struct Sums {
    __m256i words[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};  // of 32 items each: both items of a word, the second 256 fold
    __m256i uppers[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};

    RANKBITS_INLINE void add(size_t v, __m256i bytes) {
        words[v] = _mm256_add_epi16(words[v], bytes);
        uppers[v] = _mm256_add_epi16(uppers[v], _mm256_srli_epi16(bytes, 8));
    }

    // Bit i is set where item i has more than `below`.
    RANKBITS_INLINE uint64_t above(__m256i below) const {
        uint32_t bits[2];
        for (size_t v = 0; v < 2; ++v) {
            const __m256i first = _mm256_sub_epi16(words[v], _mm256_slli_epi16(uppers[v], 8));
            const __m256i is_above = _mm256_blendv_epi8(_mm256_cmpgt_epi16(first, below), _mm256_cmpgt_epi16(uppers[v], below),
                                                        _mm256_set1_epi16(static_cast<short>(0xff00)));
            bits[v] = static_cast<uint32_t>(_mm256_movemask_epi8(is_above));
        }
        return bits[0] | static_cast<uint64_t>(bits[1]) << 32;
    }
};

template <class Halves>
RANKBITS_INLINE Sums sums_of(Halves at, const uint8_t* tables, size_t n_halves) {
    Sums sums;
    size_t half = 0;
#pragma GCC unroll 8
    for (; half + 4 <= n_halves; half += 4) {
        const __m256i table[4] = {table_of(tables, half), table_of(tables, half + 1), table_of(tables, half + 2), table_of(tables, half + 3)};
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
            const __m256i one = _mm256_add_epi8(_mm256_shuffle_epi8(table[0], at(half, v)), _mm256_shuffle_epi8(table[1], at(half + 1, v)));
            const __m256i two = _mm256_add_epi8(_mm256_shuffle_epi8(table[2], at(half + 2, v)), _mm256_shuffle_epi8(table[3], at(half + 3, v)));
            sums.add(v, _mm256_add_epi8(one, two));
        }
    }
    if (half < n_halves) {  // a byte is left: two halves
        const __m256i low = table_of(tables, half), high = table_of(tables, half + 1);
        for (size_t v = 0; v < 2; ++v) sums.add(v, _mm256_add_epi8(_mm256_shuffle_epi8(low, at(half, v)), _mm256_shuffle_epi8(high, at(half + 1, v))));
    }
    return sums;
}

RANKBITS_INLINE uint16_t* write(uint64_t bits, size_t first, uint16_t* next) {
    for (; bits; bits &= bits - 1) *next++ = static_cast<uint16_t>(first + static_cast<size_t>(__builtin_ctzll(bits)));
    return next;
}

template <size_t W>
size_t of_split(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    const size_t n_halves = 2 * (W ? W : width);
    const __m256i below = _mm256_set1_epi16(static_cast<short>(limit - 1));
    uint16_t* next = out;
    for (size_t g = 0; g < n_groups; ++g) {
        next = write(sums_of(Split{split + g * n_halves * GROUP}, tables, n_halves).above(below), g * GROUP, next);
    }
    return static_cast<size_t>(next - out);
}

template <size_t W>
size_t of_planes(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    const size_t w = W ? W : width;
    const __m256i below = _mm256_set1_epi16(static_cast<short>(limit - 1));
    uint16_t* next = out;
    for (size_t g = 0; g < n_groups; ++g) {
        const uint8_t* group = planes + g * w * GROUP;
        for (size_t k = 0; k < w; ++k) __builtin_prefetch(group + k * GROUP + AHEAD);
        next = write(sums_of(Whole{group}, tables, 2 * w).above(below), g * GROUP, next);
    }
    return static_cast<size_t>(next - out);
}

size_t at_least(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    switch (width) {
        case 4: return of_split<4>(split, n_groups, width, tables, limit, out);
        case 8: return of_split<8>(split, n_groups, width, tables, limit, out);
        case 16: return of_split<16>(split, n_groups, width, tables, limit, out);
        default: return of_split<0>(split, n_groups, width, tables, limit, out);
    }
}

size_t at_least_alone(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    switch (width) {
        case 4: return of_planes<4>(planes, n_groups, width, tables, limit, out);
        case 8: return of_planes<8>(planes, n_groups, width, tables, limit, out);
        case 16: return of_planes<16>(planes, n_groups, width, tables, limit, out);
        default: return of_planes<0>(planes, n_groups, width, tables, limit, out);
    }
}

}  // namespace

const RealKernels* avx2_real_kernels() {
    static constexpr RealKernels TABLE{at_least, at_least_alone};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") ? &TABLE : nullptr;
}

}  // namespace rankbits
#else
namespace rankbits {

const RealKernels* avx2_real_kernels() { return nullptr; }

}  // namespace rankbits
#endif
