// The scan: a block of queries goes over the planes tile by tile, so that the planes are read from memory once a block. A sample of the
// items first tells each query how far its k-th item may be; a guess that was too near is found out at the end and put right.
#include "scan.hpp"

#include <atomic>
#include <bit>
#include <cmath>

#include "buffers.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t BLOCK = 256;           // queries
constexpr size_t SPLIT_BYTES = 1 << 14; // of a tile: half of a usual L1
constexpr size_t FEW_GROUPS = 16, MANY_GROUPS = 4096;  // of a sample
constexpr size_t SAMPLE_SHARE = 64;                     // the part of all groups that a sample for many queries takes

size_t tile_groups(size_t width) {
    return std::clamp<size_t>(SPLIT_BYTES / near_kernels().split_bytes(width), 1, MAX_TILE / GROUP);
}

bool is_allowed(const Planes& planes, size_t row) {
    return row < planes.n && (!planes.allowed || planes.allowed[row / GROUP] >> (row % GROUP) & 1);
}

void offer(const Planes& planes, size_t first, const Hit* hits, size_t n_hits, Nearest& nearest) {
    const auto found = [&](size_t i) { return Found{static_cast<uint32_t>(first + hits[i].position), hits[i].distance}; };
    if (!planes.allowed && first + MAX_TILE <= planes.n) {
        nearest.offer_each(n_hits, found);
        return;
    }
    for (size_t i = 0; i < n_hits; ++i) {
        if (is_allowed(planes, found(i).row)) nearest.offer(found(i).row, found(i).distance);
    }
}

// Calls body(first, end) for runs of groups that hold anything allowed, cut to n_tile groups. The first ones are shorter: a limit that
// was set by few items already spares most of the next.
template <class Body>
void each_tile(const Planes& planes, size_t begin, size_t end, size_t n_tile, Body body) {
    size_t most = 1;
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

    // Shows groups [begin, end) to all queries of the block; false if it was stopped.
    template <class Stopped>
    bool scan(const Planes& planes, size_t begin, size_t end, Nearest* nearest, Stopped stopped) {
        bool is_running = true;
        const size_t n_tile = n_ == 1 ? MAX_TILE / GROUP : tile_groups(width_);
        each_tile(planes, begin, end, n_tile, [&](size_t first, size_t last) {
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
            offer(planes, first * GROUP, hits_.data(), n_hits, nearest[0]);
            return;
        }
        run_.split(data, n_groups, width_, split_.get());
        Hit* const out[2] = {hits_.data(), hits_.data() + MAX_TILE};
        for (size_t q = 0; q < n_; q += 2) {
            const int limits[2] = {nearest[q].limit(), q + 1 < n_ ? nearest[q + 1].limit() : -1};
            size_t n_hits[2];
            run_.near_two(split_.get(), n_groups, width_, tables_.get() + q / 2 * pair_bytes_, limits, out, n_hits);
            offer(planes, first * GROUP, out[0], n_hits[0], nearest[q]);
            if (q + 1 < n_) offer(planes, first * GROUP, out[1], n_hits[1], nearest[q + 1]);
        }
    }

    size_t n_, width_;
    const NearKernels& run_;
    size_t pair_bytes_;
    Buffer<uint8_t> tables_, split_;
    std::vector<Hit> hits_;
};

size_t n_allowed(const Planes& planes) {
    if (!planes.allowed) return planes.n;
    size_t n = 0;
    for (size_t g = 0; g < planes.n_groups(); ++g) n += static_cast<size_t>(std::popcount(planes.allowed[g]));
    return n;
}

// Groups spread evenly over the planes, copied. The larger it is, the nearer the guess that it gives comes to the truth, and the fewer
// items are taken for nothing; it is worth its copy where many queries use it.
class Sample {
public:
    Sample(const Planes& all, size_t n_of_all, size_t n_queries) : n_of_all_(n_of_all) {
        const size_t share = n_queries < 16 ? 0 : all.n_groups() / SAMPLE_SHARE, bytes = all.width * GROUP;
        const size_t n_groups = std::min(std::clamp(share, FEW_GROUPS, MANY_GROUPS), all.n_groups());
        data_.resize(n_groups * bytes);
        allowed_.resize(n_groups);
        for (size_t s = 0; s < n_groups; ++s) {
            const size_t g = s * all.n_groups() / n_groups;
            std::copy_n(all.data + g * bytes, bytes, data_.data() + s * bytes);
            const size_t n_here = std::min(GROUP, all.n - g * GROUP);
            const uint64_t here = ~uint64_t{0} >> (GROUP - n_here);
            allowed_[s] = all.allowed ? all.allowed[g] & here : here;
            n_items_ += static_cast<size_t>(std::popcount(allowed_[s]));
        }
        planes_ = {data_.data(), allowed_.data(), n_groups * GROUP, all.width, all.n_bits};
    }

    Sample(const Sample&) = delete;  // planes_ points into this one

    // For each query of a block, sets nearest to look within a distance that very likely holds k items.
    void guess(Block& block, size_t n, const Wanted& wanted, Nearest* nearest) const {
        const size_t rank = rank_of(wanted.k), n_bits = planes_.n_bits;
        const int far = static_cast<int>(n_bits);
        for (size_t q = 0; q < n; ++q) nearest[q].begin({rank, far, false}, rank < n_items_ ? far : -1, n_bits, Rows::ascending);
        if (rank < n_items_) block.scan(planes_, 0, planes_.n_groups(), nearest, [] { return false; });
        for (size_t q = 0; q < n; ++q) {
            const int limit = nearest[q].is_full() ? nearest[q].farthest() : far;
            nearest[q].begin(wanted, limit, n_bits, Rows::ascending);
        }
    }

private:
    // The place in the sample within which the k-th of all items very likely lies.
    size_t rank_of(size_t k) const {
        const double share = static_cast<double>(n_items_) / static_cast<double>(std::max<size_t>(n_of_all_, 1));
        const double expected = std::min(static_cast<double>(k) * share, static_cast<double>(n_items_));
        return static_cast<size_t>(expected + 3 * std::sqrt(expected) + 1);
    }

    size_t n_of_all_, n_items_ = 0;
    std::vector<uint8_t> data_;
    std::vector<uint64_t> allowed_;
    Planes planes_{};
};

// One round over some queries, with a guess from the sample or, where it is null, without. done(q, nearest) comes once for each query,
// from any thread, as soon as its block is through.
template <class Done>
bool scan_round(const Planes& planes, const std::vector<const uint8_t*>& codes, const Wanted& wanted, const Sample* sample, Workers& workers,
                Done done) {
    const size_t share = (codes.size() + workers.size() - 1) / workers.size(), n_block = std::min(BLOCK, share + share % 2);
    const size_t n_blocks = (codes.size() + n_block - 1) / n_block;
    const size_t n_parts = n_blocks < workers.size() ? workers.size() : 1, n_groups = planes.n_groups();
    std::vector<Nearest> of_parts(n_parts > 1 ? codes.size() * n_parts : 0);  // few queries: threads share the planes instead
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        std::vector<Nearest> of_block(n_block);  // whose memory serves all blocks
        for (size_t task; (task = next++) < n_blocks * n_parts;) {
            const size_t first = task / n_parts * n_block, part = task % n_parts, n = std::min(n_block, codes.size() - first);
            Nearest* const nearest = of_block.data();
            Block block(codes.data() + first, n, planes.width);
            if (sample) {
                sample->guess(block, n, wanted, nearest);
            } else {
                for (size_t q = 0; q < n; ++q) nearest[q].begin(wanted, static_cast<int>(planes.n_bits), planes.n_bits, Rows::ascending);
            }
            if (!block.scan(planes, part * n_groups / n_parts, (part + 1) * n_groups / n_parts, nearest, [&] { return workers.stopped(w); })) return;
            for (size_t q = 0; q < n; ++q) {
                if (n_parts > 1) {
                    of_parts[(first + q) * n_parts + part] = std::move(nearest[q]);
                } else {
                    done(first + q, nearest[q]);
                }
            }
        }
    });
    for (size_t q = 0; is_finished && n_parts > 1 && q < codes.size(); ++q) {
        for (size_t part = 1; part < n_parts; ++part) of_parts[q * n_parts].offer_all(of_parts[q * n_parts + part]);
        done(q, of_parts[q * n_parts]);
    }
    return is_finished;
}

}  // namespace

