#if defined(__AVX2__)
#include "rescore_lanes.hpp"

namespace rankbits {

const ScoreKernels* avx2_score_kernels() {
    static const ScoreKernels kernels = score_kernels_here();
    return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}  // namespace rankbits
#else
#include "rescore.hpp"

namespace rankbits {

const ScoreKernels* avx2_score_kernels() { return nullptr; }

}  // namespace rankbits
#endif
