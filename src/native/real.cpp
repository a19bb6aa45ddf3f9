// A block of queries goes over the planes tile by tile, as in scan.cpp. A sample of the items first tells each query how large its k-th
// score is at least, very likely; a guess that was too large is found out at the end and put right.
#include "real.hpp"

#include <atomic>
#include <cmath>
#include <limits>

#include "buffers.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t BLOCK = 128;                           // queries
constexpr size_t SPLIT_BYTES = 1 << 14;                 // of a tile: half of a usual L1
constexpr size_t FEW_GROUPS = 16, MANY_GROUPS = 4096;   // of a sample
constexpr size_t SAMPLE_SHARE = 64;                     // the part of all groups that a sample for many queries takes
constexpr float LOWEST = -std::numeric_limits<float>::infinity();

const RealKernels& real_kernels() {
    const RealKernels* avx2 = avx2_real_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_real_kernels();
}

// One query: what each half byte of a code adds to its score, exactly and as bytes.
class RealQuery {
public:
    RealQuery(const double* weights, size_t n_bits, size_t width) : halves_(2 * width * 16), tables_(2 * width * 16) {
        for (size_t half = 0; half < 2 * width; ++half) add_up(weights, n_bits, half);
        round(width);
    }

    const uint8_t* tables() const { return tables_.data(); }

    // The score of an item, in the order of sums that re-ranking has: halves of a byte, then bytes.
    float score(const uint8_t* plane, size_t width) const {
        double sum = 0.0;
        for (size_t k = 0; k < width; ++k) {
            const double* low = halves_.data() + 32 * k;
            const uint8_t byte = plane[k * GROUP];
            sum += low[byte & 15] + low[16 + (byte >> 4)];
        }
        return static_cast<float>(sum) + 0.0f;  // so that -0.0 is 0.0
    }

    // The smallest sum of bytes of an item whose score may be at least `score`.
    int limit(float score) const {
        const double least = (static_cast<double>(score) - slack_ - smallest_) / unit_;
        return least <= 0 ? 0 : least >= MAX_SUM ? MAX_SUM : static_cast<int>(std::ceil(least));
    }

private:
    void add_up(const double* weights, size_t n_bits, size_t half) {
        double* sums = halves_.data() + 16 * half;
        sums[0] = 0.0;
        for (size_t bit = 0; bit < 4; ++bit) {
            const size_t place = half / 2 * 8 + (half % 2 ? 3 : 7) - bit, n = size_t{1} << bit;
            const double weight = place < n_bits ? weights[place] : 0.0;
            for (size_t value = 0; value < n; ++value) {
                sums[n + value] = sums[value] + weight;
                sums[value] -= weight;
            }
        }
    }

    // Bytes count units above the smallest sum of each half. The unit is such that no half needs more than an entry holds, nor a whole
    // code more than MAX_SUM. What rounding may take away in all, with a margin for that of floating point, is slack.
    void round(size_t width) {
        const size_t n_halves = 2 * width;
        const double most = std::min<double>(MAX_ENTRY, MAX_SUM / static_cast<int>(n_halves));
        double widest = 0.0, total = 0.0;
        for (size_t half = 0; half < n_halves; ++half) {
            const auto [least, largest] = std::minmax_element(halves_.begin() + 16 * half, halves_.begin() + 16 * (half + 1));
            widest = std::max(widest, *largest - *least);
            total += std::max(std::fabs(*least), std::fabs(*largest));
        }
        unit_ = widest > 0 ? widest / most : 1.0;
        slack_ = 1e-6 * total;
        for (size_t half = 0; half < n_halves; ++half) {
            const double *sums = halves_.data() + 16 * half, least = *std::min_element(sums, sums + 16);
            double lost = 0.0;
            for (size_t value = 0; value < 16; ++value) {
                const double entry = std::min(most, std::round((sums[value] - least) / unit_));
                tables_[16 * half + value] = static_cast<uint8_t>(entry);
                lost = std::max(lost, sums[value] - least - entry * unit_);
            }
            smallest_ += least;
            slack_ += lost;
        }
    }

    std::vector<double> halves_;
    std::vector<uint8_t> tables_;
    double unit_ = 1.0, smallest_ = 0.0, slack_ = 0.0;
};

struct Scored {
    float score;
    uint32_t row;

    bool operator<(const Scored& other) const { return score != other.score ? score > other.score : row < other.row; }
};

