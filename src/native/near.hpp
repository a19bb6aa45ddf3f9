// Items near a query: the loop nests of one instruction set over planes, and the same for all of them.
//
// Planes are codes laid out as [group][byte][64 items]: byte k of 64 items is one cache line. They are what an index keeps, in memory
// or in a mapped file; what stands behind the last item is zero. Callers settle shapes; a kernel allocates nothing and never throws.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rankbits {

constexpr size_t GROUP = 64;  // items
constexpr size_t MAX_WIDTH = 512;  // bytes: 4,096 bits
constexpr size_t MAX_TILE = 4096;  // items that one call goes over

inline size_t groups_of(size_t n) { return (n + GROUP - 1) / GROUP; }

struct Hit {
    uint16_t position;  // in the tile
    uint16_t distance;
};

// Two queries at a time share the loads of a tile. The first is at distance limits[0] or less from its hits, and so on; no limit finds
// less than it should, and a negative or a very large one may find more: the caller looks at the distances again. Hits come in item
// order; out[q] has room for all items.
struct NearKernels {
    size_t (*tables_bytes)(size_t width);
    void (*make_tables)(const uint8_t* first, const uint8_t* second, size_t width, uint8_t* tables);  // second may be null
    size_t (*split_bytes)(size_t width);  // of a group
    void (*split)(const uint8_t* planes, size_t n_groups, size_t width, uint8_t* out);
    void (*near_two)(const uint8_t* split, size_t n_groups, size_t width, const uint8_t* tables, const int limits[2], Hit* const out[2],
                     size_t n_hits[2]);
    // The first query alone, from planes as they are: for a pass over memory that no other query shares.
    size_t (*near_one)(const uint8_t* planes, size_t n_groups, size_t width, const uint8_t* tables, int limit, Hit* out);
};

const NearKernels& portable_near_kernels();
const NearKernels* avx2_near_kernels();  // null where the compiler or the CPU has no AVX2
const NearKernels& near_kernels();       // of the dispatch level in use

// Codes of width bytes, rows first, into planes and back. rows picks items, null takes the first n.
void to_planes(const uint8_t* packed, size_t n, size_t width, uint8_t* planes);
void from_planes(const uint8_t* planes, const int64_t* rows, size_t n, size_t width, uint8_t* packed);

}  // namespace rankbits
