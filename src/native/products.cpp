#include "products.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t ROWS_A_SHARE = 64;

const ProductKernels& product_kernels() {
    const ProductKernels *avx2 = avx2_product_kernels(), *avx512 = avx512_product_kernels();
    if (avx512 && &kernels() == avx512_kernels()) return *avx512;
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_product_kernels();
}

}  // namespace

template <class T>
bool multiply_rows(const ProductRows<T>& rows, const double* queries, size_t n_queries, double* products, double* squares, Workers& workers) {
    const ProductKernels& run = product_kernels();
    const size_t stride = (rows.d + QUERY_PADDING - 1) / QUERY_PADDING * QUERY_PADDING;
    std::vector<double> padded(n_queries * stride);
    for (size_t q = 0; q < n_queries; ++q) std::copy_n(queries + q * rows.d, rows.d, padded.data() + q * stride);
    const ProductQueries own{padded.data(), n_queries, stride};
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        for (size_t first; (first = next.fetch_add(ROWS_A_SHARE)) < rows.n_rows;) {  // each row owns its products: no race
            if (workers.stopped(w)) return;
            const size_t last = std::min(first + ROWS_A_SHARE, rows.n_rows);
            if constexpr (std::is_same_v<T, float>) {
                run.multiply_single(rows, own, first, last, products, squares);
            } else {
                run.multiply_double(rows, own, first, last, products, squares);
            }
        }
    });
}

template bool multiply_rows(const ProductRows<float>&, const double*, size_t, double*, double*, Workers&);
template bool multiply_rows(const ProductRows<double>&, const double*, size_t, double*, double*, Workers&);

}  // namespace rankbits
