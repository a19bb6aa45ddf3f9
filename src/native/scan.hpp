// Exact search by going over all planes.
#pragma once
#include "near.hpp"
#include "nearest.hpp"
#include "workers.hpp"

namespace rankbits {

struct Planes {
    const uint8_t* data;
    const uint64_t* allowed;  // bit i of word g says whether item 64 g + i may be found; null for all
    size_t n, width, n_bits;

    size_t n_groups() const { return groups_of(n); }
};

// results[q] in order of (distance, row). False if stopped.
bool scan(const Planes& planes, const uint8_t* queries, size_t n_queries, const Wanted& wanted, std::vector<Found>* results, Workers& workers);

// The same over items [begin, end) of the planes, one query after the other on the caller's thread: for lists of an inverted file.
class OneQuery {
public:
    OneQuery(const uint8_t* query, size_t width);
    void scan(const Planes& planes, size_t first_group, size_t end_group, Nearest& nearest);

private:
    size_t width_;
    std::vector<uint8_t> tables_;
    std::vector<Hit> hits_;
};

}  // namespace rankbits
