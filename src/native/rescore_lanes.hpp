// Scores of one pair, compiled once for each instruction set. Eight sums side by side, added up in one order: vectors of the compiler give
// each lane the same operations under every instruction set, and nothing is contracted into multiply-adds.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>

#include "rescore.hpp"

namespace rankbits {
namespace {

constexpr size_t LANES = 4, STEP = 2 * LANES;
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
    Floats numbers;
    std::memcpy(&numbers, p, sizeof(numbers));
    return __builtin_convertvector(numbers, Doubles);
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

// Calls add(half, x, q) for four numbers of the row and the query at a time, in turn for the two halves of sums; behind the last stand zeros.
template <class T, class Add>
inline void each_four(const T* row, const double* query, size_t d, Add add) {
    size_t i = 0;
    for (; i + STEP <= d; i += STEP) {
        add(0, load(row + i), load(query + i));
        add(1, load(row + i + LANES), load(query + i + LANES));
    }
    if (i == d) return;
    T numbers[STEP] = {};
    double query_numbers[STEP] = {};
    for (size_t rest = 0; i + rest < d; ++rest) {
        numbers[rest] = row[i + rest];
        query_numbers[rest] = query[i + rest];
    }
    add(0, load(numbers), load(query_numbers));
    add(1, load(numbers + LANES), load(query_numbers + LANES));
}

template <class T>
double l2(const void* row, const double* query, size_t d) {
    Sums sums;
    each_four(static_cast<const T*>(row), query, d, [&](size_t half, Doubles x, Doubles q) { sums.half[half] += (x - q) * (x - q); });
    return std::sqrt(sums.total());
}

template <class T>
double ip(const void* row, const double* query, size_t d) {
    Sums sums;
    each_four(static_cast<const T*>(row), query, d, [&](size_t half, Doubles x, Doubles q) { sums.half[half] += x * q; });
    return -sums.total();
}

// The query is of length 1, or zero. Only where squares of the row overflow or vanish, it is scaled first.
template <class T>
double cosine(const void* row, const double* query, size_t d) {
    Sums products, squares;
    each_four(static_cast<const T*>(row), query, d, [&](size_t half, Doubles x, Doubles q) {
        products.half[half] += x * q;
        squares.half[half] += x * x;
    });
    const double square = squares.total();
    if (square >= 1e-200 && square <= 1e200) return 1.0 - products.total() / std::sqrt(square);
    double largest = 0.0;
    each_four(static_cast<const T*>(row), query, d, [&](size_t, Doubles x, Doubles) {
        for (size_t lane = 0; lane < LANES; ++lane) largest = std::fmax(largest, std::fabs(x[lane]));
    });
    if (largest == 0.0) return 1.0;
    products = squares = Sums();
    each_four(static_cast<const T*>(row), query, d, [&](size_t half, Doubles x, Doubles q) {
        products.half[half] += x / largest * q;
        squares.half[half] += x / largest * (x / largest);
    });
    return 1.0 - products.total() / std::sqrt(squares.total());
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
    kernels.score[n][static_cast<size_t>(Metric::l2)] = l2<T>;
    kernels.score[n][static_cast<size_t>(Metric::ip)] = ip<T>;
    kernels.score[n][static_cast<size_t>(Metric::cosine)] = cosine<T>;
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
