#include "rescore_lanes.hpp"

namespace rankbits {

const ScoreKernels& portable_score_kernels() {
    static const ScoreKernels kernels = score_kernels_here();
    return kernels;
}

}  // namespace rankbits