// The k best of the items that a query has been shown, in ascending order of row.
class Best {
public:
    // Another query, in the same memory; items below `least` do not count.
    void begin(size_t k, float least) {
        k_ = k;
        least_ = least;
        is_cut_ = false;
        items_.clear();
    }

    // Whether a score is worth offering: once there have been k, only a larger one is.
    bool takes(float score) const { return is_cut_ ? score > least_ : score >= least_; }
    float least() const { return least_; }
    bool is_full() const { return items_.size() >= k_; }

    void offer(uint32_t row, float score) {
        if (!takes(score)) return;
        items_.push_back({score, row});
        if (items_.size() >= 2 * k_ + 32) cut();
    }

    void offer_all(const Best& later) {
        for (const Scored& item : later.items_) offer(item.row, item.score);
    }

    // The score of the k-th so far; there must be k.
    float kth() {
        cut();
        return least_;
    }

    size_t write(float* scores, int64_t* rows) {
        if (items_.size() > k_) cut();
        std::sort(items_.begin(), items_.end());
        for (size_t i = 0; i < items_.size(); ++i) {
            scores[i] = items_[i].score;
            rows[i] = items_[i].row;
        }
        return items_.size();
    }

private:
    void cut() {
        const auto last = items_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(items_.begin(), last, items_.end());
        least_ = last->score;
        is_cut_ = true;
        items_.resize(k_);
    }

    size_t k_ = 0;
    float least_ = LOWEST;
    bool is_cut_ = false;
    std::vector<Scored> items_;
};

bool is_allowed(const Planes& planes, size_t row) {
    return row < planes.n && (!planes.allowed || planes.allowed[row / GROUP] >> (row % GROUP) & 1);
}

// Queries that share tiles of the planes.
class Block {
public:
    Block(const RealQuery* queries, size_t n, size_t width)
        : queries_(queries),
          n_(n),
          width_(width),
          n_tile_(std::clamp<size_t>(SPLIT_BYTES / near_kernels().split_bytes(width), 1, MAX_TILE / GROUP)),
          split_(zeroed<uint8_t>(n_tile_ * near_kernels().split_bytes(width))),
          positions_(MAX_TILE) {}

    // Shows groups [begin, end) to all queries; false if stopped. The first tiles are short, since a limit that was set by few items
    // already spares most of the next.
    template <class Stopped>
    bool scan(const Planes& planes, size_t begin, size_t end, Best* best, Stopped stopped) {
        size_t most = 1;
        for (size_t g = begin, last; g < end; g = last, most = std::min(2 * most, n_tile_)) {
            last = std::min(end, g + most);
            if (stopped()) return false;
            tile(planes, g, last - g, best);
        }
        return true;
    }

private:
    void tile(const Planes& planes, size_t first, size_t n_groups, Best* best) {
        const uint8_t* data = planes.data + first * width_ * GROUP;
        if (n_ > 1) near_kernels().split(data, n_groups, width_, split_.get());
        for (size_t q = 0; q < n_; ++q) {
            const RealQuery& query = queries_[q];
            const auto find = n_ > 1 ? real_kernels().at_least : real_kernels().at_least_alone;
            const size_t n = find(n_ > 1 ? split_.get() : data, n_groups, width_, query.tables(), query.limit(best[q].least()), positions_.data());
            for (size_t i = 0; i < n; ++i) {
                const size_t position = positions_[i], row = first * GROUP + position;
                if (!is_allowed(planes, row)) continue;
                const float score = query.score(data + position / GROUP * width_ * GROUP + position % GROUP, width_);
                best[q].offer(static_cast<uint32_t>(row), score);
            }
        }
    }

    const RealQuery* queries_;
    size_t n_, width_, n_tile_;
    Buffer<uint8_t> split_;
    std::vector<uint16_t> positions_;
};

size_t n_allowed(const Planes& planes) {
    if (!planes.allowed) return planes.n;
    size_t n = 0;
    for (size_t g = 0; g < planes.n_groups(); ++g) n += static_cast<size_t>(std::popcount(planes.allowed[g]));
    return n;
}

