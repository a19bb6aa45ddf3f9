// Codes into planes and back: 64 rows at a time, which a cache holds.
#include <algorithm>
#include <cstring>

#include "near.hpp"

namespace rankbits {

void to_planes(const uint8_t* packed, size_t n, size_t width, uint8_t* planes) {
    for (size_t g = 0; g < groups_of(n); ++g) {
        uint8_t* group = planes + g * width * GROUP;
        const size_t filled = std::min(GROUP, n - g * GROUP);
        if (filled < GROUP) std::memset(group, 0, width * GROUP);
        const uint8_t* rows = packed + g * GROUP * width;
        for (size_t i = 0; i < filled; ++i) {
            for (size_t k = 0; k < width; ++k) group[k * GROUP + i] = rows[i * width + k];
        }
    }
}

void from_planes(const uint8_t* planes, const int64_t* rows, size_t n, size_t width, uint8_t* packed) {
    for (size_t i = 0; i < n; ++i) {
        const size_t row = rows ? static_cast<size_t>(rows[i]) : i;
        const uint8_t* first = planes + row / GROUP * width * GROUP + row % GROUP;
        for (size_t k = 0; k < width; ++k) packed[i * width + k] = first[k * GROUP];
    }
}

}  // namespace rankbits
