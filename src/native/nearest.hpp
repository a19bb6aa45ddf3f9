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

// Items of one query. With rows offered in ascending order, an item as far as the k-th so far cannot matter any more unless ties are
// wanted; whoever offers rows in another order asks for ties and cuts at the end.
class Nearest {
public:
    Nearest() = default;
    Nearest(const Wanted& wanted, int guess, size_t n_bits) : wanted_(wanted), counts_(n_bits + 1, 0) {
        most_ = std::min({wanted.radius, guess, static_cast<int>(n_bits)});
        limit_ = most_;
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
        limit_ = wanted_.is_complete ? most_ : most_ - 1;
    }

    void offer_all(const Nearest& later) {
        for (const Found& found : later.found_) offer(found.row, found.distance);
    }

    // In order of (distance, row). Rows that were offered in order are put in order of distance only.
    std::vector<Found> finish(bool is_in_order) {
        std::vector<size_t> starts(counts_.size() + 1, 0);
        for (const Found& found : found_) starts[found.distance + 1] += static_cast<int>(found.distance) <= most_;
        for (size_t d = 0; d < counts_.size(); ++d) starts[d + 1] += starts[d];
        std::vector<Found> sorted(starts.back());
        std::vector<size_t> next(starts.begin(), starts.end() - 1);
        for (const Found& found : found_) {
            if (static_cast<int>(found.distance) <= most_) sorted[next[found.distance]++] = found;
        }
        if (!is_in_order) {
            const auto by_row = [](const Found& a, const Found& b) { return a.row < b.row; };
            for (size_t d = 0; d < counts_.size(); ++d) {
                std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(starts[d]), sorted.begin() + static_cast<std::ptrdiff_t>(starts[d + 1]), by_row);
            }
        }
        if (wanted_.k > 0 && !wanted_.is_complete && sorted.size() > wanted_.k) sorted.resize(wanted_.k);
        return sorted;
    }

private:
    // Drops what is out of reach by now.
    void compact() {
        std::erase_if(found_, [&](const Found& found) { return static_cast<int>(found.distance) > most_; });
        if (2 * found_.size() > capacity_) capacity_ *= 2;
    }

    Wanted wanted_{};
    int most_ = -1, limit_ = -1;  // the largest distance of an item that is kept; that at which one is still taken
    size_t total_ = 0, capacity_ = 512;
    std::vector<uint32_t> counts_;  // items taken, by distance
    std::vector<Found> found_;
};

}  // namespace rankbits
