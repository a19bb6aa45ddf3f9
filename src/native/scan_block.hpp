// How a block of queries goes over planes: tile by tile, so that the planes are read from memory once for all of them.
#pragma once
#include <algorithm>
#include <bit>

#include "near.hpp"
#include "scan.hpp"

namespace rankbits {

constexpr size_t SPLIT_BYTES = 1 << 14;  // of a tile: half of a usual L1

inline size_t tile_groups(size_t width) {
    return std::clamp<size_t>(SPLIT_BYTES / near_kernels().split_bytes(width), 1, MAX_TILE / GROUP);
}

// Items that may be found.
inline size_t n_allowed(const Planes& planes) {
    if (!planes.allowed) return planes.n;
    size_t n = 0;
    for (size_t g = 0; g < planes.n_groups(); ++g) n += static_cast<size_t>(std::popcount(planes.allowed[g]));
    return n;
}

inline bool is_allowed(const Planes& planes, size_t row) {
    return row < planes.n && (!planes.allowed || planes.allowed[row / GROUP] >> (row % GROUP) & 1);
}

// Calls body(first, end) for runs of groups that hold anything allowed, cut to n_first groups, then to twice as many, up to n_tile.
template <class Body>
void each_tile(const Planes& planes, size_t begin, size_t end, size_t n_first, size_t n_tile, Body body) {
    size_t most = std::min(n_first, n_tile);
    for (size_t g = begin; g < end;) {
        if (planes.allowed && !planes.allowed[g]) {
            ++g;
            continue;
        }
        size_t last = g + 1;
        while (last < end && last - g < most && (!planes.allowed || planes.allowed[last])) ++last;
        body(g, last);
        g = last;
        most = std::min(2 * most, n_tile);
    }
}

// Shows groups [begin, end) to all queries of a block; false if it was stopped. The first tile has n_first groups: few where queries have no
// limit yet, since a limit that was set by few items already spares most of the next.
template <class Block, class Best, class Stopped>
bool scan_groups(const Planes& planes, size_t begin, size_t end, size_t n_first, Block& block, Best* best, Stopped stopped) {
    bool is_running = true;
    each_tile(planes, begin, end, n_first, block.n_tile(), [&](size_t first, size_t last) {
        if (!is_running || stopped()) {
            is_running = false;
        } else {
            block.scan_tile(planes, first, last - first, best);
        }
    });
    return is_running;
}

}  // namespace rankbits
