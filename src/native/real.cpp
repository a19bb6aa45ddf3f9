// The scan by real-valued queries: sums of rounded weights tell which items of a tile may be good enough, and these are scored exactly.
#include "real.hpp"

#include "best_scores.hpp"
#include "buffers.hpp"
#include "dispatch.hpp"
#include "real_query.hpp"
#include "scan_rounds.hpp"

namespace rankbits {
namespace {

const RealKernels& real_kernels() {
    const RealKernels* avx2 = avx2_real_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_real_kernels();
}

// Queries that share tiles.
class RealBlock {
public:
    RealBlock(const double* weights, const size_t* numbers, size_t n, const Planes& planes)
        : width_(planes.width),
          run_(real_kernels()),
          split_(zeroed<uint8_t>(tile_groups(width_) * near_kernels().split_bytes(width_))),
          positions_(MAX_TILE) {
        queries_.reserve(n);
        for (size_t q = 0; q < n; ++q) queries_.emplace_back(weights + numbers[q] * planes.n_bits, planes.n_bits, width_);
    }

    size_t size() const { return queries_.size(); }
    size_t n_tile() const { return queries_.size() == 1 ? MAX_TILE / GROUP : tile_groups(width_); }

    void scan_tile(const Planes& planes, size_t first, size_t n_groups, BestScores* best) {
        const uint8_t* data = planes.data + first * width_ * GROUP;
        const bool is_alone = queries_.size() == 1;
        if (!is_alone) near_kernels().split(data, n_groups, width_, split_.get());
        const auto find = is_alone ? run_.at_least_alone : run_.at_least;
        for (size_t q = 0; q < queries_.size(); ++q) {
            const RealQuery& query = queries_[q];
            const int limit = query.limit(best[q].least());
            const size_t n = find(is_alone ? data : split_.get(), n_groups, width_, query.tables(), limit, positions_.data());
            for (size_t i = 0; i < n; ++i) {
                const size_t position = positions_[i], row = first * GROUP + position;
                if (!is_allowed(planes, row)) continue;
                const uint8_t* code = data + position / GROUP * width_ * GROUP + position % GROUP;
                best[q].offer(static_cast<uint32_t>(row), query.score(code, width_));
            }
        }
    }

private:
    size_t width_;
    const RealKernels& run_;
    std::vector<RealQuery> queries_;
    Buffer<uint8_t> split_;
    std::vector<uint16_t> positions_;
};

class RealSearch {
public:
    using Best = BestScores;
    using Block = RealBlock;
    static constexpr size_t MAX_BLOCK = 128, STEPS = 8;

    RealSearch(const Planes& planes, const double* weights, size_t k) : planes_(planes), weights_(weights), k_(k) {}

    size_t k() const { return k_; }
    Block block(const size_t* numbers, size_t n) const { return Block(weights_, numbers, n, planes_); }
    void begin(BestScores& best, BestScores* of_sample) const { best.begin(k_, of_sample ? of_sample->kth() : BestScores::LOWEST); }
    void begin_sample(size_t rank, BestScores& of_sample) const { of_sample.begin(rank, BestScores::LOWEST); }

private:
    const Planes& planes_;
    const double* weights_;
    size_t k_;
};

}  // namespace

bool scan_real(const Planes& planes, const double* weights, size_t n_queries, const RealResults& results, Workers& workers) {
    if (results.k == 0) return true;
    const RealSearch search(planes, weights, results.k);
    return scan_all(planes, search, n_queries, n_allowed(planes), workers, [&](size_t q, BestScores& best) {
        results.counts[q] = static_cast<int64_t>(best.write(results.scores + q * results.k, results.rows + q * results.k));
    });
}

}  // namespace rankbits
