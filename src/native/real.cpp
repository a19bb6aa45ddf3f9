// The scan by real-valued queries: sums of rounded numbers tell which items of a tile may be good enough, and these are scored exactly.
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

// Which score each item of a tile must have before its correction: at least least * slope - shift, if it is to be `least` after it. Rounding to
// float, here and of the result, is allowed for.
class TileCorrection {
public:
    void set(const Correction& correction, const Planes& planes, size_t first, size_t n_groups) {
        for (size_t g = 0; g < n_groups; ++g) {
            const uint8_t *firsts = planes.extra(first + g), *seconds = firsts + GROUP;
            for (size_t i = 0; i < GROUP; ++i) {
                const double scale = correction.first[firsts[i]] * correction.second[seconds[i]], added = correction.added[firsts[i]];
                const size_t place = g * GROUP + place_of(i);
                const bool is_bound = scale > SMALLEST * std::max(1.0, std::fabs(added));  // or else any score may be enough
                slopes_[place] = is_bound ? static_cast<float>(1 / scale) : 0.0f;
                shifts_[place] = is_bound ? static_cast<float>((added + ROUNDING * std::fabs(added)) / scale) : LARGE;
            }
        }
    }

    const int16_t* below(const RealKernels& run, const RealQuery& query, size_t n_groups, float least) {
        const float lowered = std::max(least - static_cast<float>(ROUNDING) * std::fabs(least), -LARGE);
        run.set_below(slopes_.data(), shifts_.data(), n_groups * GROUP, lowered, query.scale(), query.shift(), below_.data());
        return below_.data();
    }

private:
    static constexpr double SMALLEST = 1e-30, ROUNDING = 1e-6;
    static constexpr float LARGE = 1e36f;

    std::vector<float> slopes_ = std::vector<float>(MAX_TILE), shifts_ = std::vector<float>(MAX_TILE);
    std::vector<int16_t> below_ = std::vector<int16_t>(MAX_TILE);
};

// Queries that share tiles.
class RealBlock {
public:
    RealBlock(const RealNumbers& numbers, const size_t* queries, size_t n, const Planes& planes, const Correction* correction)
        : width_(planes.width),
          is_alone_(n == 1 && planes.n_extra == 0),
          correction_(correction),
          run_(real_kernels()),
          split_(zeroed<uint8_t>(tile_groups(width_) * near_kernels().split_bytes(width_))),
          positions_(MAX_TILE) {
        if (correction) tile_correction_.emplace();
        queries_.reserve(n);
        for (size_t q = 0; q < n; ++q) queries_.emplace_back(numbers, queries[q], width_);
    }

    size_t size() const { return queries_.size(); }
    size_t n_tile() const { return is_alone_ ? MAX_TILE / GROUP : tile_groups(width_); }

    void scan_tile(const Planes& planes, size_t first, size_t n_groups, BestScores* best) {
        if (!is_alone_) split(planes, first, n_groups);
        if (correction_) tile_correction_->set(*correction_, planes, first, n_groups);
        for (size_t q = 0; q < queries_.size(); ++q) {
            const size_t n = find(planes, first, n_groups, queries_[q], best[q].least());
            for (size_t i = 0; i < n; ++i) offer(planes, first * GROUP + positions_[i], queries_[q], best[q]);
        }
    }

private:
    void split(const Planes& planes, size_t first, size_t n_groups) {
        const size_t n_together = planes.n_extra == 0 ? n_groups : 1;  // groups whose codes lie one behind the other
        for (size_t g = 0; g < n_groups; g += n_together) {
            near_kernels().split(planes.codes(first + g), n_together, width_, split_.get() + g * near_kernels().split_bytes(width_));
        }
    }

    // Positions of the items of the tile whose score may be `least` or more.
    size_t find(const Planes& planes, size_t first, size_t n_groups, const RealQuery& query, float least) {
        if (correction_) {
            const int16_t* below = tile_correction_->below(run_, query, n_groups, least);
            return run_.above_each(split_.get(), n_groups, width_, query.tables(), below, positions_.data());
        }
        const int limit = query.limit(least);
        if (is_alone_) return run_.at_least_alone(planes.codes(first), n_groups, width_, query.tables(), limit, positions_.data());
        return run_.at_least(split_.get(), n_groups, width_, query.tables(), limit, positions_.data());
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
    std::optional<TileCorrection> tile_correction_;
};

class RealSearch {
public:
    using Best = BestScores;
    using Block = RealBlock;
    static constexpr size_t MAX_BLOCK = 128, STEPS = 8;

    RealSearch(const Planes& planes, const RealNumbers& numbers, const Correction* correction, size_t k)
        : planes_(planes), numbers_(numbers), correction_(correction), k_(k) {}

    size_t k() const { return k_; }
    Block block(const size_t* queries, size_t n) const { return Block(numbers_, queries, n, planes_, correction_); }
    void begin(BestScores& best, BestScores* of_sample) const { best.begin(k_, of_sample ? of_sample->kth() : BestScores::LOWEST); }
    void begin_sample(size_t rank, BestScores& of_sample) const { of_sample.begin(rank, BestScores::LOWEST); }

private:
    const Planes& planes_;
    const RealNumbers& numbers_;
    const Correction* correction_;
    size_t k_;
};

}  // namespace

bool scan_real(const Planes& planes, const RealNumbers& numbers, size_t n_queries, const Correction* correction, const RealResults& results,
               Workers& workers) {
    if (results.k == 0) return true;
    const RealSearch search(planes, numbers, correction, results.k);
    return scan_all(planes, search, n_queries, n_allowed(planes), workers, [&](size_t q, BestScores& best) {
        results.counts[q] = static_cast<int64_t>(best.write(results.scores + q * results.k, results.rows + q * results.k));
    });
}

}  // namespace rankbits
