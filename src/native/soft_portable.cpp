#include "exact_ap.hpp"
#include "soft_tiles.hpp"

namespace rankbits {

static constexpr SoftKernels TABLE{narrow, count_tile, unpack, steps, pull_tile, polygammas, gather, exact_ap};

const SoftKernels& portable_soft_kernels() { return TABLE; }

}  // namespace rankbits
