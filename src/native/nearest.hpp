// What is kept of the items that a query has been shown: the k nearest, or all within a limit.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankbits {

struct Found {
    uint32_t row;
    uint32_t distance;
};

// How items are wanted: the k nearest (k = 0: all) at a distance of at most radius, and where is_complete every item that is as far as
// the k-th.
struct Wanted {
    size_t k;
    int radius;
    bool is_complete;
};

enum class Rows { ascending, any };  // the order in which items are offered

// Items of one query. With rows offered in ascending order, an item as far as the k-th so far cannot matter any more unless ties are
// wanted; in any other order ties are kept until the end, and cut there.
class Nearest {
public:
    Nearest() = default;
    Nearest(const Wanted& wanted, int guess, size_t n_bits, Rows rows = Rows::ascending) { begin(wanted, guess, n_bits, rows); }

    // Another query, in the same memory.
    void begin(const Wanted& wanted, int guess, size_t n_bits, Rows rows) {
        wanted_ = wanted;
        rows_ = rows;
        most_ = limit_ = std::min({wanted.radius, guess, static_cast<int>(n_bits)});
        total_ = 0;
        counts_.assign(n_bits + 1, 0);
        found_.clear();
    }

    // The largest distance at which a further item is kept.
    int limit() const { return limit_; }
    // Items found so far that may yet be wanted.
    size_t size() const { return total_; }
    bool is_full() const { return wanted_.k > 0 && total_ >= wanted_.k; }

    void offer(uint32_t row, uint32_t distance) {
        if (static_cast<int>(distance) > limit_) return;
        if (found_.size() >= capacity_) compact();
        found_.push_back({row, distance});
        ++counts_[distance];
        ++total_;
        if (wanted_.k == 0 || total_ < wanted_.k) return;
        while (total_ - counts_[static_cast<size_t>(most_)] >= wanted_.k) total_ -= counts_[static_cast<size_t>(most_--)];
        limit_ = wanted_.is_complete || rows_ == Rows::any ? most_ : most_ - 1;
    }

    void offer_all(const Nearest& later) {
        for (const Found& found : later.found_) offer(found.row, found.distance);
    }

    // In order of (distance, row).
    std::vector<Found> finish() {
        std::erase_if(found_, [&](const Found& found) { return static_cast<int>(found.distance) > most_; });
        std::vector<Found> sorted = found_.size() <= FEW || rows_ == Rows::any ? compared() : counted();
        if (wanted_.k > 0 && !wanted_.is_complete && sorted.size() > wanted_.k) sorted.resize(wanted_.k);
        return sorted;
    }

private:
    static constexpr size_t FEW = 64;  // items that a plain sort orders faster than counting does

    std::vector<Found> compared() const {
        std::vector<Found> sorted(found_);
        std::sort(sorted.begin(), sorted.end(),
                  [](const Found& a, const Found& b) { return a.distance != b.distance ? a.distance < b.distance : a.row < b.row; });
        return sorted;
    }

    // Rows are in order already, so that places by distance are enough.
    std::vector<Found> counted() const {
        std::vector<size_t> next(counts_.size() + 1, 0);
        for (const Found& found : found_) ++next[found.distance + 1];
        for (size_t d = 0; d < counts_.size(); ++d) next[d + 1] += next[d];
        std::vector<Found> sorted(found_.size());
        for (const Found& found : found_) sorted[next[found.distance]++] = found;
        return sorted;
    }

    // Drops what is out of reach by now.
    void compact() {
        std::erase_if(found_, [&](const Found& found) { return static_cast<int>(found.distance) > most_; });
        if (2 * found_.size() > capacity_) capacity_ *= 2;
    }

    Wanted wanted_{};
    Rows rows_ = Rows::ascending;
    int most_ = -1, limit_ = -1;  // the largest distance of an item that is kept; that at which one is still taken
    size_t total_ = 0, capacity_ = 512;
    std::vector<uint32_t> counts_;  // items taken, by distance
    std::vector<Found> found_;
};

}  // namespace rankbits
