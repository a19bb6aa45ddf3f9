// What a sample of the items says about all of them: how far the k-th best may be, before a scan and in the course of it.
#pragma once
#include <cmath>
#include <vector>

#include "scan_block.hpp"

namespace rankbits {

// What a query may expect of the groups that it has not seen yet. There are two accounts: what has come so far, which is precise if all
// groups are alike, less three standard deviations; and what the sample has in the groups to come, which is rough but holds for any order of
// the items. A limit is believed if both agree that enough items will come within it.
class Outlook {
public:
    Outlook(double seen, double items_each, uint32_t first_row) : seen_(seen), items_each_(items_each), first_row_(first_row) {}

    // Where n items within a limit have come so far, whether the missing ones will too.
    bool is_likely(size_t n, size_t missing) const {
        const double come = static_cast<double>(n) * (1 - seen_);
        return come - 3 * std::sqrt(come) >= seen_ * static_cast<double>(missing);
    }
    // Where n items of the sample from first_row on are within a limit.
    bool is_confirmed(size_t n, size_t missing) const { return items_each_ * static_cast<double>(n) >= static_cast<double>(missing); }
    uint32_t first_row() const { return first_row_; }

private:
    double seen_, items_each_;
    uint32_t first_row_;
};

// Groups spread evenly over the planes, copied. The larger it is, the nearer the guess that it gives comes to the truth, and the fewer
// items are taken for nothing; it is worth its copy where many queries use it.
class Sample {
public:
    static constexpr size_t FEW_GROUPS = 16, MANY_GROUPS = 4096;
    static constexpr size_t SHARE = 64;  // the part of all groups that a sample for many queries takes

    // At least four times as many groups as FEW_GROUPS, so that the last group, which may not be full, is not among them.
    static bool is_worthwhile(const Planes& all) { return all.n > 4 * FEW_GROUPS * GROUP; }

    Sample(const Planes& all, size_t n_of_all, size_t n_queries) : n_of_all_(n_of_all), n_groups_of_all_(all.n_groups()) {
        const size_t share = n_queries < 16 ? 0 : all.n_groups() / SHARE, bytes = all.group_bytes();
        const size_t n_groups = std::clamp(share, FEW_GROUPS, MANY_GROUPS);
        data_.resize(n_groups * bytes);
        for (size_t s = 0; s < n_groups; ++s) {
            const size_t g = s * all.n_groups() / n_groups;
            std::copy_n(all.extra(g), bytes, data_.data() + s * bytes);
            if (all.allowed) allowed_.push_back(all.allowed[g]);
            n_items_ += all.allowed ? static_cast<size_t>(std::popcount(all.allowed[g])) : GROUP;
        }
        planes_ = {data_.data(), all.allowed ? allowed_.data() : nullptr, n_groups * GROUP, all.width, all.n_bits, all.n_extra};
    }

    Sample(const Sample&) = delete;  // planes_ points into this one

    // Lets each query of a block begin with a limit within which very likely k items lie; of_sample has the items of the sample within it.
    template <class Search>
    void guess(const Search& search, typename Search::Block& block, typename Search::Best* of_sample, typename Search::Best* best) const {
        const size_t rank = rank_of(search.k());
        for (size_t q = 0; q < block.size(); ++q) search.begin_sample(rank, of_sample[q]);
        if (rank < n_items_) scan_groups(planes_, 0, planes_.n_groups(), 1, block, of_sample, [] { return false; });
        for (size_t q = 0; q < block.size(); ++q) search.begin(best[q], of_sample[q].is_full() ? &of_sample[q] : nullptr);
    }

    // Of a query that has seen all groups before this one.
    Outlook outlook(size_t group) const {
        const size_t first_group = (group * planes_.n_groups() + n_groups_of_all_ - 1) / n_groups_of_all_;
        return {static_cast<double>(group) / static_cast<double>(n_groups_of_all_),
                static_cast<double>(n_of_all_) / static_cast<double>(std::max<size_t>(n_items_, 1)), static_cast<uint32_t>(first_group * GROUP)};
    }

private:
    // The place in the sample within which the k-th of all items very likely lies.
    size_t rank_of(size_t k) const {
        const double share = static_cast<double>(n_items_) / static_cast<double>(std::max<size_t>(n_of_all_, 1));
        const double expected = std::min(static_cast<double>(k) * share, static_cast<double>(n_items_));
        return static_cast<size_t>(expected + 3 * std::sqrt(expected) + 1);
    }

    size_t n_of_all_, n_groups_of_all_, n_items_ = 0;
    std::vector<uint8_t> data_;
    std::vector<uint64_t> allowed_;
    Planes planes_{};
};

}  // namespace rankbits
