// Looking up, compiled once for each way to count bits.
#pragma once
#include <bit>

#include "mih.hpp"

namespace rankbits {
namespace {

// Bits [begin, begin + n) of a code of W words (0: some); n is at most 16.
template <size_t W>
inline uint32_t substring(const uint64_t* words, size_t begin, size_t n) {
    const size_t word = W == 1 ? 0 : begin / 64, shift = begin % 64;
    uint64_t bits = words[word] >> shift;
    if (W != 1 && shift + n > 64) bits |= words[word + 1] << (64 - shift);
    return static_cast<uint32_t>(bits & ((uint64_t{1} << n) - 1));
}

// An item comes up in every table that has it near; it counts where it came up first.
template <size_t W>
inline bool is_first(const MihTables& all, const uint64_t* difference, size_t radius, size_t table) {
    for (size_t j = 0; j < all.tables.size(); ++j) {
        const auto distance = static_cast<size_t>(std::popcount(substring<W>(difference, all.tables[j].begin, all.tables[j].n_bits)));
        if (j != table && (distance < radius || (distance == radius && j < table))) return false;
    }
    return true;
}

struct Visit {
    size_t table, radius;
    uint32_t begin, end;  // of the bucket
};

template <size_t W>
inline void visit(const MihTables& all, const Visit& at, const uint64_t* query, const uint64_t* allowed, Nearest& nearest) {
    const size_t n_words = W ? W : all.n_words;
    const MihTable& table = all.tables[at.table];
    int limit = nearest.limit();
    for (size_t i = at.begin; i < at.end; ++i) {
        const uint64_t* code = table.codes.data() + i * n_words;
        int distance = 0;
        for (size_t w = 0; w < n_words; ++w) distance += std::popcount(code[w] ^ query[w]);
        if (distance > limit) continue;
        uint64_t difference[W ? W : MAX_WORDS];
        for (size_t w = 0; w < n_words; ++w) difference[w] = code[w] ^ query[w];
        const uint32_t row = table.rows[i];
        if (is_first<W>(all, difference, at.radius, at.table) && (!allowed || allowed[row / 64] >> (row % 64) & 1)) {
            nearest.offer(row, static_cast<uint32_t>(distance));
            limit = nearest.limit();
        }
    }
}

template <size_t W>
bool look_up_words(const MihTables& all, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest, uint64_t& cost,
                   const std::function<bool()>& is_stopped) {
    const size_t m = all.tables.size(), n_words = W ? W : all.n_words;
    size_t longest = 0;
    for (const MihTable& table : all.tables) longest = std::max(longest, table.n_bits);
    for (size_t radius = 0; radius <= longest; ++radius) {
        for (size_t j = 0; j < m; ++j) {
            const MihTable& table = all.tables[j];
            if (nearest.limit() < static_cast<int>(m * radius + j)) return true;  // all that is as near has come up
            if (radius > table.n_bits) continue;
            const std::vector<uint32_t>& masks = all.masks[table.n_bits][radius];
            if (cost + masks.size() * (PROBE_COST + (all.n >> table.n_bits)) > budget) return false;
            const uint32_t centre = substring<W>(query, table.begin, table.n_bits);
            for (size_t i = 0; i < masks.size(); ++i) {
                if (i + 8 < masks.size()) __builtin_prefetch(&table.starts[centre ^ masks[i + 8]]);
                if (i + 4 < masks.size()) __builtin_prefetch(table.codes.data() + table.starts[centre ^ masks[i + 4]] * n_words);
                const uint32_t bucket = centre ^ masks[i];
                const Visit at{j, radius, table.starts[bucket], table.starts[bucket + 1]};
                cost += PROBE_COST + (at.end - at.begin);
                if (cost > budget || (i % 1024 == 1023 && is_stopped())) return false;
                visit<W>(all, at, query, allowed, nearest);
            }
        }
    }
    return true;
}

bool look_up(const MihTables& all, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest, uint64_t& cost,
             const std::function<bool()>& is_stopped) {
    if (all.n_words == 1) return look_up_words<1>(all, query, allowed, budget, nearest, cost, is_stopped);
    if (all.n_words == 2) return look_up_words<2>(all, query, allowed, budget, nearest, cost, is_stopped);
    return look_up_words<0>(all, query, allowed, budget, nearest, cost, is_stopped);
}

}  // namespace
}  // namespace rankbits
