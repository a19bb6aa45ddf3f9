// Counting ties of a chunk of the database against all queries. Each function adds to counts and returns false if it was stopped.
#pragma once
#include <cstddef>
#include <cstdint>

#include "workers.hpp"

namespace rankbits {

struct Codes {
    const uint8_t* data;  // n rows of width bytes
    size_t n, width;
};

struct Counts {
    int64_t* data;  // queries x n_bins x n_levels
    size_t n_bins, n_levels;
};

// Bins of any distance that codes of so many bytes can have, their spare bits included. Kernels count into this many and callers take
// those of their own code length, so that bits set behind our back are lost from the counts but never written beside them.
inline size_t bins_of_bytes(size_t width) { return 8 * width + 1; }

// Level 1 where the classes are equal, else level 0. A class number is negative for a class that nothing equals: if all queries have
// such a class, counts may have any number of levels, and all items go to level 0. Classes of queries are numbered from 0.
bool count_classes(const Codes& queries, const Codes& items, const int32_t* class_of_query, const int32_t* class_of_item,
                   const Counts& counts, Workers& workers);

// Level = position in the matrix levels (queries x items) of u8, or u16 where is_wide.
bool count_levels(const Codes& queries, const Codes& items, const void* levels, bool is_wide, const Counts& counts, Workers& workers);

// Level = shared tags, at most n_levels - 1: query q has tags[starts[q] .. starts[q + 1]), item i the columns set in row i of rows.
bool count_tags(const Codes& queries, const Codes& items, const int64_t* starts, const int32_t* tags, const uint8_t* rows, size_t n_tags,
                const Counts& counts, Workers& workers);

// largest[q][d] = the largest of n_items[i] over the codes i at distance d, for d < bins_of_bytes(width).
bool largest_counts(const Codes& queries, const Codes& codes, const int64_t* n_items, int64_t* largest, Workers& workers);

// distances[q][i], every pair.
bool all_distances(const Codes& queries, const Codes& items, uint16_t* distances, Workers& workers);

}  // namespace rankbits
