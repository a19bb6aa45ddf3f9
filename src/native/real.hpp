// Search by real-valued queries: the k items with the largest inner product of a query's weights and a code taken as -1 and +1, or with the
// largest sum of the numbers that a query has for their half bytes.
//
// A query has a table of 16 numbers for every half byte, or sums of weights make one. Rounded to bytes, with a known bound on the error, they are added up
// by byte shuffles as distances are; only items whose sum comes near enough to the k-th best so far are scored in double precision. So the
// result is exact, and its scores are those of re-ranking (rescore.hpp) to the last bit.
#pragma once
#include "real_numbers.hpp"
#include "scan.hpp"

namespace rankbits {

constexpr int MAX_ENTRY = 63;        // of a table: four of them can be added in a byte
constexpr int MAX_SUM = INT16_MAX;   // of an item

// Loops over planes of one instruction set. Tables have 16 bytes for each half byte of a code, the lower half of a byte first. Positions
// of items whose sum is at least limit, which is from 0 to MAX_SUM, come in item order; out has room for all items.
struct RealKernels {
    size_t (*at_least)(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out);
    // The same from planes as they are: for a pass over memory that no other query shares.
    size_t (*at_least_alone)(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, uint16_t* out);
    // Items whose sum is more than a number of their own. below has 64 numbers for each group: for each 32 items those of the first, the
    // third and so on, and then those of the second, the fourth and so on.
    size_t (*above_each)(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, const int16_t* below, uint16_t* out);
    // below[i] = floor((least * slopes[i] - shifts[i]) * scale - shift), from -1 to MAX_SUM - 1.
    void (*set_below)(const float* slopes, const float* shifts, size_t n, float least, float scale, float shift, int16_t* below);
};

// Where the number of an item stands among the 64 of its group.
inline size_t place_of(size_t item) { return item / 32 * 32 + item % 2 * 16 + item % 32 / 2; }

const RealKernels& portable_real_kernels();
const RealKernels* avx2_real_kernels();  // null where the compiler or the CPU has no AVX2

// What the two bytes before the code of each item do to its score: 256 numbers each, by the first byte, the second and the first. It is
// multiplied by two of them, which are 0 or more, and the third is added.
struct Correction {
    const double *first, *second, *added;

    double operator()(double score, uint8_t first_byte, uint8_t second_byte) const {
        return score * (first[first_byte] * second[second_byte]) + added[first_byte];
    }
};

struct RealResults {
    size_t k;          // places of each query
    float* scores;     // (queries, k), largest first, equal ones in order of row
    int64_t* rows;     // (queries, k)
    int64_t* counts;   // places that are filled
};

// The numbers of a query are finite, and so is the sum of their absolute values. False if stopped.
// Planes have two extra bytes if there is a correction, whose scores must be finite too.
bool scan_real(const Planes& planes, const RealNumbers& numbers, size_t n_queries, const Correction* correction, const RealResults& results,
               Workers& workers);

}  // namespace rankbits
