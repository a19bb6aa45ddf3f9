// A block of queries that goes over planes tile by tile, so that the planes are read from memory once for all of them.
#pragma once
#include "buffers.hpp"
#include "near.hpp"
#include "nearest.hpp"
#include "scan.hpp"

namespace rankbits {

constexpr size_t SPLIT_BYTES = 1 << 14;  // of a tile: half of a usual L1

inline size_t tile_groups(size_t width) {
    return std::clamp<size_t>(SPLIT_BYTES / near_kernels().split_bytes(width), 1, MAX_TILE / GROUP);
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

// Tables of a block of queries.
class Block {
public:
    Block(const uint8_t* const* queries, size_t n, size_t width)
        : n_(n),
          width_(width),
          run_(near_kernels()),
          pair_bytes_(run_.tables_bytes(width)),
          tables_(zeroed<uint8_t>((n + 1) / 2 * pair_bytes_)),
          split_(zeroed<uint8_t>(tile_groups(width) * run_.split_bytes(width))),
          hits_(2 * MAX_TILE) {
        for (size_t q = 0; q < n; q += 2) {
            run_.make_tables(queries[q], q + 1 < n ? queries[q + 1] : nullptr, width, tables_.get() + q / 2 * pair_bytes_);
        }
    }

    size_t size() const { return n_; }
    size_t n_tile() const { return n_ == 1 ? MAX_TILE / GROUP : tile_groups(width_); }

    // Shows groups [begin, end) to all queries of the block; false if it was stopped. The first tile has n_first groups: few where
    // queries have no limit yet, since a limit that was set by few items already spares most of the next.
    template <class Stopped>
    bool scan(const Planes& planes, size_t begin, size_t end, size_t n_first, Nearest* nearest, Stopped stopped) {
        bool is_running = true;
        each_tile(planes, begin, end, n_first, n_tile(), [&](size_t first, size_t last) {
            if (!is_running || stopped()) {
                is_running = false;
            } else {
                tile(planes, first, last - first, nearest);
            }
        });
        return is_running;
    }

private:
    void tile(const Planes& planes, size_t first, size_t n_groups, Nearest* nearest) {
        const uint8_t* data = planes.data + first * width_ * GROUP;
        if (n_ == 1) {
            const size_t n_hits = run_.near_one(data, n_groups, width_, tables_.get(), nearest[0].limit(), hits_.data());
            offer(planes, first, n_groups, hits_.data(), n_hits, nearest[0]);
            return;
        }
        run_.split(data, n_groups, width_, split_.get());
        Hit* const out[2] = {hits_.data(), hits_.data() + MAX_TILE};
        for (size_t q = 0; q < n_; q += 2) {
            const int limits[2] = {nearest[q].limit(), q + 1 < n_ ? nearest[q + 1].limit() : -1};
            size_t n_hits[2];
            run_.near_two(split_.get(), n_groups, width_, tables_.get() + q / 2 * pair_bytes_, limits, out, n_hits);
            offer(planes, first, n_groups, out[0], n_hits[0], nearest[q]);
            if (q + 1 < n_) offer(planes, first, n_groups, out[1], n_hits[1], nearest[q + 1]);
        }
    }

    // Hits of a tile that begins with group first.
    static void offer(const Planes& planes, size_t first, size_t n_groups, const Hit* hits, size_t n_hits, Nearest& nearest) {
        const auto found = [&](size_t i) { return Found{static_cast<uint32_t>(first * GROUP + hits[i].position), hits[i].distance}; };
        if (!planes.allowed && (first + n_groups) * GROUP <= planes.n) {
            nearest.offer_each(n_hits, found);
            return;
        }
        for (size_t i = 0; i < n_hits; ++i) {
            if (is_allowed(planes, found(i).row)) nearest.offer(found(i).row, found(i).distance);
        }
    }

    size_t n_, width_;
    const NearKernels& run_;
    size_t pair_bytes_;
    Buffer<uint8_t> tables_, split_;
    std::vector<Hit> hits_;
};

}  // namespace rankbits
