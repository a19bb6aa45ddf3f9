// Sums of real-valued queries in plain C++: the twin of every faster set.
#include "real.hpp"

namespace rankbits {
namespace {

size_t at_least(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    uint16_t* next = out;
    for (size_t g = 0; g < n_groups; ++g) {
        int sums[GROUP] = {};
        for (size_t k = 0; k < width; ++k) {
            const uint8_t *bytes = planes + (g * width + k) * GROUP, *low = tables + 32 * k, *high = low + 16;
            for (size_t i = 0; i < GROUP; ++i) sums[i] += low[bytes[i] & 15] + high[bytes[i] >> 4];
        }
        for (size_t i = 0; i < GROUP; ++i) {
            *next = static_cast<uint16_t>(g * GROUP + i);
            next += sums[i] >= limit;
        }
    }
    return static_cast<size_t>(next - out);
}

}  // namespace

const RealKernels& portable_real_kernels() {
    static constexpr RealKernels TABLE{at_least, at_least};  // portable planes are not split
    return TABLE;
}

}  // namespace rankbits
