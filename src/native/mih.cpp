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

// Bits [begin, begin + n) of the code in a row of planes; n is at most 16.
uint32_t bits_of(const uint8_t* planes, size_t row, size_t width, size_t begin, size_t n) {
    const uint8_t* first = planes + row / GROUP * width * GROUP + row % GROUP;
    uint32_t bits = 0;
    for (size_t k = begin / 8; 8 * k < begin + n; ++k) bits |= static_cast<uint32_t>(first[k * GROUP]) << 8 * (k - begin / 8);
    return bits >> begin % 8 & ((1u << n) - 1);
}

// A signature has the bits that entries leave free, up to 16, and is of bits that follow the substring, or stand before it.
void choose_signature(const MihTables& all, MihTable& table) {
    const size_t n_bits = 8 * all.width, end = table.begin + table.n_bits, free = std::min<size_t>(Entries::bits_for(all.n) - all.row_bits, 16);
    const bool is_behind = n_bits - end >= table.begin;
    table.sign_bits = std::min(free, is_behind ? n_bits - end : table.begin);
    table.sign_begin = is_behind ? end : table.begin - table.sign_bits;
    const auto touches = [](size_t byte, size_t begin, size_t n) { return n > 0 && 8 * byte + 8 > begin && 8 * byte < begin + n; };
    for (const size_t round : {0, 1, 2}) {
        if (round == 2) table.n_outside = table.bytes.size();
        for (size_t k = 0; k < all.width; ++k) {
            const size_t known = touches(k, table.begin, table.n_bits) ? 2 : touches(k, table.sign_begin, table.sign_bits) ? 1 : 0;
            if (known == round) table.bytes.push_back(static_cast<uint16_t>(k));
        }
    }
}

// Buckets by counting; put(i, at) writes item i to its place. False if stopped.
template <class BucketOf, class Stopped, class Put>
bool fill(MihTable& table, size_t n, BucketOf bucket_of, Stopped stopped, Put put) {
    table.starts.assign((size_t{1} << table.n_bits) + 1, 0);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        ++table.starts[bucket_of(i) + 1];
    }
    for (size_t bucket = 1; bucket < table.starts.size(); ++bucket) table.starts[bucket] += table.starts[bucket - 1];
    std::vector<uint32_t> place(table.starts.begin(), table.starts.end() - 1);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        put(i, place[bucket_of(i)]++);
    }
    return true;
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

size_t Mih::bytes_needed(size_t n, size_t width, bool copies) {
    const size_t m = n_tables(n, width), longest = (8 * width + m - 1) / m;
    const size_t of_items = copies ? n * (sizeof(uint32_t) + words_of(width) * sizeof(uint64_t)) : Entries::bytes_for(n);
    return m * (of_items + ((size_t{1} << longest) + 1) * sizeof(uint32_t));
}

std::optional<Mih> Mih::build(const uint8_t* planes, size_t n, size_t width, bool copies, Workers& workers) {
    const size_t m = n_tables(n, width), n_words = words_of(width);
    Mih mih;
    mih.tables_ = {n, width, n_words, copies ? nullptr : planes, static_cast<size_t>(std::bit_width(n ? n - 1 : 0)), std::vector<MihTable>(m), {}};
    mih.tables_.masks.resize(17);
    for (size_t j = 0; j < m; ++j) {
        MihTable& table = mih.tables_.tables[j];
        table.begin = j * 8 * width / m;
        table.n_bits = (j + 1) * 8 * width / m - table.begin;
        if (mih.tables_.masks[table.n_bits].empty()) mih.tables_.masks[table.n_bits] = masks_by_radius(table.n_bits);
        if (!copies) choose_signature(mih.tables_, table);
    }
    const size_t n_looks = (n + ITEMS_A_LOOK - 1) / ITEMS_A_LOOK;
    std::vector<uint64_t> words(copies ? n * n_words : 0);  // own memory: planes may be a file that changes
    std::atomic<size_t> next_look{0}, next_table{0};
    const bool is_read = !copies || workers.run([&](size_t w) {
        for (size_t look; (look = next_look++) < n_looks && !workers.stopped(w);) {
            for (size_t i = look * ITEMS_A_LOOK; i < std::min(n, (look + 1) * ITEMS_A_LOOK); ++i) {
                load_code(planes, i, width, words.data() + i * n_words);
            }
        }
    });
    const bool is_finished = is_read && workers.run([&](size_t w) {
        for (size_t j; (j = next_table++) < m;) {
            MihTable& table = mih.tables_.tables[j];
            const auto stopped = [&] { return workers.stopped(w); };
            if (!(copies ? mih.fill_copies(table, words.data(), stopped) : mih.fill_rows(table, stopped))) return;
        }
    });
    if (!is_finished) return std::nullopt;
    return mih;
}

template <class Stopped>
bool Mih::fill_copies(MihTable& table, const uint64_t* words, Stopped stopped) const {
    const size_t n_words = tables_.n_words;
    const auto bucket_of = [&](size_t i) { return substring<0>(words + i * n_words, table.begin, table.n_bits); };
    table.rows.resize(tables_.n);
    table.codes.resize(tables_.n * n_words);
    return fill(table, tables_.n, bucket_of, stopped, [&](size_t i, size_t at) {
        table.rows[at] = static_cast<uint32_t>(i);
        std::copy_n(words + i * n_words, n_words, table.codes.data() + at * n_words);
    });
}

template <class Stopped>
bool Mih::fill_rows(MihTable& table, Stopped stopped) const {
    // Buckets are read once: if planes are a file that changes, a second reading could lead elsewhere.
    std::vector<uint16_t> buckets(tables_.n);
    for (size_t i = 0; i < tables_.n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        buckets[i] = static_cast<uint16_t>(bits_of(tables_.planes, i, tables_.width, table.begin, table.n_bits));
    }
    table.entries.resize(tables_.n);
    return fill(table, tables_.n, [&](size_t i) { return buckets[i]; }, stopped, [&](size_t i, size_t at) {
        const uint64_t sign = bits_of(tables_.planes, i, tables_.width, table.sign_begin, table.sign_bits);
        table.entries.set(at, static_cast<uint32_t>(sign << tables_.row_bits | i));
    });
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
