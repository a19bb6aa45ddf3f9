// The loop nests of one instruction set. Every set gives the same integers; the portable one is the twin of the others.
//
// A block is a run of items laid out as its set likes best. Counters inside a call are u32: a block holds few enough items.
// Callers settle types, shapes and empties; a kernel takes pointers and sizes, allocates nothing and never throws. n_bins is
// 8 * width + 1, so that whatever the bytes are, every distance has its bin.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rankbits {

// Counters that a kernel finds and leaves zeroed: joint_cells(n_bins) of them, n_bins * n_levels for count_tags.
struct Scratch {
    uint32_t* joint;
};

// A query and the bit rows of its tags: bit i of rows[t] says whether item i of the block has the query's tag t. Rows are zero from
// the last item up to a multiple of 256.
struct TagQuery {
    const uint8_t* code;
    const uint8_t* const* rows;
    size_t n_tags;
};

struct Items {
    const uint8_t* block;     // laid out by lay_out
    const uint32_t* weights;  // how often each item counts; null for once each
    size_t n;                 // items in the block
    size_t width;             // bytes a code
};

constexpr size_t MAX_GROUP = 3;

struct Group {
    const uint8_t* codes[MAX_GROUP];
    size_t n;
};

struct Range {  // items [begin, end)
    size_t begin, end;
};

struct Kernels {
    const char* name;
    size_t (*block_bytes)(size_t n, size_t width);
    size_t (*joint_cells)(size_t n_bins);
    // Lays out codes[order[i]] for i < n, or codes[i] where order is null.
    void (*lay_out)(const uint8_t* codes, const uint32_t* order, size_t n, size_t width, uint8_t* block);
    size_t (*group_size)(size_t n_bins);  // queries that count_group takes best at a time, at most MAX_GROUP
    // Adds the items of the ranges to rows[q] for each query q of the group. Ranges are disjoint and ascend.
    void (*count_group)(const Items& items, const Group& group, const Range* ranges, size_t n_ranges, size_t n_bins, const Scratch& scratch,
                        uint32_t* const* rows);
    // Adds each item to table[distance * n_levels + level]; levels are u8, or u16 where is_wide; a level that does not exist counts as
    // the last. The table has one spare cell behind it.
    void (*count_levels)(const Items& items, const uint8_t* query, const void* levels, bool is_wide, size_t n_levels, size_t n_bins,
                         uint32_t* table);
    // The same for two queries, each with its own table rows[q], the level being the number of the query's tags that the item has, at
    // most n_levels - 1.
    void (*count_tags)(const Items& items, const TagQuery queries[2], size_t n_levels, size_t n_bins, const Scratch& scratch,
                       uint32_t* const rows[2]);
};

const Kernels& portable_kernels();
const Kernels* avx2_kernels();    // null where the compiler or the CPU has no AVX2
const Kernels* avx512_kernels();  // the same loops under another name, for a CPU on which products are wider (products.hpp); else null

}  // namespace rankbits
