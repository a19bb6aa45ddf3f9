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
        total_ = n_taken_ = 0;
        counts_.assign(n_bits + 1, 0);
    }

    // The largest distance at which a further item is kept.
    int limit() const { return limit_; }
    // The largest distance of an item that is kept; where items are full, that of the k-th.
    int farthest() const { return most_; }
    // Items found so far that may yet be wanted.
    size_t size() const { return total_; }
    bool is_full() const { return wanted_.k > 0 && total_ >= wanted_.k; }
    // Items that write() will write.
    size_t n_results() const { return wanted_.k > 0 && !wanted_.is_complete ? std::min(total_, wanted_.k) : total_; }

    // Items taken so far at a distance of at most this, which is within the limit.
    size_t count_within(int distance) const {
        size_t n = total_;
        for (int d = most_; d > distance; --d) n -= counts_[static_cast<size_t>(d)];
        return n;
    }
    // Those of them whose row is first_row or a later one.
    size_t count_within(int distance, uint32_t first_row) const {
        const auto is_one = [&](const Found& found) { return found.row >= first_row && static_cast<int>(found.distance) <= distance; };
        return static_cast<size_t>(std::count_if(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(n_taken_), is_one));
    }

    // Lowers the limit for as long as k items may be expected below it: those taken already, and as many as are missing from those yet to
    // be offered, according to the outlook and what a sample has. With ascending rows what was taken may be farther than the new limit by one,
    // since these are the first items at that distance. Where fewer come than expected, size() stays below k; only then is anything missing.
    template <class Outlook>
    void tighten(const Outlook& outlook, const Nearest& of_sample) {
        const int beyond = beyond_limit();
        while (limit_ > 0) {
            const size_t n = count_within(limit_ - 1 + beyond), missing = n < wanted_.k ? wanted_.k - n : 0;
            if (missing > 0 && !(outlook.is_likely(count_within(limit_ - 1), missing) &&
                                 outlook.is_confirmed(of_sample.count_within(limit_ - 1, outlook.first_row()), missing))) {
                return;
            }
            --limit_;
            while (most_ > limit_ + beyond) total_ -= counts_[static_cast<size_t>(most_--)];
        }
    }

    void offer(uint32_t row, uint32_t distance) {
        if (static_cast<int>(distance) > limit_) return;
        if (n_taken_ == taken_.size()) make_room(1);
        taken_[n_taken_++] = {row, distance};
        ++counts_[distance];
        ++total_;
        if (wanted_.k == 0 || total_ < wanted_.k) return;
        while (total_ - counts_[static_cast<size_t>(most_)] >= wanted_.k) total_ -= counts_[static_cast<size_t>(most_--)];
        limit_ = most_ - beyond_limit();
    }

    // Items that get(i) gives as (row, distance), n of them: as if offered one by one, but what changes stays in registers.
    template <class Get>
    void offer_each(size_t n, Get get) {
        if (n == 0) return;
        if (n_taken_ + n > taken_.size()) make_room(n);
        size_t n_taken = n_taken_, total = total_;
        int limit = limit_, most = most_;
        Found* const taken = taken_.data();
        uint32_t* const counts = counts_.data();
        const size_t k = wanted_.k ? wanted_.k : SIZE_MAX;
        const int beyond = beyond_limit();
        for (size_t i = 0; i < n; ++i) {
            const Found found = get(i);
            if (static_cast<int>(found.distance) > limit) continue;
            taken[n_taken++] = found;
            ++counts[found.distance];
            if (++total < k) continue;
            while (total - counts[static_cast<size_t>(most)] >= k) total -= counts[static_cast<size_t>(most--)];
            limit = most - beyond;
        }
        n_taken_ = n_taken;
        total_ = total;
        limit_ = limit;
        most_ = most;
    }

    void offer_all(const Nearest& later) {
        for (size_t i = 0; i < later.n_taken_; ++i) offer(later.taken_[i].row, later.taken_[i].distance);
    }

    // In place of the rows that were offered, those that row_of gives for them.
    template <class RowOf>
    void rename(RowOf row_of) {
        for (size_t i = 0; i < n_taken_; ++i) {
            if (static_cast<int>(taken_[i].distance) <= most_) taken_[i].row = row_of(taken_[i].row);
        }
    }

    // In order of (distance, row): each item goes to the next place of its distance, and rows in any order are sorted there.
    template <class Distance, class Row>
    void write(Distance* distances, Row* rows) {
        const size_t n = n_results(), n_bins = static_cast<size_t>(most_ + 1);
        next_.resize(n_bins + 1);
        next_[0] = 0;
        for (size_t d = 0; d < n_bins; ++d) {
            next_[d + 1] = next_[d] + counts_[d];
            std::fill(distances + std::min(n, next_[d]), distances + std::min(n, next_[d + 1]), static_cast<Distance>(d));
        }
        if (rows_ == Rows::ascending) {
            for (size_t i = 0; i < n_taken_; ++i) {
                if (static_cast<int>(taken_[i].distance) > most_) continue;
                const size_t place = next_[taken_[i].distance]++;
                if (place < n) rows[place] = static_cast<Row>(taken_[i].row);
            }
            return;
        }
        ordered_.resize(total_);
        for (size_t i = 0; i < n_taken_; ++i) {
            if (static_cast<int>(taken_[i].distance) <= most_) ordered_[next_[taken_[i].distance]++] = taken_[i].row;
        }
        size_t first = 0;
        for (size_t d = 0; d < n_bins; first = next_[d++]) std::sort(ordered_.data() + first, ordered_.data() + next_[d]);
        std::copy_n(ordered_.data(), n, rows);
    }

private:
    static constexpr size_t LEAST = 512;  // items that there is always room for

    // By how much an item that is kept may be farther than one that is still taken, once there are enough.
    int beyond_limit() const { return wanted_.is_complete || rows_ == Rows::any ? 0 : 1; }

    // Room for n more: drops what is out of reach by now, and if that is little takes more memory.
    void make_room(size_t n) {
        const auto is_out = [&](const Found& found) { return static_cast<int>(found.distance) > most_; };
        const auto last = taken_.begin() + static_cast<std::ptrdiff_t>(n_taken_);
        n_taken_ = static_cast<size_t>(std::remove_if(taken_.begin(), last, is_out) - taken_.begin());
        if (2 * (n_taken_ + n) >= taken_.size()) taken_.resize(std::max(LEAST, 2 * (n_taken_ + n)));
    }

    Wanted wanted_{};
    Rows rows_ = Rows::ascending;
    int most_ = -1, limit_ = -1;  // the largest distance of an item that is kept; that at which one is still taken
    size_t total_ = 0, n_taken_ = 0;
    std::vector<uint32_t> counts_;  // items taken, by distance
    std::vector<Found> taken_;      // the first n_taken_ of them
    std::vector<size_t> next_;
    std::vector<uint32_t> ordered_;
};

}  // namespace rankbits