// Groups spread evenly over the planes, copied.
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
            const uint64_t there = ~uint64_t{0} >> (GROUP - std::min(GROUP, all.n - g * GROUP));
            allowed_[s] = all.allowed ? all.allowed[g] & there : there;
            n_items_ += static_cast<size_t>(std::popcount(allowed_[s]));
        }
        planes_ = {data_.data(), allowed_.data(), n_groups * GROUP, all.width, all.n_bits};
    }

    Sample(const Sample&) = delete;  // planes_ points into this one

    // Lets each query of a block begin with a score that very likely k items reach.
    void guess(Block& block, size_t n, size_t k, Best* best) const {
        const double share = static_cast<double>(n_items_) / static_cast<double>(std::max<size_t>(n_of_all_, 1));
        const double expected = static_cast<double>(k) * share;
        const auto rank = static_cast<size_t>(expected + 3 * std::sqrt(expected) + 1);
        for (size_t q = 0; q < n; ++q) best[q].begin(rank, LOWEST);
        if (rank < n_items_) block.scan(planes_, 0, planes_.n_groups(), best, [] { return false; });
        for (size_t q = 0; q < n; ++q) best[q].begin(k, best[q].is_full() ? best[q].kth() : LOWEST);
    }

private:
    size_t n_of_all_, n_items_ = 0;
    std::vector<uint8_t> data_;
    std::vector<uint64_t> allowed_;
    Planes planes_{};
};

// One round over the queries of that number, with a guess from the sample or, where it is null, without. done(q, best) comes once for
// each query, from any thread.
template <class Done>
bool scan_round(const Planes& planes, const double* weights, const std::vector<size_t>& numbers, size_t k, const Sample* sample, Workers& workers,
                Done done) {
    const size_t n_queries = numbers.size(), n_block = std::min(BLOCK, (n_queries + workers.size() - 1) / workers.size());
    const size_t n_blocks = (n_queries + n_block - 1) / n_block, n_groups = planes.n_groups();
    const size_t n_parts = n_blocks < workers.size() ? workers.size() : 1;
    std::vector<Best> of_parts(n_parts > 1 ? n_queries * n_parts : 0);  // few queries: threads share the planes instead
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        std::vector<Best> best(n_block);  // whose memory serves all blocks
        for (size_t task; (task = next++) < n_blocks * n_parts;) {
            const size_t first = task / n_parts * n_block, part = task % n_parts, n = std::min(n_block, n_queries - first);
            std::vector<RealQuery> queries;
            for (size_t q = 0; q < n; ++q) queries.emplace_back(weights + numbers[first + q] * planes.n_bits, planes.n_bits, planes.width);
            Block block(queries.data(), n, planes.width);
            for (size_t q = 0; q < n; ++q) best[q].begin(k, LOWEST);
            if (sample) sample->guess(block, n, k, best.data());
            if (!block.scan(planes, part * n_groups / n_parts, (part + 1) * n_groups / n_parts, best.data(), [&] { return workers.stopped(w); })) return;
            for (size_t q = 0; q < n; ++q) {
                if (n_parts > 1) {
                    of_parts[(first + q) * n_parts + part] = std::move(best[q]);
                } else {
                    done(numbers[first + q], best[q]);
                }
            }
        }
    });
    for (size_t q = 0; is_finished && n_parts > 1 && q < n_queries; ++q) {
        for (size_t part = 1; part < n_parts; ++part) of_parts[q * n_parts].offer_all(of_parts[q * n_parts + part]);
        done(numbers[q], of_parts[q * n_parts]);
    }
    return is_finished;
}

}  // namespace

bool scan_real(const Planes& planes, const double* weights, size_t n_queries, const RealResults& results, Workers& workers) {
    if (n_queries == 0 || results.k == 0) return true;
    const size_t n_there = n_allowed(planes), n_results = std::min(results.k, n_there);
    std::vector<size_t> numbers(n_queries);
    for (size_t q = 0; q < n_queries; ++q) numbers[q] = q;
    std::vector<uint8_t> is_short(n_queries, 0);  // where the guess was too large
    const auto done = [&](size_t q, Best& best) {
        const size_t n = best.write(results.scores + q * results.k, results.rows + q * results.k);
        results.counts[q] = static_cast<int64_t>(n);
        is_short[q] = n < n_results;
    };
    const bool is_sampled = planes.n > 4 * FEW_GROUPS * GROUP;
    if (!is_sampled) return scan_round(planes, weights, numbers, results.k, nullptr, workers, done);
    const Sample sample(planes, n_there, n_queries);
    if (!scan_round(planes, weights, numbers, results.k, &sample, workers, done)) return false;
    std::erase_if(numbers, [&](size_t q) { return !is_short[q]; });
    return numbers.empty() || scan_round(planes, weights, numbers, results.k, nullptr, workers, done);
}

}  // namespace rankbits
