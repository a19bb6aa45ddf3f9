// Products of a few queries with a few rows, compiled once for each instruction set. LANE_BYTES says how wide its vectors are.
//
// Rows are read where they are and as they are: lanes hold neighboring numbers of one row. A tile of QUERIES x LANES sums stays in
// registers while the numbers go by, so that a load feeds three multiply-adds and those bound the speed; then a tree of shuffles turns the
// LANES sums of a query into one vector of products.
#pragma once
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "products.hpp"

namespace rankbits {
namespace {

constexpr size_t LANES = LANE_BYTES / sizeof(double);
constexpr size_t QUERIES = 3, LINE = 64;
using Doubles = double __attribute__((vector_size(LANE_BYTES)));
using Floats = float __attribute__((vector_size(LANE_BYTES / 2)));
using Places = long long __attribute__((vector_size(LANE_BYTES)));

inline Doubles load(const double* p) {
    Doubles numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return numbers;
}

inline Doubles load(const float* p) {
#if LANE_BYTES == 64
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));  // which the compiler makes of two halves otherwise
#elif defined(__AVX2__)
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    Floats numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return __builtin_convertvector(numbers, Doubles);
#endif
}

// Lanes of a and b in turn, WIDTH at a time: from each pair of runs in a vector the first, or the second.
template <size_t WIDTH>
inline Doubles half_of(Doubles a, Doubles b, bool is_second) {
    Places places{};
    for (size_t lane = 0; lane < LANES; ++lane) {
        const size_t run = lane / WIDTH * WIDTH, is_of_b = run / WIDTH % 2;
        const size_t start = lane / (2 * WIDTH) * (2 * WIDTH);
        places[lane] = static_cast<long long>(is_of_b * LANES + start + is_second * WIDTH + lane % WIDTH);
    }
    return __builtin_shuffle(a, b, places);
}

template <size_t WIDTH, size_t N>
inline Doubles totals_of(const Doubles (&sums)[N]) {
    if constexpr (N == 1) {
        return sums[0];
    } else {
        Doubles halves[N / 2];
        for (size_t i = 0; i < N / 2; ++i) {
            const Doubles a = sums[2 * i], b = sums[2 * i + 1];
            halves[i] = half_of<WIDTH>(a, b, false) + half_of<WIDTH>(a, b, true);
        }
        return totals_of<2 * WIDTH>(halves);
    }
}

// Calls add(lanes of each row, place) until all numbers have gone by; behind the last number stand zeros.
template <class T, class Add>
inline void each_place(const T* const (&rows)[LANES], size_t d, Add add) {
    size_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        add([&](size_t i) { return load(rows[i] + k); }, k);
    }
    if (k == d) return;
    T rest[LANES][LANES] = {};
    for (size_t i = 0; i < LANES; ++i) std::memcpy(rest[i], rows[i] + k, (d - k) * sizeof(T));
    add([&](size_t i) { return load(rest[i]); }, k);
}

template <size_t N, class T>
inline void multiply_tile(const T* const (&rows)[LANES], size_t d, const double* queries, size_t stride, Doubles* totals) {
    Doubles sums[N][LANES] = {};
    each_place(rows, d, [&](auto numbers_of, size_t k) __attribute__((always_inline)) {
        Doubles query[N];
        for (size_t q = 0; q < N; ++q) query[q] = load(queries + q * stride + k);
        for (size_t i = 0; i < LANES; ++i) {
            const Doubles numbers = numbers_of(i);
            for (size_t q = 0; q < N; ++q) sums[q][i] += query[q] * numbers;
        }
    });
    for (size_t q = 0; q < N; ++q) totals[q] = totals_of<1>(sums[q]);
}

template <class T>
inline Doubles squares_of(const T* const (&rows)[LANES], size_t d) {
    Doubles sums[LANES] = {};
    each_place(rows, d, [&](auto numbers_of, size_t) __attribute__((always_inline)) {
        for (size_t i = 0; i < LANES; ++i) {
            const Doubles numbers = numbers_of(i);
            sums[i] += numbers * numbers;
        }
    });
    return totals_of<1>(sums);
}

template <class T>
void multiply(const ProductRows<T>& rows, const ProductQueries& queries, size_t first, size_t last, double* products, double* squares) {
    // Each group of queries asks for its share of the next rows; more at a time would wait for the memory.
    const size_t n_groups = queries.n / QUERIES + 1, bytes_ahead = (LANES * rows.d * sizeof(T) / n_groups / LINE + 1) * LINE;
    for (size_t row = first; row < last; row += LANES) {
        const size_t n_here = last - row < LANES ? last - row : LANES, bytes = n_here * sizeof(double);
        const T* own[LANES];  // the last row stands in for those behind it
        for (size_t i = 0; i < LANES; ++i) own[i] = rows.rows + (row + (i < n_here ? i : n_here - 1)) * rows.d;
        const Doubles own_squares = squares_of(own, rows.d);
        std::memcpy(squares + row, &own_squares, bytes);
        Doubles totals[QUERIES];
        const char *ahead = reinterpret_cast<const char*>(own[0] + LANES * rows.d), *end = ahead + LANES * rows.d * sizeof(T);
        for (size_t q = 0; q < queries.n; q += QUERIES) {
            const size_t n_queries = queries.n - q < QUERIES ? queries.n - q : QUERIES;
            const double* numbers = queries.numbers + q * queries.stride;
            for (const char* stop = ahead + bytes_ahead; ahead < stop && ahead < end; ahead += LINE) __builtin_prefetch(ahead);
            if (n_queries == 3) multiply_tile<3>(own, rows.d, numbers, queries.stride, totals);
            if (n_queries == 2) multiply_tile<2>(own, rows.d, numbers, queries.stride, totals);
            if (n_queries == 1) multiply_tile<1>(own, rows.d, numbers, queries.stride, totals);
            for (size_t i = 0; i < n_queries; ++i) std::memcpy(products + (q + i) * rows.n_rows + row, &totals[i], bytes);
        }
    }
}

constexpr ProductKernels PRODUCT_KERNELS{multiply<float>, multiply<double>};

}  // namespace
}  // namespace rankbits
