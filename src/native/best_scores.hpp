// What is kept of the items that a real-valued query has been shown: the k with the largest scores.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankbits {

struct Scored {
    float score;
    uint32_t row;

    // Whether it comes before another.
    bool operator<(const Scored& other) const { return score != other.score ? score > other.score : row < other.row; }
};

// Items of one query, offered in ascending order of row.
class BestScores {
public:
    static constexpr float LOWEST = -std::numeric_limits<float>::infinity();

    // Another query, in the same memory; items below `least` do not count.
    void begin(size_t k, float least) {
        k_ = k;
        least_ = least;
        is_cut_ = false;
        items_.clear();
    }

    // The smallest score of an item that may be taken.
    float least() const { return least_; }
    size_t size() const { return items_.size(); }
    bool is_full() const { return items_.size() >= k_; }

    // Once there have been k, an item must be better than the k-th. A score that is no number, which has no place in an order, is not taken.
    void offer(uint32_t row, float score) {
        if (!(is_cut_ ? score > least_ : score >= least_)) return;
        items_.push_back({score, row});
        if (items_.size() >= 2 * k_ + 32) cut();
    }

    // Items of rows behind all that were offered here. They are in no order among themselves, so that equal scores are not compared with the
    // k-th before all are there.
    void offer_all(const BestScores& later) {
        items_.insert(items_.end(), later.items_.begin(), later.items_.end());
        if (items_.size() > k_) cut();
    }

    // The score of the k-th so far; there must be k.
    float kth() {
        cut();
        return least_;
    }

    // Raises the least score to one that k items very likely reach, those taken already and as many as are missing of those yet to be offered.
    // Where fewer come than expected, size() stays below k; only then is anything missing.
    template <class Outlook>
    void tighten(const Outlook& outlook, const BestScores& of_sample) {
        size_t low = 0, rank = k_;  // the smallest rank from which on the missing ones are likely to come is above low, and at most rank
        while (low + 1 < rank) {
            const size_t middle = (low + rank) / 2;
            (outlook.is_likely(middle, k_ - middle) ? rank : low) = middle;
        }
        if (rank >= k_ || rank >= items_.size()) return;
        put_in_place(rank);
        const float score = items_[rank - 1].score;
        if (score <= least_ || !outlook.is_confirmed(of_sample.count_above(score, outlook.first_row()), k_ - rank)) return;
        least_ = score;
        is_cut_ = false;
        std::erase_if(items_, [&](const Scored& item) { return item.score < score; });
    }

    // In order of (score, row); returns how many.
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
    // Items of a score or a larger one, from a row on.
    size_t count_above(float score, uint32_t first_row) const {
        const auto is_one = [&](const Scored& item) { return item.row >= first_row && item.score >= score; };
        return static_cast<size_t>(std::count_if(items_.begin(), items_.end(), is_one));
    }

    void cut() {
        put_in_place(k_);
        least_ = items_[k_ - 1].score;
        is_cut_ = true;
        items_.resize(k_);
    }

    // Brings the item of a rank, from 1 on, to its place, better ones before it.
    void put_in_place(size_t rank) {
        std::nth_element(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(rank - 1), items_.end());
    }

    size_t k_ = 0;
    float least_ = LOWEST;
    bool is_cut_ = false;
    std::vector<Scored> items_;
};

}  // namespace rankbits