const NearKernels& near_kernels() {
    const NearKernels* avx2 = avx2_near_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_near_kernels();
}

bool scan(const Planes& planes, const uint8_t* queries, const Wanted& wanted, Results& results, Workers& workers) {
    const size_t n_queries = results.n_queries(), n_there = n_allowed(planes);
    if (n_queries == 0) return true;
    if (wanted.k > 0 && !wanted.is_complete && wanted.radius >= static_cast<int>(planes.n_bits)) results.expect(std::min(wanted.k, n_there));
    std::vector<const uint8_t*> codes(n_queries);
    for (size_t q = 0; q < n_queries; ++q) codes[q] = queries + q * planes.width;
    const bool is_sampled = wanted.k > 0 && planes.n > 4 * FEW_GROUPS * GROUP;
    if (!is_sampled) {
        return scan_round(planes, codes, wanted, nullptr, workers, [&](size_t q, Nearest& nearest) { results.put(q, nearest); });
    }
    const Sample sample(planes, n_there, n_queries);
    std::vector<uint8_t> is_short(n_queries, 0);  // where the guess was too near
    const bool is_finished = scan_round(planes, codes, wanted, &sample, workers, [&](size_t q, Nearest& nearest) {
        is_short[q] = nearest.size() < std::min(wanted.k, n_there);
        if (!is_short[q]) results.put(q, nearest);
    });
    std::vector<size_t> again;
    for (size_t q = 0; q < n_queries; ++q) {
        if (is_short[q]) again.push_back(q);
    }
    if (!is_finished || again.empty()) return is_finished;
    std::vector<const uint8_t*> codes_again;
    for (const size_t q : again) codes_again.push_back(codes[q]);
    return scan_round(planes, codes_again, wanted, nullptr, workers, [&](size_t i, Nearest& nearest) { results.put(again[i], nearest); });
}

}  // namespace rankbits
