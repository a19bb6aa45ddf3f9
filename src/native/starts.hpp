// Where the buckets of a table begin and end among its items.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "large_pages.hpp"

namespace rankbits {

struct Bucket {
    size_t begin, end;
};

// Each bucket has its start as a number. Or, to take less memory, sixteen of them share one, and each has one byte for its distance from
// that: in units of 1, 2, 4, ... items, as many as the sixteen need. In units above 1 both ends are rounded outwards, so that
// some items of the buckets beside it are in between.
class Starts {
public:
    // Whether sharing saves memory that matters beside that of the items.
    static bool are_worth_sharing(size_t n, size_t n_bits) { return n >> n_bits < BUCKETS; }

    static size_t bytes_for(size_t n_bits, bool is_shared) {
        return is_shared ? (n_blocks(n_bits) + 1) * sizeof(Block) : ((size_t{1} << n_bits) + 1) * sizeof(uint32_t);
    }

    // exact has the start of each of the 2^n_bits buckets, and the end of the last; n_bits is at least 4.
    void set(const uint32_t* exact, size_t n_bits, bool is_shared) {
        if (!is_shared) {
            exact_.assign(exact, exact + (size_t{1} << n_bits) + 1);
            return;
        }
        blocks_.resize(n_blocks(n_bits) + 1);
        for (size_t block = 0; block < n_blocks(n_bits); ++block) blocks_[block] = Block::of(exact + block * BUCKETS);
        blocks_.back().base = exact[size_t{1} << n_bits];
    }

    const void* address(size_t bucket) const {
        return exact_.empty() ? static_cast<const void*>(&blocks_[bucket / BUCKETS]) : &exact_[bucket];
    }

    Bucket operator[](size_t bucket) const {
        if (!exact_.empty()) return {exact_[bucket], exact_[bucket + 1]};
        const Block& block = blocks_[bucket / BUCKETS];
        const size_t i = bucket % BUCKETS, shift = block.bytes[0], first = block.base, last = (&block)[1].base;
        const size_t begin = i == 0 ? first : first + (size_t{block.bytes[i]} << shift);
        if (i == BUCKETS - 1) return {begin, last};
        const size_t end = first + (size_t{block.bytes[i + 1]} << shift) + ((size_t{1} << shift) - 1);
        return {begin, std::min(end, last)};
    }

private:
    static constexpr size_t BUCKETS = 16;  // of a block

    struct Block {
        uint32_t base;           // the start of its first bucket
        uint8_t bytes[BUCKETS];  // of the others, from the base; in place of that of the first, how far these are shifted

        static Block of(const uint32_t* exact) {
            Block block{exact[0], {}};
            const size_t longest = exact[BUCKETS - 1] - exact[0];
            const int shift = std::max(0, static_cast<int>(std::bit_width(longest)) - 8);
            block.bytes[0] = static_cast<uint8_t>(shift);
            for (size_t i = 1; i < BUCKETS; ++i) block.bytes[i] = static_cast<uint8_t>((exact[i] - exact[0]) >> shift);
            return block;
        }
    };

    static size_t n_blocks(size_t n_bits) { return (size_t{1} << n_bits) / BUCKETS; }

    LargeVector<uint32_t> exact_;
    LargeVector<Block> blocks_;
};

}  // namespace rankbits
