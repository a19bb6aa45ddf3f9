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
constexpr size_t SAMPLE_GROUPS = 16;

size_t tile_groups(size_t width) {
    return std::clamp<size_t>(SPLIT_BYTES / near_kernels().split_bytes(width), 1, MAX_TILE / GROUP);
}

bool is_allowed(const Planes& planes, size_t row) {
    return row < planes.n && (!planes.allowed || planes.allowed[row / GROUP] >> (row % GROUP) & 1);
}

void offer(const Planes& planes, size_t first, const Hit* hits, size_t n_hits, Nearest& nearest) {
    for (size_t i = 0; i < n_hits; ++i) {
        const size_t row = first + hits[i].position;
        if (is_allowed(planes, row)) nearest.offer(static_cast<uint32_t>(row), hits[i].distance);
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

// Tables, limits and findings of a block of queries.
class Block {
public:
    Block(const Planes& planes, const uint8_t* const* queries, size_t n)
        : planes_(planes),
          n_(n),
          run_(near_kernels()),
          pair_bytes_(run_.tables_bytes(planes.width)),
          tables_(zeroed<uint8_t>((n + 1) / 2 * pair_bytes_)),
          split_(zeroed<uint8_t>(std::max(tile_groups(planes.width), SAMPLE_GROUPS) * run_.split_bytes(planes.width))),
          hits_(2 * MAX_TILE) {
        for (size_t q = 0; q < n; q += 2) {
            run_.make_tables(queries[q], q + 1 < n ? queries[q + 1] : nullptr, planes.width, tables_.get() + q / 2 * pair_bytes_);
        }
    }

    // Shows groups [begin, end) to all queries of the block; false if it was stopped.
    template <class Stopped>
    bool scan(size_t begin, size_t end, Nearest* nearest, Stopped stopped) {
        bool is_running = true;
        const size_t n_tile = n_ == 1 ? MAX_TILE / GROUP : tile_groups(planes_.width);
        each_tile(planes_, begin, end, n_tile, [&](size_t first, size_t last) {
            if (!is_running || stopped()) {
                is_running = false;
            } else {
                tile(planes_.data + first * planes_.width * GROUP, last - first, nearest,
                     [&](size_t q, const Hit* hits, size_t n_hits) { offer(planes_, first * GROUP, hits, n_hits, nearest[q]); });
            }
        });
        return is_running;
    }

    // What each query sees of the sample: counts[q][distance]. Codes may have bits beyond n_bits set, so that n_bins must be that of
    // whole bytes.
    void count(const uint8_t* sample, size_t n_groups, const uint8_t* is_allowed, size_t n_bins, uint32_t* counts) {
        std::vector<Nearest> all(n_, Nearest({0, static_cast<int>(n_bins) - 1, true}, static_cast<int>(n_bins) - 1, n_bins - 1));
        tile(sample, n_groups, all.data(), [&](size_t q, const Hit* hits, size_t n_hits) {
            for (size_t i = 0; i < n_hits; ++i) counts[q * n_bins + hits[i].distance] += is_allowed[hits[i].position];
        });
    }

private:
    template <class Take>
    void tile(const uint8_t* data, size_t n_groups, const Nearest* nearest, Take take) {
        if (n_ == 1) {
            take(0, hits_.data(), run_.near_one(data, n_groups, planes_.width, tables_.get(), nearest[0].limit(), hits_.data()));
            return;
        }
        run_.split(data, n_groups, planes_.width, split_.get());
        Hit* const out[2] = {hits_.data(), hits_.data() + MAX_TILE};
        for (size_t q = 0; q < n_; q += 2) {
            const int limits[2] = {nearest[q].limit(), q + 1 < n_ ? nearest[q + 1].limit() : -1};
            size_t n_hits[2];
            run_.near_two(split_.get(), n_groups, planes_.width, tables_.get() + q / 2 * pair_bytes_, limits, out, n_hits);
            if (n_hits[0]) take(q, out[0], n_hits[0]);
            if (n_hits[1] && q + 1 < n_) take(q + 1, out[1], n_hits[1]);
        }
    }

    const Planes& planes_;
    size_t n_;
    const NearKernels& run_;
    size_t pair_bytes_;
    Buffer<uint8_t> tables_, split_;
    std::vector<Hit> hits_;
};

// Groups spread evenly over the planes, copied, and which of their items count.
struct Sample {
    std::vector<uint8_t> data, allowed;
    size_t n_groups = 0, n_items = 0, n_allowed = 0;  // n_allowed: of all planes

    explicit Sample(const Planes& planes) : n_groups(std::min(SAMPLE_GROUPS, planes.n_groups())) {
        const size_t bytes = planes.width * GROUP;
        data.resize(n_groups * bytes);
        allowed.resize(n_groups * GROUP);
        for (size_t s = 0; s < n_groups; ++s) {
            const size_t g = s * planes.n_groups() / n_groups;
            std::copy_n(planes.data + g * bytes, bytes, data.data() + s * bytes);
            for (size_t i = 0; i < GROUP; ++i) n_items += allowed[s * GROUP + i] = is_allowed(planes, g * GROUP + i);
        }
        n_allowed = planes.n;
        if (!planes.allowed) return;
        n_allowed = 0;
        for (size_t g = 0; g < planes.n_groups(); ++g) n_allowed += static_cast<size_t>(std::popcount(planes.allowed[g]));
    }

    // The place in the sample within which the k-th of all items very likely lies.
    size_t rank(size_t k) const {
        if (n_allowed == 0) return n_items + 1;
        const double expected = static_cast<double>(k) * static_cast<double>(n_items) / static_cast<double>(n_allowed);
        return static_cast<size_t>(expected + 3 * std::sqrt(expected) + 1);
    }
};

// A distance within which a query very likely has k items.
std::vector<int> guess_limits(const Planes& planes, const uint8_t* const* queries, size_t n, size_t k, const Sample& sample) {
    const size_t n_bins = 8 * planes.width + 1, rank = sample.rank(k);
    std::vector<int> limits(n, static_cast<int>(planes.n_bits));
    if (rank >= sample.n_items) return limits;
    std::vector<uint32_t> counts(n * n_bins, 0);
    Block(planes, queries, n).count(sample.data.data(), sample.n_groups, sample.allowed.data(), n_bins, counts.data());
    for (size_t q = 0; q < n; ++q) {
        size_t seen = 0, d = 0;
        for (const uint32_t* row = counts.data() + q * n_bins; (seen += row[d]) < rank && d < planes.n_bits; ++d) {}
        limits[q] = static_cast<int>(d);
    }
    return limits;
}

// One round over some queries, with a guess from the sample or, where it is null, without. done(q, nearest) comes once for each query,
// from any thread, as soon as its block is through.
template <class Done>
bool scan_round(const Planes& planes, const std::vector<const uint8_t*>& codes, const Wanted& wanted, const Sample* sample, Workers& workers,
                Done done) {
    const size_t share = (codes.size() + workers.size() - 1) / workers.size(), n_block = std::min(BLOCK, share + share % 2);
    const size_t n_blocks = (codes.size() + n_block - 1) / n_block;
    const size_t n_parts = n_blocks < workers.size() ? workers.size() : 1, n_groups = planes.n_groups();
    std::vector<Nearest> found(n_parts > 1 ? codes.size() * n_parts : 0);  // few queries: threads share the planes instead
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t task; (task = next++) < n_blocks * n_parts;) {
            const size_t first = task / n_parts * n_block, part = task % n_parts, n = std::min(n_block, codes.size() - first);
            const std::vector<int> limits = sample ? guess_limits(planes, codes.data() + first, n, wanted.k, *sample)
                                                   : std::vector<int>(n, static_cast<int>(planes.n_bits));
            std::vector<Nearest> mine;
            for (size_t q = 0; q < n; ++q) mine.emplace_back(wanted, limits[q], planes.n_bits);
            Block block(planes, codes.data() + first, n);
            if (!block.scan(part * n_groups / n_parts, (part + 1) * n_groups / n_parts, mine.data(), [&] { return workers.stopped(w); })) return;
            for (size_t q = 0; q < n; ++q) {
                if (n_parts > 1) {
                    found[(first + q) * n_parts + part] = std::move(mine[q]);
                } else {
                    done(first + q, mine[q]);
                }
            }
        }
    });
    for (size_t q = 0; is_finished && n_parts > 1 && q < codes.size(); ++q) {
        for (size_t part = 1; part < n_parts; ++part) found[q * n_parts].offer_all(found[q * n_parts + part]);
        done(q, found[q * n_parts]);
    }
    return is_finished;
}

}  // namespace

