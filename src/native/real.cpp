// The scan by real-valued queries: sums of rounded weights tell which items of a tile may be good enough, and these are scored exactly.
#include "real.hpp"

#include <optional>

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

// The largest and the smallest of what corrects the scores of some items.
class CorrectionBounds {
public:
    CorrectionBounds(const Correction& correction, const Planes& planes, size_t first, size_t n_groups) {
        for (size_t g = first; g < first + n_groups; ++g) {
            const uint8_t *firsts = planes.extra(g), *seconds = firsts + GROUP;
            for (size_t i = 0; i < GROUP; ++i) {
                const double scale = correction.first[firsts[i]] * correction.second[seconds[i]];
                largest_ = std::max(largest_, scale);
                smallest_ = std::min(smallest_, scale);
                most_added_ = std::max(most_added_, correction.added[firsts[i]]);
            }
        }
    }

    // What a score must be at least if it is to become `least`; rounding, also that of the result to float, is allowed for.
    double before(double least) const {
        const double missing = least - most_added_ - 1e-6 * (std::fabs(least) + std::fabs(most_added_));
        const double scale = missing > 0 ? largest_ : smallest_;
        return scale > 0 ? missing / scale : missing > 0 ? INFINITY : -INFINITY;
    }

private:
    double largest_ = 0.0, smallest_ = INFINITY, most_added_ = -INFINITY;
};

// Queries that share tiles.
class RealBlock {
public:
    RealBlock(const double* weights, const size_t* numbers, size_t n, const Planes& planes, const Correction* correction)
        : width_(planes.width),
          is_alone_(n == 1 && planes.n_extra == 0),
          correction_(correction),
          run_(real_kernels()),
          split_(zeroed<uint8_t>(tile_groups(width_) * near_kernels().split_bytes(width_))),
          positions_(MAX_TILE) {
        queries_.reserve(n);
        for (size_t q = 0; q < n; ++q) queries_.emplace_back(weights + numbers[q] * planes.n_bits, planes.n_bits, width_);
    }

    size_t size() const { return queries_.size(); }
    size_t n_tile() const { return is_alone_ ? MAX_TILE / GROUP : tile_groups(width_); }

    void scan_tile(const Planes& planes, size_t first, size_t n_groups, BestScores* best) {
        if (!is_alone_) split(planes, first, n_groups);
        std::optional<CorrectionBounds> bounds;
        if (correction_) bounds.emplace(*correction_, planes, first, n_groups);
        const auto find = is_alone_ ? run_.at_least_alone : run_.at_least;
        const uint8_t* tile = is_alone_ ? planes.codes(first) : split_.get();
        for (size_t q = 0; q < queries_.size(); ++q) {
            const RealQuery& query = queries_[q];
            const double least = best[q].least();
            const int limit = query.limit(bounds ? bounds->before(least) : least);
            const size_t n = find(tile, n_groups, width_, query.tables(), limit, positions_.data());
            for (size_t i = 0; i < n; ++i) offer(planes, first * GROUP + positions_[i], query, best[q]);
        }
    }

private:
    void split(const Planes& planes, size_t first, size_t n_groups) {
        const size_t n_together = planes.n_extra == 0 ? n_groups : 1;  // groups whose codes lie one behind the other
        for (size_t g = 0; g < n_groups; g += n_together) {
            near_kernels().split(planes.codes(first + g), n_together, width_, split_.get() + g * near_kernels().split_bytes(width_));
        }
    }

    void offer(const Planes& planes, size_t row, const RealQuery& query, BestScores& best) const {
        if (!is_allowed(planes, row)) return;
        const uint8_t* code = planes.codes(row / GROUP) + row % GROUP;
        double score = query.score(code, width_);
        if (correction_) {
            const uint8_t* extra = planes.extra(row / GROUP) + row % GROUP;
            score = (*correction_)(score, extra[0], extra[GROUP]);
        }
        best.offer(static_cast<uint32_t>(row), static_cast<float>(score) + 0.0f);  // so that -0.0 is 0.0
    }

    size_t width_;
    bool is_alone_;
    const Correction* correction_;
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

    RealSearch(const Planes& planes, const double* weights, const Correction* correction, size_t k)
        : planes_(planes), weights_(weights), correction_(correction), k_(k) {}

    size_t k() const { return k_; }
    Block block(const size_t* numbers, size_t n) const { return Block(weights_, numbers, n, planes_, correction_); }
    void begin(BestScores& best, BestScores* of_sample) const { best.begin(k_, of_sample ? of_sample->kth() : BestScores::LOWEST); }
    void begin_sample(size_t rank, BestScores& of_sample) const { of_sample.begin(rank, BestScores::LOWEST); }

private:
    const Planes& planes_;
    const double* weights_;
    const Correction* correction_;
    size_t k_;
};

}  // namespace

bool scan_real(const Planes& planes, const double* weights, size_t n_queries, const Correction* correction, const RealResults& results,
               Workers& workers) {
    if (results.k == 0) return true;
    const RealSearch search(planes, weights, correction, results.k);
    return scan_all(planes, search, n_queries, n_allowed(planes), workers, [&](size_t q, BestScores& best) {
        results.counts[q] = static_cast<int64_t>(best.write(results.scores + q * results.k, results.rows + q * results.k));
    });
}

}  // namespace rankbits
