// Sums of real-valued queries in plain C++: the twin of every faster set.
#include "real.hpp"

namespace rankbits {
namespace {

// Items whose sum is more than below(group, item).
template <class Below>
size_t above(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, Below below, uint16_t* out) {
    uint16_t* next = out;
    for (size_t g = 0; g < n_groups; ++g) {
        int sums[GROUP] = {};
        for (size_t k = 0; k < width; ++k) {
            const uint8_t *bytes = planes + (g * width + k) * GROUP, *low = tables + 32 * k, *high = low + 16;
            for (size_t i = 0; i < GROUP; ++i) sums[i] += low[bytes[i] & 15] + high[bytes[i] >> 4];
        }
        for (size_t i = 0; i < GROUP; ++i) {
            *next = static_cast<uint16_t>(g * GROUP + i);
            next += sums[i] > below(g, i);
        }
    }
    return static_cast<size_t>(next - out);
}

size_t at_least(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out) {
    return above(planes, n_groups, width, tables, [&](size_t, size_t) { return limit - 1; }, out);
}

size_t above_each(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, const int16_t* below, uint16_t* out) {
    return above(planes, n_groups, width, tables, [&](size_t g, size_t i) { return below[g * GROUP + place_of(i)]; }, out);
}

void set_below(const float* slopes, const float* shifts, size_t n, float least, float scale, float shift, int16_t* below) {
    constexpr float LARGEST = MAX_SUM - 1;
    for (size_t i = 0; i < n; ++i) {
        float limit = (least * slopes[i] - shifts[i]) * scale - shift;
        limit = limit > -1.0f ? limit : -1.0f;  // also where it is not a number
        limit = limit < LARGEST ? limit : LARGEST;
        below[i] = static_cast<int16_t>(static_cast<int>(limit + 1.0f) - 1);
    }
}

}  // namespace

const RealKernels& portable_real_kernels() {
    static constexpr RealKernels TABLE{at_least, at_least, above_each, set_below};  // portable planes are not split
    return TABLE;
}

}  // namespace rankbits
