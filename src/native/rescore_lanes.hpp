// Scores of a row for some queries, compiled once for each instruction set. Eight sums side by side, added up in one order: vectors of the
// compiler give each lane the same operations under every instruction set, and nothing is contracted into multiply-adds. Four queries at a
// time share what is read of the row, and their sums do not wait for each other.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "rescore.hpp"

namespace rankbits {
namespace {

constexpr size_t LANES = 4, STEP = 2 * LANES, TILE = 4;
using Doubles = double __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(16)));
using Words = uint32_t __attribute__((vector_size(16)));
using Integers = int32_t __attribute__((vector_size(16)));

struct Half {
    uint16_t bits;
};

// A half becomes a float by moving its bits and multiplying by 2^112, which is exact also for the smallest; infinity and NaN are put right.
inline Floats widened(Words half) {
    const Words rest = half & 0x7fff, is_special = reinterpret_cast<Words>(rest >= 0x7c00);
    const Floats scaled = reinterpret_cast<Floats>(rest << 13) * 0x1p112f;
    return reinterpret_cast<Floats>(reinterpret_cast<Words>(scaled) | (is_special & 0x7f800000) | (half & 0x8000) << 16);
}

inline Doubles load(const double* p) {
    Doubles numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return numbers;
}

inline Doubles load(const float* p) {
#if defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));  // which the compiler makes of two halves otherwise
#else
    Floats numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return __builtin_convertvector(numbers, Doubles);
#endif
}

inline Doubles load(const Half* p) {
    return __builtin_convertvector(widened(Words{p[0].bits, p[1].bits, p[2].bits, p[3].bits}), Doubles);
}

template <class Byte>
inline Doubles load(const Byte* p) {
    return __builtin_convertvector((Integers{p[0], p[1], p[2], p[3]}), Doubles);
}

// Eight sums side by side.
struct Sums {
    Doubles half[2] = {{}, {}};

    double total() const {
        const Doubles both = half[0] + half[1];
        return (both[0] + both[2]) + (both[1] + both[3]);
    }
};

// Calls add(i, half, x, q) for four numbers of the row and of query i at a time, in turn for the two halves of sums; behind the last stand
// zeros.
template <size_t N, class T, class Add>
inline void each_four(const T* row, const double* const* queries, size_t d, Add add) {
    size_t k = 0;
    for (; k + STEP <= d; k += STEP) {
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) {
            const Doubles x = load(row + k + half * LANES);
#pragma GCC unroll 4
            for (size_t i = 0; i < N; ++i) add(i, half, x, load(queries[i] + k + half * LANES));
        }
    }
    if (k == d) return;
    T numbers[STEP] = {};
    for (size_t rest = 0; k + rest < d; ++rest) numbers[rest] = row[k + rest];
#pragma GCC unroll 4
    for (size_t i = 0; i < N; ++i) {
        double query_numbers[STEP] = {};
        for (size_t rest = 0; k + rest < d; ++rest) query_numbers[rest] = queries[i][k + rest];
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) add(i, half, load(numbers + half * LANES), load(query_numbers + half * LANES));
    }
}

struct SumsOfSquares {
    template <size_t N, class T>
    static void scores(const T* row, const double* const* queries, size_t d, double* scores) {
        Sums sums[N];
        each_four<N>(row, queries, d, [&](size_t i, size_t half, Doubles x, Doubles q) { sums[i].half[half] += (x - q) * (x - q); });
#pragma GCC unroll 4
        for (size_t i = 0; i < N; ++i) scores[i] = std::sqrt(sums[i].total());
    }
};

struct Products {
    template <size_t N, class T>
    static void scores(const T* row, const double* const* queries, size_t d, double* scores) {
        Sums sums[N];
        each_four<N>(row, queries, d, [&](size_t i, size_t half, Doubles x, Doubles q) { sums[i].half[half] += x * q; });
#pragma GCC unroll 4
        for (size_t i = 0; i < N; ++i) scores[i] = -sums[i].total();
    }
};

// All queries, a tile of them at a time.
template <class Kind, class T>
inline void score_tiles(const T* row, const double* const* queries, size_t n, size_t d, double* scores) {
    size_t q = 0;
    for (; q + TILE <= n; q += TILE) Kind::template scores<TILE>(row, queries + q, d, scores + q);
    for (; q < n; ++q) Kind::template scores<1>(row, queries + q, d, scores + q);
}

template <class Kind, class T>
void score_all(const void* row, const double* const* queries, size_t n, size_t d, double* scores) {
    score_tiles<Kind>(static_cast<const T*>(row), queries, n, d, scores);
}

// The same of a row divided by its largest number, whose squares would overflow or vanish.
template <class T>
double scaled_cosine(const T* row, const double* query, size_t d) {
    double largest = 0.0;
    each_four<1>(row, &query, d, [&](size_t, size_t, Doubles x, Doubles) {
        for (size_t lane = 0; lane < LANES; ++lane) largest = std::fmax(largest, std::fabs(x[lane]));
    });
    if (largest == 0.0) return 1.0;
    Sums products, squares;
    each_four<1>(row, &query, d, [&](size_t, size_t half, Doubles x, Doubles q) {
        products.half[half] += x / largest * q;
        squares.half[half] += x / largest * (x / largest);
    });
    return 1.0 - products.total() / std::sqrt(squares.total());
}

// Queries are of length 1, or zero.
template <class T>
void cosines(const void* from, const double* const* queries, size_t n, size_t d, double* scores) {
    const T* row = static_cast<const T*>(from);
    Sums squares;
    each_four<1>(row, queries, d, [&](size_t, size_t half, Doubles x, Doubles) { squares.half[half] += x * x; });
    const double square = squares.total();
    if (square >= 1e-200 && square <= 1e200) {
        score_tiles<Products>(row, queries, n, d, scores);
        for (size_t q = 0; q < n; ++q) scores[q] = 1.0 + scores[q] / std::sqrt(square);
    } else {
        for (size_t q = 0; q < n; ++q) scores[q] = scaled_cosine(row, queries[q], d);
    }
}

// Called for few rows only.
template <class T>
bool is_finite(const void* row, size_t d) {
    const T* numbers = static_cast<const T*>(row);
    double sum = 0.0;
    for (size_t i = 0; i < d; ++i) {
        const T four[LANES] = {numbers[i], numbers[i], numbers[i], numbers[i]};
        sum += load(four)[0] * 0.0;
    }
    return sum == 0.0;
}

template <class T>
constexpr void set(ScoreKernels& kernels, Number number) {
    const auto n = static_cast<size_t>(number);
    kernels.score[n][static_cast<size_t>(Metric::l2)] = score_all<SumsOfSquares, T>;
    kernels.score[n][static_cast<size_t>(Metric::ip)] = score_all<Products, T>;
    kernels.score[n][static_cast<size_t>(Metric::cosine)] = cosines<T>;
    kernels.is_finite[n] = is_finite<T>;
}

inline ScoreKernels score_kernels_here() {
    ScoreKernels kernels{};
    set<Half>(kernels, Number::half);
    set<float>(kernels, Number::single);
    set<double>(kernels, Number::whole);
    set<int8_t>(kernels, Number::int8);
    set<uint8_t>(kernels, Number::uint8);
    return kernels;
}

}  // namespace
}  // namespace rankbits