const NearKernels& near_kernels() {
    const NearKernels* avx2 = avx2_near_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_near_kernels();
}

bool scan(const Planes& planes, const uint8_t* queries, size_t n_queries, const Wanted& wanted, std::vector<Found>* results, Workers& workers) {
    if (n_queries == 0) return true;
    std::vector<const uint8_t*> codes(n_queries);
    for (size_t q = 0; q < n_queries; ++q) codes[q] = queries + q * planes.width;
    const bool is_sampled = wanted.k > 0 && planes.n > 4 * SAMPLE_GROUPS * GROUP;
    if (!is_sampled) {
        return scan_round(planes, codes, wanted, nullptr, workers, [&](size_t q, Nearest& nearest) { results[q] = nearest.finish(); });
    }
    const Sample sample(planes);
    std::vector<uint8_t> is_short(n_queries, 0);  // where the guess was too near
    const bool is_finished = scan_round(planes, codes, wanted, &sample, workers, [&](size_t q, Nearest& nearest) {
        is_short[q] = nearest.size() < std::min(wanted.k, sample.n_allowed);
        if (!is_short[q]) results[q] = nearest.finish();
    });
    std::vector<size_t> again;
    for (size_t q = 0; q < n_queries; ++q) {
        if (is_short[q]) again.push_back(q);
    }
    if (!is_finished || again.empty()) return is_finished;
    std::vector<const uint8_t*> their_codes;
    for (const size_t q : again) their_codes.push_back(codes[q]);
    return scan_round(planes, their_codes, wanted, nullptr, workers, [&](size_t i, Nearest& nearest) { results[again[i]] = nearest.finish(); });
}

}  // namespace rankbits
