// The ties of a ranking, from its marks and the items counted among them: neighbors whose items are all of one level come as one.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rankbits {

template <class Position>  // uint8_t or uint16_t
struct MarkedRanking {
    const double* marks;                 // ascending
    const Position* positions;           // level of the relevant item at each mark, above 0
    const uint32_t *before, *at;         // irrelevant items, at the first of equal marks
    size_t n_marks, n_items;
};

// Writes rows of n_levels counts, which must be zero before; ties that begin at rank `depth` or beyond, counted from 0, come as one.
class TieTable {
public:
    TieTable(int64_t* counts, size_t n_levels, uint64_t depth) : counts_(counts), n_levels_(n_levels), depth_(depth) {}

    // Returns how many ties there are: at most 2 n_marks + 1.
    template <class Position>
    size_t fill(const MarkedRanking<Position>& ranking) {
        for (size_t mark = 0, end; mark < ranking.n_marks; mark = end) {
            bool is_pure = ranking.at[mark] == 0;
            for (end = mark + 1; end < ranking.n_marks && ranking.marks[end] == ranking.marks[mark]; ++end) {
                is_pure &= ranking.positions[end] == ranking.positions[mark];
            }
            begin_tie(0, ranking.before[mark]);
            add(0, ranking.before[mark]);
            begin_tie(is_pure ? static_cast<int64_t>(ranking.positions[mark]) : MIXED, end - mark);
            add(0, ranking.at[mark]);
            for (size_t i = mark; i < end; ++i) add(ranking.positions[i], 1);
        }
        const uint64_t n_behind = ranking.n_items - rank_;
        begin_tie(0, n_behind);
        add(0, n_behind);
        return n_ties_;
    }

private:
    static constexpr int64_t NONE = -2, MIXED = -1;

    // What is added next is a tie of its own, unless its items cannot be told from those before.
    void begin_tie(int64_t level, uint64_t n) {
        if (n == 0) return;
        const bool is_beyond = rank_ >= depth_;
        const bool is_same = is_beyond ? is_beyond_ : level == level_ && level != MIXED;
        if (n_ties_ == 0 || !is_same) ++n_ties_;
        level_ = level;
        is_beyond_ = is_beyond;
    }

    void add(size_t position, uint64_t n) {
        if (n == 0) return;
        counts_[(n_ties_ - 1) * n_levels_ + position] += static_cast<int64_t>(n);
        rank_ += n;
    }

    int64_t* counts_;
    size_t n_levels_, n_ties_ = 0;
    uint64_t depth_, rank_ = 0;
    int64_t level_ = NONE;
    bool is_beyond_ = false;
};

}  // namespace rankbits
