#if defined(__AVX512F__)
#define LANE_BYTES 64
#include "products_lanes.hpp"

namespace rankbits {

const ProductKernels* avx512_product_kernels() {
    return __builtin_cpu_supports("avx512f") ? &PRODUCT_KERNELS : nullptr;
}

}  // namespace rankbits
#else
#include "products.hpp"

namespace rankbits {

const ProductKernels* avx512_product_kernels() { return nullptr; }

}  // namespace rankbits
#endif
