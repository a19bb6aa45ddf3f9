#if defined(__AVX2__)
#include "additive_lanes.hpp"

namespace rankbits {

const AdditiveKernels* avx2_additive_kernels() {
    static constexpr AdditiveKernels TABLE{improve, room_for};
    return __builtin_cpu_supports("avx2") ? &TABLE : nullptr;
}

}  // namespace rankbits
#else
#include "additive.hpp"

namespace rankbits {

const AdditiveKernels* avx2_additive_kernels() { return nullptr; }

}  // namespace rankbits
#endif
