// Distinct codes: where many items of a class share a code, a chunk is counted by (code, class) instead of by item.
#pragma once
#include <cstdint>
#include <vector>

#include "count.hpp"

namespace rankbits {

struct Distinct {
    std::vector<uint32_t> items;    // one item for each distinct (code, class)
    std::vector<uint32_t> weights;  // how many items each stands for; empty, as items is, if nothing was compressed
};

// Compresses if the counting that it saves is worth more than the hashing, both timed on a sample of the chunk.
Distinct compress_if_it_pays(const Codes& items, const int32_t* item_class, const Codes& queries, size_t n_bins);

}  // namespace rankbits
