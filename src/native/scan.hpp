// Exact search by going over all planes.
#pragma once
#include "near.hpp"
#include "nearest.hpp"
#include "results.hpp"
#include "workers.hpp"

namespace rankbits {

struct Planes {
    const uint8_t* data;
    const uint64_t* allowed;  // bit i of word g says whether item 64 g + i may be found; null for all
    size_t n, width, n_bits;
    size_t n_extra = 0;  // byte planes of each group before those of its codes

    size_t n_groups() const { return groups_of(n); }
    size_t group_bytes() const { return (n_extra + width) * GROUP; }
    const uint8_t* extra(size_t g) const { return data + g * group_bytes(); }
    const uint8_t* codes(size_t g) const { return extra(g) + n_extra * GROUP; }
};

// Finds for each query that results has room for, in order of (distance, row). False if stopped.
bool scan(const Planes& planes, const uint8_t* queries, const Wanted& wanted, Results& results, Workers& workers);

// One query that goes over some groups on the caller's thread: for lists of an inverted file.
class OneQuery {
public:
    explicit OneQuery(size_t width) : width_(width), tables_(near_kernels().tables_bytes(width)) {}

    void set(const uint8_t* query) { near_kernels().make_tables(query, nullptr, width_, tables_.data()); }

    // Calls take(place, hits, n_hits) for runs of groups from place on, with what is within the limit of nearest, which take may lower.
    // hits has room for a tile.
    template <class Take>
    void scan(const uint8_t* planes, size_t begin, size_t end, const Nearest& nearest, Hit* hits, Take take) const {
        size_t most = nearest.is_full() ? MAX_TILE / GROUP : 1;  // a limit set by few items spares most of the next
        for (size_t g = begin, n_groups; g < end; g += n_groups, most = std::min(2 * most, MAX_TILE / GROUP)) {
            n_groups = std::min(end - g, most);
            take(g * GROUP, hits, near_kernels().near_one(planes + g * width_ * GROUP, n_groups, width_, tables_.data(), nearest.limit(), hits));
        }
    }

private:
    size_t width_;
    std::vector<uint8_t> tables_;
};

}  // namespace rankbits
