// The scan by Hamming distance: what a block of codes does with a tile, and how far its queries look.
#include "scan.hpp"

#include "buffers.hpp"
#include "dispatch.hpp"
#include "scan_rounds.hpp"

namespace rankbits {
namespace {

// Queries that share tiles, with their tables: two queries to a table.
class CodeBlock {
public:
    CodeBlock(const uint8_t* queries, const size_t* numbers, size_t n, size_t width)
        : n_(n),
          width_(width),
          run_(near_kernels()),
          pair_bytes_(run_.tables_bytes(width)),
          tables_(zeroed<uint8_t>((n + 1) / 2 * pair_bytes_)),
          split_(zeroed<uint8_t>(tile_groups(width) * run_.split_bytes(width))),
          hits_(2 * MAX_TILE) {
        for (size_t q = 0; q < n; q += 2) {
            const uint8_t* second = q + 1 < n ? queries + numbers[q + 1] * width : nullptr;
            run_.make_tables(queries + numbers[q] * width, second, width, tables_.get() + q / 2 * pair_bytes_);
        }
    }

    size_t size() const { return n_; }
    size_t n_tile() const { return n_ == 1 ? MAX_TILE / GROUP : tile_groups(width_); }

    void scan_tile(const Planes& planes, size_t first, size_t n_groups, Nearest* nearest) {
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

private:
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

class CodeSearch {
public:
    using Best = Nearest;
    using Block = CodeBlock;
    static constexpr size_t MAX_BLOCK = 256, STEPS = 32;

    CodeSearch(const Planes& planes, const uint8_t* queries, const Wanted& wanted)
        : width_(planes.width), n_bits_(planes.n_bits), queries_(queries), wanted_(wanted) {}

    size_t k() const { return wanted_.k; }
    Block block(const size_t* numbers, size_t n) const { return Block(queries_, numbers, n, width_); }

    void begin(Nearest& nearest, const Nearest* of_sample) const {
        nearest.begin(wanted_, of_sample ? of_sample->farthest() : static_cast<int>(n_bits_), n_bits_, Rows::ascending);
    }
    void begin_sample(size_t rank, Nearest& of_sample) const {
        const int far = static_cast<int>(n_bits_);
        of_sample.begin({rank, far, false}, far, n_bits_, Rows::ascending);
    }

private:
    size_t width_, n_bits_;
    const uint8_t* queries_;
    Wanted wanted_;
};

}  // namespace

const NearKernels& near_kernels() {
    const NearKernels* avx2 = avx2_near_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_near_kernels();
}

bool scan(const Planes& planes, const uint8_t* queries, const Wanted& wanted, Results& results, Workers& workers) {
    const size_t n_there = n_allowed(planes);
    if (wanted.k > 0 && !wanted.is_complete && wanted.radius >= static_cast<int>(planes.n_bits)) results.expect(std::min(wanted.k, n_there));
    const CodeSearch search(planes, queries, wanted);
    return scan_all(planes, search, results.n_queries(), n_there, workers, [&](size_t q, Nearest& nearest) { results.put(q, nearest); });
}

}  // namespace rankbits
