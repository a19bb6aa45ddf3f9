#if defined(__AVX2__) && defined(__FMA__)
#define LANE_BYTES 32
#include "products_lanes.hpp"

namespace rankbits {

const ProductKernels* avx2_product_kernels() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &PRODUCT_KERNELS : nullptr;
}

}  // namespace rankbits
#else
#include "products.hpp"

namespace rankbits {

const ProductKernels* avx2_product_kernels() { return nullptr; }

}  // namespace rankbits
#endif
