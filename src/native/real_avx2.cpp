// Sums of real-valued queries under AVX2: a byte shuffle looks 32 items up at once, four look-ups are added as bytes, and these sums in
// words of 16 bits. A word holds two items; one accumulator takes the word as it is, another its upper half, and in the end the second
// is taken out of the first. So a half byte of 32 items costs a shuffle and one and a half further instructions. Two groups at a time
// share the loads of the tables.
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

// Half bytes of groups, which were split before; n_halves of them in each group. Vector v has 32 items, two vectors make a group.
struct Split {
    const uint8_t* halves;
    size_t n_halves;
    RANKBITS_INLINE __m256i operator()(size_t half, size_t v) const { return load(halves + (v / 2 * n_halves + half) * GROUP + 32 * (v % 2)); }
};

// The same out of a group's planes.
struct Whole {
    const uint8_t* planes;
    RANKBITS_INLINE __m256i operator()(size_t half, size_t v) const {
        const __m256i bytes = load(planes + half / 2 * GROUP + 32 * v);
        return _mm256_and_si256(half % 2 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
    }
};

// Sums of 32 items, in words of 16 bits.
struct Sums {
    __m256i words = _mm256_setzero_si256();  // both items of a word, the second 256 fold
    __m256i uppers = _mm256_setzero_si256();

    RANKBITS_INLINE void add(__m256i bytes) {
        words = _mm256_add_epi16(words, bytes);
        uppers = _mm256_add_epi16(uppers, _mm256_srli_epi16(bytes, 8));
    }

    // Bit i is set where item i has more than below: of the words' first items, and of their second ones.
    RANKBITS_INLINE uint64_t above(__m256i below_first, __m256i below_second) const {
        const __m256i first = _mm256_sub_epi16(words, _mm256_slli_epi16(uppers, 8));
        const __m256i is_above = _mm256_blendv_epi8(_mm256_cmpgt_epi16(first, below_first), _mm256_cmpgt_epi16(uppers, below_second),
                                                    _mm256_set1_epi16(static_cast<short>(0xff00)));
        return static_cast<uint32_t>(_mm256_movemask_epi8(is_above));
    }
};

// One limit for all items.
struct OneLimit {
    __m256i below;
    explicit OneLimit(int limit) : below(_mm256_set1_epi16(static_cast<short>(limit - 1))) {}
    RANKBITS_INLINE uint64_t bits(const Sums* sums, size_t) const { return sums[0].above(below, below) | sums[1].above(below, below) << 32; }
};

// One for each item.
struct EachLimit {
    const int16_t* below;
    RANKBITS_INLINE __m256i at(size_t place) const { return load(reinterpret_cast<const uint8_t*>(below + place)); }
    RANKBITS_INLINE uint64_t bits(const Sums* sums, size_t g) const {
        const size_t place = g * GROUP;
        return sums[0].above(at(place), at(place + 16)) | sums[1].above(at(place + 32), at(place + 48)) << 32;
    }
};

// Sums of V vectors, which share the loads of the tables.
template <size_t V, class Halves>
RANKBITS_INLINE void add_up(Halves at, const uint8_t* tables, size_t n_halves, Sums (&sums)[V]) {
#pragma GCC unroll 8
    for (size_t first = 0; first < n_halves; first += 4) {
        const size_t last = first + 4 <= n_halves ? first + 4 : n_halves;  // two halves are left where the number of bytes is odd
        __m256i bytes[V];
        const auto entries = [&](size_t half, size_t v) { return _mm256_shuffle_epi8(table_of(tables, half), at(half, v)); };
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) bytes[v] = entries(first, v);
#pragma GCC unroll 4
        for (size_t half = first + 1; half < last; ++half) {
#pragma GCC unroll 4
            for (size_t v = 0; v < V; ++v) bytes[v] = _mm256_add_epi8(bytes[v], entries(half, v));
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < V; ++v) sums[v].add(bytes[v]);
    }
}

