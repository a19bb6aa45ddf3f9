#include "mih.hpp"

#include <atomic>
#include <cmath>
#include <cstring>

#include "dispatch.hpp"
#include "mih_look_up.hpp"

namespace rankbits {
namespace {

constexpr size_t ITEMS_A_LOOK = 1 << 16;  // items put into a table between two looks at whether to go on

size_t words_of(size_t width) { return (width + 7) / 8; }

void load_words(const uint8_t* code, size_t width, uint64_t* words) {
    words[words_of(width) - 1] = 0;
    std::memcpy(words, code, width);
}

// Masks of n bits by the number of bits set, ascending.
std::vector<std::vector<uint32_t>> masks_by_radius(size_t n) {
    std::vector<std::vector<uint32_t>> masks(n + 1);
    for (uint32_t mask = 0; mask < (1u << n); ++mask) masks[static_cast<size_t>(std::popcount(mask))].push_back(mask);
    return masks;
}

LookUp best_look_up() {
    const LookUp popcnt = popcnt_look_up();
    return popcnt && &kernels() != &portable_kernels() ? popcnt : portable_look_up();
}

}  // namespace

LookUp portable_look_up() { return &look_up; }

size_t Mih::n_tables(size_t n, size_t width) {
    const double wanted = std::clamp(std::round(std::log2(static_cast<double>(n) + 1)), 4.0, 16.0);
    return static_cast<size_t>(std::ceil(static_cast<double>(8 * width) / wanted));
}

size_t Mih::bytes_needed(size_t n, size_t width) {
    const size_t m = n_tables(n, width), longest = (8 * width + m - 1) / m;
    return m * (n * (sizeof(uint32_t) + words_of(width) * sizeof(uint64_t)) + ((size_t{1} << longest) + 1) * sizeof(uint32_t));
}

std::optional<Mih> Mih::build(const uint8_t* packed, size_t n, size_t width, Workers& workers) {
    const size_t m = n_tables(n, width), n_words = words_of(width);
    Mih mih;
    mih.tables_ = {n, width, n_words, std::vector<MihTable>(m), std::vector<std::vector<std::vector<uint32_t>>>(17)};
    for (size_t j = 0; j < m; ++j) {
        const size_t begin = j * 8 * width / m, n_bits = (j + 1) * 8 * width / m - begin;
        mih.tables_.tables[j].begin = begin;
        mih.tables_.tables[j].n_bits = n_bits;
        if (mih.tables_.masks[n_bits].empty()) mih.tables_.masks[n_bits] = masks_by_radius(n_bits);
    }
    std::vector<uint64_t> words(n * n_words);
    for (size_t i = 0; i < n; ++i) load_words(packed + i * width, width, words.data() + i * n_words);
    std::atomic<size_t> next{0};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t j; (j = next++) < m;) {
            if (!mih.fill(mih.tables_.tables[j], words.data(), [&] { return workers.stopped(w); })) return;
        }
    });
    if (!is_finished) return std::nullopt;
    return mih;
}

template <class Stopped>
bool Mih::fill(MihTable& table, const uint64_t* words, Stopped stopped) const {
    const size_t n = tables_.n, n_words = tables_.n_words;
    const auto bucket_of = [&](size_t i) { return substring<0>(words + i * n_words, table.begin, table.n_bits); };
    table.starts.assign((size_t{1} << table.n_bits) + 1, 0);
    table.rows.resize(n);
    table.codes.resize(n * n_words);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        ++table.starts[bucket_of(i) + 1];
    }
    for (size_t bucket = 1; bucket < table.starts.size(); ++bucket) table.starts[bucket] += table.starts[bucket - 1];
    std::vector<uint32_t> place(table.starts.begin(), table.starts.end() - 1);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        const size_t at = place[bucket_of(i)]++;
        table.rows[at] = static_cast<uint32_t>(i);
        std::copy_n(words + i * n_words, n_words, table.codes.data() + at * n_words);
    }
    return true;
}

bool Mih::search(const uint8_t* queries, size_t n_bits, const uint64_t* allowed, const Wanted& wanted, uint64_t budget, Results& results,
                 uint8_t* is_finished, uint64_t* cost, Workers& workers) const {
    const LookUp run = best_look_up();
    if (wanted.k > 0 && !wanted.is_complete) results.hope_for(std::min(wanted.k, tables_.n));
    std::atomic<size_t> next{0};
    std::atomic<uint64_t> total{0};
    const bool is_whole = workers.run([&](size_t w) {
        Nearest nearest;
        uint64_t cost_here = 0;
        for (size_t q; (q = next++) < results.n_queries();) {
            if (workers.stopped(w)) return;
            uint64_t query[MAX_WORDS + 1] = {}, cost_of_query = 0;
            load_words(queries + q * tables_.width, tables_.width, query);
            nearest.begin(wanted, static_cast<int>(n_bits), n_bits, Rows::any);
            is_finished[q] = run(tables_, query, allowed, budget, nearest, cost_of_query, [&] { return workers.stopped(w); });
            cost_here += cost_of_query;
            if (is_finished[q]) results.put(q, nearest);
        }
        total += cost_here;
    });
    *cost = total;
    return is_whole;
}

}  // namespace rankbits
