// Portable loop nests over planes: eight items to a 64-bit word, bits counted in each byte of it. The twin of every faster set.
#include <cstring>

#include "near.hpp"

namespace rankbits {
namespace {

size_t tables_bytes(size_t width) { return 2 * width; }

void make_tables(const uint8_t* first, const uint8_t* second, size_t width, uint8_t* tables) {
    std::memcpy(tables, first, width);
    std::memcpy(tables + width, second ? second : first, width);
}

size_t split_bytes(size_t width) { return width * GROUP; }

void split(const uint8_t* planes, size_t n_groups, size_t width, uint8_t* out) { std::memcpy(out, planes, n_groups * width * GROUP); }

// Bits set in each byte.
inline uint64_t bits_of_bytes(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
}

// Distances of a group: bytes over at most 31 planes, gathered in words of 16 bits.
inline void distances_of(const uint8_t* planes, size_t width, const uint8_t* query, uint16_t distance[GROUP]) {
    std::memset(distance, 0, GROUP * sizeof(uint16_t));
    for (size_t from = 0; from < width; from += 31) {
        const size_t to = from + 31 < width ? from + 31 : width;
        uint64_t sums[8] = {};
        for (size_t k = from; k < to; ++k) {
            const uint64_t wanted = uint64_t{0x0101010101010101} * query[k];
            for (size_t w = 0; w < 8; ++w) {
                uint64_t word;
                std::memcpy(&word, planes + k * GROUP + 8 * w, 8);
                sums[w] += bits_of_bytes(word ^ wanted);
            }
        }
        uint8_t bytes[GROUP];
        std::memcpy(bytes, sums, GROUP);
        for (size_t i = 0; i < GROUP; ++i) distance[i] = static_cast<uint16_t>(distance[i] + bytes[i]);
    }
}

size_t near_one(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, Hit* out) {
    Hit* hit = out;
    uint16_t distance[GROUP];
    for (size_t g = 0; g < n_groups; ++g) {
        distances_of(planes + g * width * GROUP, width, tables, distance);
        for (size_t i = 0; i < GROUP; ++i) {
            *hit = {static_cast<uint16_t>(g * GROUP + i), distance[i]};
            hit += distance[i] <= limit;
        }
    }
    return static_cast<size_t>(hit - out);
}

void near_two(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, const int limits[2], Hit* const out[2],
              size_t n_hits[2]) {
    for (size_t q = 0; q < 2; ++q) n_hits[q] = near_one(planes, n_groups, width, tables + q * width, limits[q], out[q]);
}

}  // namespace

const NearKernels& portable_near_kernels() {
    static constexpr NearKernels TABLE{tables_bytes, make_tables, split_bytes, split, near_two, near_one};
    return TABLE;
}

}  // namespace rankbits
