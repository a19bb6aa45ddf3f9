// Inner products of all queries with a run of rows, in double precision.
//
// Sums are in any order, so that their last bits differ between instruction sets: whoever needs an order bounds their error, which is at
// most d 2^-53 |q| |x| for d numbers.
#pragma once
#include <cstddef>

#include "workers.hpp"

namespace rankbits {

template <class T>  // float or double
struct ProductRows {
    const T* rows;  // n_rows of d numbers
    size_t n_rows, d;
};

struct ProductQueries {
    const double* numbers;  // stride for each query, zero from d on
    size_t n, stride;
};

// For the rows from first to last: products[q * n_rows + row] and squares[row], the product of a row with itself.
struct ProductKernels {
    void (*multiply_single)(const ProductRows<float>&, const ProductQueries&, size_t first, size_t last, double* products, double* squares);
    void (*multiply_double)(const ProductRows<double>&, const ProductQueries&, size_t first, size_t last, double* products, double* squares);
};

constexpr size_t QUERY_PADDING = 8;  // numbers of which stride is a multiple

const ProductKernels& portable_product_kernels();
const ProductKernels* avx2_product_kernels();    // null where the compiler or the CPU has no AVX2 and FMA
const ProductKernels* avx512_product_kernels();  // null where the compiler or the CPU has no AVX-512

// Queries of d numbers each. False if stopped.
template <class T>
bool multiply_rows(const ProductRows<T>& rows, const double* queries, size_t n_queries, double* products, double* squares, Workers& workers);

}  // namespace rankbits
