#include "additive_lanes.hpp"

namespace rankbits {

const AdditiveKernels& portable_additive_kernels() {
    static constexpr AdditiveKernels TABLE{improve, room_for};
    return TABLE;
}

}  // namespace rankbits
