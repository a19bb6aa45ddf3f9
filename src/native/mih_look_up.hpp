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

inline uint32_t sign_of(const MihTable& table, const uint64_t* query) {
    return table.sign_bits ? substring<0>(query, table.sign_begin, table.sign_bits) : 0;
}

// The code in a row of planes.
inline void load_code(const uint8_t* planes, size_t row, size_t width, uint64_t* words) {
    const uint8_t* first = planes + row / GROUP * width * GROUP + row % GROUP;
    for (size_t w = 0; 8 * w < width; ++w) {
        uint64_t word = 0;
        for (size_t k = 8 * w; k < width && k < 8 * w + 8; ++k) word |= static_cast<uint64_t>(first[k * GROUP]) << 8 * (k % 8);
        words[w] = word;
    }
}

// Rows of one table at one radius that may be near. A byte of a code is a line of planes, each a miss: a row is looked at in a few bytes
// first, of which its bucket and its signature have not told, and only if these are near in all others. Lines are asked for a batch ahead.
template <size_t W>
class Candidates {
public:
    Candidates(const MihTables& all, const uint64_t* query, const uint64_t* allowed, Nearest& nearest)
        : all_(all), query_(query), allowed_(allowed), nearest_(nearest), bytes_(reinterpret_cast<const uint8_t*>(query)) {}

    void begin(size_t table, size_t radius) {
        number_ = table;
        radius_ = radius;
        if (!all_.planes) return;
        sign_ = sign_of(all_.tables[table], query_);
        n_first_ = std::min(all_.tables[table].n_outside, std::max<size_t>(2, all_.width / 4));
    }

    void add_bucket(size_t begin, size_t end) {
        const Entries& entries = all_.tables[number_].entries;
        while (begin < end) {
            const size_t n = std::min(end - begin, BATCH - n_);
            const int left = nearest_.limit() - static_cast<int>(radius_);
            const size_t before = n_;
            for (size_t i = begin; i < begin + n; ++i) {
                const uint64_t entry = entries[i];
                rows_[n_] = static_cast<uint32_t>(entry & ((uint64_t{1} << all_.row_bits) - 1));
                n_ += std::popcount(static_cast<uint32_t>(entry >> all_.row_bits) ^ sign_) <= left;
            }
            for (size_t i = before; i < n_; ++i) ask_for(rows_[i], 0, n_first_);
            begin += n;
            if (n_ == BATCH) finish();
        }
    }

    // Looks at what is left.
    void finish() {
        const std::vector<uint16_t>& order = all_.tables[number_].bytes;
        size_t n_left = 0;
        for (size_t i = 0; i < n_; ++i) {
            const uint8_t* code = address(rows_[i]);
            int distance = static_cast<int>(radius_);
            for (size_t k = 0; k < n_first_; ++k) distance += std::popcount(static_cast<unsigned>(code[order[k] * GROUP] ^ bytes_[order[k]]));
            rows_[n_left] = rows_[i];
            if (distance > nearest_.limit()) continue;
            ask_for(rows_[n_left++], n_first_, order.size());
        }
        for (size_t i = 0; i < n_left; ++i) compare(rows_[i]);
        n_ = 0;
    }

private:
    static constexpr size_t BATCH = 128;

    const uint8_t* address(size_t row) const { return all_.planes + row / GROUP * all_.width * GROUP + row % GROUP; }

    void ask_for(size_t row, size_t from, size_t to) const {
        const std::vector<uint16_t>& order = all_.tables[number_].bytes;
        for (size_t k = from; k < to; ++k) __builtin_prefetch(address(row) + order[k] * GROUP);
    }

    void compare(uint32_t row) {
        const size_t n_words = W ? W : all_.n_words;
        uint64_t difference[W ? W : MAX_WORDS];
        load_code(all_.planes, row, all_.width, difference);
        int distance = 0;
        for (size_t w = 0; w < n_words; ++w) distance += std::popcount(difference[w] ^= query_[w]);
        if (distance > nearest_.limit() || !is_first<W>(all_, difference, radius_, number_)) return;
        if (!allowed_ || allowed_[row / 64] >> (row % 64) & 1) nearest_.offer(row, static_cast<uint32_t>(distance));
    }

    const MihTables& all_;
    const uint64_t *query_, *allowed_;
    Nearest& nearest_;
    const uint8_t* bytes_;
    size_t number_ = 0, radius_ = 0, n_first_ = 0, n_ = 0;
    uint32_t sign_ = 0;
    uint32_t rows_[BATCH + 1];
};

template <size_t W>
bool look_up_words(const MihTables& all, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest, uint64_t& cost,
                   const std::function<bool()>& is_stopped) {
    const size_t m = all.tables.size(), n_words = W ? W : all.n_words;
    Candidates<W> candidates(all, query, allowed, nearest);  // used without copies
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
            candidates.begin(j, radius);
            for (size_t i = 0; i < masks.size(); ++i) {
                if (i + 8 < masks.size()) __builtin_prefetch(&table.starts[centre ^ masks[i + 8]]);
                if (i + 4 < masks.size()) {
                    const size_t first = table.starts[centre ^ masks[i + 4]];
                    __builtin_prefetch(all.planes ? static_cast<const void*>(table.entries.address(first)) : table.codes.data() + first * n_words);
                }
                const uint32_t bucket = centre ^ masks[i];
                const Visit at{j, radius, table.starts[bucket], table.starts[bucket + 1]};
                cost += PROBE_COST + (at.end - at.begin);
                if (cost > budget || (i % 1024 == 1023 && is_stopped())) return false;
                if (all.planes) {
                    candidates.add_bucket(at.begin, at.end);
                } else {
                    visit<W>(all, at, query, allowed, nearest);
                }
            }
            candidates.finish();
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
