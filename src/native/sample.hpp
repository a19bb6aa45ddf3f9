// What a sample of the items says about all of them: how far the k-th nearest may be, before a scan and in the course of it.
#pragma once
#include <bit>
#include <cmath>

#include "scan_block.hpp"

namespace rankbits {

// Groups spread evenly over the planes, copied. The larger it is, the nearer the guess that it gives comes to the truth, and the fewer
// items are taken for nothing; it is worth its copy where many queries use it.
class Sample {
public:
    static constexpr size_t FEW_GROUPS = 16, MANY_GROUPS = 4096;
    static constexpr size_t SHARE = 64;  // the part of all groups that a sample for many queries takes

    // At least four times as many groups as FEW_GROUPS, so that the last group, which may not be full, is not among them.
    static bool is_worthwhile(const Planes& all) { return all.n > 4 * FEW_GROUPS * GROUP; }

    Sample(const Planes& all, size_t n_of_all, size_t n_queries) : n_of_all_(n_of_all), n_groups_of_all_(all.n_groups()) {
        const size_t share = n_queries < 16 ? 0 : all.n_groups() / SHARE, bytes = all.width * GROUP;
        const size_t n_groups = std::clamp(share, FEW_GROUPS, MANY_GROUPS);
        data_.resize(n_groups * bytes);
        for (size_t s = 0; s < n_groups; ++s) {
            const size_t g = s * all.n_groups() / n_groups;
            std::copy_n(all.data + g * bytes, bytes, data_.data() + s * bytes);
            if (all.allowed) allowed_.push_back(all.allowed[g]);
            n_items_ += all.allowed ? static_cast<size_t>(std::popcount(all.allowed[g])) : GROUP;
        }
        planes_ = {data_.data(), all.allowed ? allowed_.data() : nullptr, n_groups * GROUP, all.width, all.n_bits};
    }

    Sample(const Sample&) = delete;  // planes_ points into this one

    // For each query of a block, sets nearest to look within a distance that very likely holds k items; near_in_sample has the items of
    // the sample within it.
    void guess(Block& block, const Wanted& wanted, Nearest* near_in_sample, Nearest* nearest) const {
        const size_t rank = rank_of(wanted.k), n_bits = planes_.n_bits, n = block.size();
        const int far = static_cast<int>(n_bits);
        const bool is_large_enough = rank < n_items_;
        for (size_t q = 0; q < n; ++q) near_in_sample[q].begin({rank, far, false}, is_large_enough ? far : -1, n_bits, Rows::ascending);
        if (is_large_enough) block.scan(planes_, 0, planes_.n_groups(), 1, near_in_sample, [] { return false; });
        for (size_t q = 0; q < n; ++q) {
            const int limit = near_in_sample[q].is_full() ? near_in_sample[q].farthest() : far;
            nearest[q].begin(wanted, limit, n_bits, Rows::ascending);
        }
    }

    // Lowers the limit of a query that has seen all groups before this one, if it very likely has k items then. Of those still to come
    // there are two accounts: what has come so far, which is precise if all groups are alike, less three standard deviations; and what
    // the sample has in the groups to come, which is rough but holds for any order of the items. The smaller of both is believed.
    void lower_limit(size_t group, const Nearest& near_in_sample, Nearest& nearest) const {
        const double seen = static_cast<double>(group) / static_cast<double>(n_groups_of_all_), left = 1 - seen;
        const auto first_row = static_cast<uint32_t>((group * planes_.n_groups() + n_groups_of_all_ - 1) / n_groups_of_all_ * GROUP);
        const double items_each = static_cast<double>(n_of_all_) / static_cast<double>(std::max<size_t>(n_items_, 1));
        nearest.lower_limit([&](size_t missing, int limit) {
            const auto n = static_cast<double>(nearest.count_within(limit)), needed = static_cast<double>(missing);
            return n * left - 3 * std::sqrt(n * left) >= seen * needed &&
                   items_each * static_cast<double>(near_in_sample.count_within(limit, first_row)) >= needed;
        });
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
