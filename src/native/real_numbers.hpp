// What a real-valued query says of the bits of a code: a weight for each, which is added where the bit is set and taken off where it is not;
// or, for codes whose bits have no meaning of their own, 16 numbers for each four bits, one of which is added.
#pragma once
#include <cstddef>

namespace rankbits {

struct RealNumbers {
    const double* data;  // (queries, n_bits) weights, or tables: 16 for every four bits, also the last ones
    size_t n_columns, n_bits;

    bool are_tables() const { return n_columns != n_bits; }
    const double* row(size_t query) const { return data + query * n_columns; }
};

// Tables have one number for each value of four bits, the first bit of which is the highest; the first four bits of a code come first. They are
// the upper half of its first byte: half h, the lower one of a byte first, has the table of the bits from 4 (h ^ 1) on. Bits behind the
// last one add nothing.
inline const double* table_of_half(const double* tables, size_t n_bits, size_t half) {
    static constexpr double NOTHING[16] = {};
    const size_t place = half ^ 1;
    return 4 * place < n_bits ? tables + 16 * place : NOTHING;
}

}  // namespace rankbits
