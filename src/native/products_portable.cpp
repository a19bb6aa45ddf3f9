#define LANE_BYTES 32
#include "products_lanes.hpp"

namespace rankbits {

const ProductKernels& portable_product_kernels() { return PRODUCT_KERNELS; }

}  // namespace rankbits