RANKBITS_INLINE uint16_t* write(uint64_t bits, size_t first, uint16_t* next) {
    for (; bits; bits &= bits - 1) *next++ = static_cast<uint16_t>(first + static_cast<size_t>(__builtin_ctzll(bits)));
    return next;
}

template <size_t W, class Limit>
size_t of_split(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, Limit limit, uint16_t* out) {
    const size_t n_halves = 2 * (W ? W : width);
    uint16_t* next = out;
    size_t g = 0;
    for (; g + 2 <= n_groups; g += 2) {
        Sums sums[4];
        add_up(Split{split + g * n_halves * GROUP, n_halves}, tables, n_halves, sums);
        next = write(limit.bits(sums, g), g * GROUP, next);
        next = write(limit.bits(sums + 2, g + 1), (g + 1) * GROUP, next);
    }
    if (g < n_groups) {
        Sums sums[2];
        add_up(Split{split + g * n_halves * GROUP, n_halves}, tables, n_halves, sums);
        next = write(limit.bits(sums, g), g * GROUP, next);
    }
    return static_cast<size_t>(next - out);
}

template <size_t W>
size_t of_planes(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    const size_t w = W ? W : width;
    const OneLimit one(limit);
    uint16_t* next = out;
    for (size_t g = 0; g < n_groups; ++g) {
        const uint8_t* group = planes + g * w * GROUP;
        for (size_t k = 0; k < w; ++k) __builtin_prefetch(group + k * GROUP + AHEAD);
        Sums sums[2];
        add_up(Whole{group}, tables, 2 * w, sums);
        next = write(one.bits(sums, g), g * GROUP, next);
    }
    return static_cast<size_t>(next - out);
}

template <class Limit>
size_t of_split_width(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, Limit limit, uint16_t* out) {
    switch (width) {
        case 4: return of_split<4>(split, n_groups, width, tables, limit, out);
        case 8: return of_split<8>(split, n_groups, width, tables, limit, out);
        case 16: return of_split<16>(split, n_groups, width, tables, limit, out);
        default: return of_split<0>(split, n_groups, width, tables, limit, out);
    }
}

size_t at_least(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    return of_split_width(split, n_groups, width, tables, OneLimit(limit), out);
}

size_t above_each(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, const int16_t* below, uint16_t* out) {
    return of_split_width(split, n_groups, width, tables, EachLimit{below}, out);
}

// Eight limits as whole numbers, each one more than it is to be.
RANKBITS_INLINE __m256i limits_of(const float* slopes, const float* shifts, __m256 least, __m256 scale, __m256 shift) {
    const __m256 score = _mm256_sub_ps(_mm256_mul_ps(least, _mm256_loadu_ps(slopes)), _mm256_loadu_ps(shifts));
    __m256 limit = _mm256_sub_ps(_mm256_mul_ps(score, scale), shift);
    limit = _mm256_max_ps(limit, _mm256_set1_ps(-1.0f));  // also where it is not a number
    limit = _mm256_min_ps(limit, _mm256_set1_ps(MAX_SUM - 1));
    return _mm256_cvttps_epi32(_mm256_add_ps(limit, _mm256_set1_ps(1.0f)));
}

// n is a multiple of 16.
void set_below(const float* slopes, const float* shifts, size_t n, float least, float scale, float shift, int16_t* below) {
    const __m256 leasts = _mm256_set1_ps(least), scales = _mm256_set1_ps(scale), shifts_of_all = _mm256_set1_ps(shift);
    for (size_t i = 0; i < n; i += 16) {
        const __m256i first = limits_of(slopes + i, shifts + i, leasts, scales, shifts_of_all);
        const __m256i second = limits_of(slopes + i + 8, shifts + i + 8, leasts, scales, shifts_of_all);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(below + i), _mm256_sub_epi16(words, _mm256_set1_epi16(1)));
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
    static constexpr RealKernels TABLE{at_least, at_least_alone, above_each, set_below};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") ? &TABLE : nullptr;
}

}  // namespace rankbits
#else
namespace rankbits {

const RealKernels* avx2_real_kernels() { return nullptr; }

}  // namespace rankbits
#endif
