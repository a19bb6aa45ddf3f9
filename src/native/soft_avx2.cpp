#if defined(__AVX2__) && defined(__FMA__)
#include "exact_ap.hpp"
#include "soft_tiles.hpp"

namespace rankbits {

static constexpr SoftKernels TABLE{narrow, count_tile, unpack, steps, pull_tile, polygammas, gather, exact_ap};

const SoftKernels* avx2_soft_kernels() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &TABLE : nullptr; }

}  // namespace rankbits
#else
#include "soft.hpp"

namespace rankbits {

const SoftKernels* avx2_soft_kernels() { return nullptr; }

}  // namespace rankbits
#endif
