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

// The code in a row of planes.
void load_code(const uint8_t* planes, size_t row, size_t width, uint64_t* words) {
    const uint8_t* first = planes + row / GROUP * width * GROUP + row % GROUP;
    for (size_t w = 0; 8 * w < width; ++w) {
        uint64_t word = 0;
        for (size_t k = 8 * w; k < width && k < 8 * w + 8; ++k) word |= static_cast<uint64_t>(first[k * GROUP]) << 8 * (k % 8);
        words[w] = word;
    }
}

size_t bits_for(size_t most) { return std::max<size_t>(1, static_cast<size_t>(std::bit_width(most))); }

// Starts of buckets are shared to save memory; with copies speed is what counts.
bool shares_starts(size_t n, size_t n_bits, bool copies) { return !copies && Starts::are_worth_sharing(n, n_bits); }

size_t left_out_bytes(const Cut& cut, bool copies) { return copies ? 0 : cut.n_bits / 8; }

size_t copy_bytes(size_t n, size_t width, size_t left_out) {
    const size_t codes = n * (width - left_out) + 2 * Copy::MARGIN;
    const size_t ways_back = left_out ? Copy::n_marks(n) * sizeof(uint16_t) + (size_t{1} << 8 * left_out) * sizeof(uint32_t) : 0;
    return codes + ways_back + PackedNumbers::bytes_for(n, bits_for(n));
}

size_t tables_bytes(size_t n, size_t width, const Cut& cut, bool copies) {
    const size_t n_copies = copies ? cut.n_tables : 1, starts = Starts::bytes_for(cut.n_bits, shares_starts(n, cut.n_bits, copies));
    return cut.n_tables * starts + n_copies * copy_bytes(n, width, left_out_bytes(cut, copies)) +
           (cut.n_tables - n_copies) * PackedNumbers::bytes_for(n, bits_for(n));
}

// Buckets by counting; put(i, at) writes item i to its place. False if stopped.
template <class BucketOf, class Stopped, class Put>
bool fill(MihTable& table, size_t n, BucketOf bucket_of, Stopped stopped, Put put) {
    std::vector<uint32_t> next((size_t{1} << table.n_bits) + 1, 0);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        ++next[bucket_of(i) + 1];
    }
    for (size_t bucket = 1; bucket < next.size(); ++bucket) next[bucket] += next[bucket - 1];
    table.starts.set(next.data(), table.n_bits, table.shares_starts);
    for (size_t i = 0; i < n; ++i) {
        if (i % ITEMS_A_LOOK == 0 && stopped()) return false;
        put(i, next[bucket_of(i)]++);
    }
    return true;
}

template <class Stopped>
bool fill_copy(MihTable& table, size_t n, size_t width, size_t left_out, const uint64_t* words, Stopped stopped) {
    const size_t n_words = words_of(width);
    Copy& copy = table.copy;
    copy.left_out = left_out;
    copy.code_bytes = width - left_out;
    copy.codes.resize(n * copy.code_bytes + 2 * Copy::MARGIN);
    copy.rows.resize(n, bits_for(n));
    const auto bucket_of = [&](size_t i) { return table.bucket_of(substring<0>(words + i * n_words, table.begin, table.n_bits)); };
    return fill(table, n, bucket_of, stopped, [&](size_t i, size_t at) {
        copy.rows.set(at, static_cast<uint32_t>(i));
        std::memcpy(copy.address(at) + left_out, reinterpret_cast<const uint8_t*>(words + i * n_words) + left_out, copy.code_bytes);
    });
}

// How to find the bytes that a copy leaves out: from how often each value of them occurs.
void mark_left_out(Copy& copy, size_t n, size_t n_words, const uint64_t* words) {
    const size_t n_values = size_t{1} << 8 * copy.left_out;
    std::vector<uint32_t> counts(n_values, 0);
    for (size_t i = 0; i < n; ++i) ++counts[words[i * n_words] & (n_values - 1)];
    copy.firsts.resize(n_values);
    copy.marks.assign(Copy::n_marks(n), static_cast<uint16_t>(n_values - 1));
    for (size_t value = 0, first = 0, mark = 0; value < n_values; ++value) {
        copy.firsts[value] = static_cast<uint32_t>(first);
        first += counts[value];
        for (; mark * Copy::PLACES_A_MARK < first; ++mark) copy.marks[mark] = static_cast<uint16_t>(value);
    }
}

// Places in the copy of the first table; their substring has no bit of what that leaves out.
template <class Stopped>
bool fill_places(MihTable& table, const Copy& copy, size_t n, Stopped stopped) {
    const auto bucket_of = [&](size_t place) {
        uint64_t word;
        std::memcpy(&word, copy.address(place) + table.begin / 8, sizeof(word));
        return static_cast<uint32_t>(word >> table.begin % 8 & ((uint64_t{1} << table.n_bits) - 1));
    };
    table.places.resize(n, bits_for(n));
    return fill(table, n, bucket_of, stopped, [&](size_t place, size_t at) { table.places.set(at, static_cast<uint32_t>(place)); });
}

LookUp best_look_up() {
    const LookUp popcnt = popcnt_look_up();
    return popcnt && &kernels() != &portable_kernels() ? popcnt : portable_look_up();
}

}  // namespace

LookUp portable_look_up() { return &look_up; }

Cut Mih::cut(size_t n, size_t width, bool copies) {
    const auto log_n = static_cast<int>(std::round(std::log2(static_cast<double>(n) + 1)));
    if (copies) {  // a bucket is read in one run: few of them and full
        const auto most = static_cast<size_t>(std::clamp(log_n, 4, 16)), n_tables = (8 * width + most - 1) / most;
        return {n_tables, (8 * width + n_tables - 1) / n_tables};
    }
    // An item of a bucket is a cache line elsewhere: about five to a bucket, and as many tables as three times the codes' memory allows.
    const auto most = static_cast<size_t>(std::clamp(log_n - 2, 4, 23));
    const auto cut_into = [&](size_t n_tables) { return Cut{n_tables, std::min(most, 8 * width / n_tables)}; };
    size_t n_tables = std::max<size_t>(1, (8 * width + most / 2) / most);
    while (n_tables > 2 && tables_bytes(n, width, cut_into(n_tables), false) > 2 * n * width) --n_tables;
    return cut_into(n_tables);
}

size_t Mih::bytes_needed(size_t n, size_t width, bool copies) { return tables_bytes(n, width, cut(n, width, copies), copies); }

std::optional<Mih> Mih::build(const uint8_t* planes, size_t n, size_t width, bool copies, Workers& workers) {
    const Cut cut = Mih::cut(n, width, copies);
    const size_t n_words = words_of(width), n_copies = copies ? cut.n_tables : 1, left_out = left_out_bytes(cut, copies);
    const size_t n_cut = std::min(8 * width, cut.n_tables * cut.n_bits);
    Mih mih;
    mih.tables_ = {n, width, n_words, copies, std::vector<MihTable>(cut.n_tables)};
    std::vector<MihTable>& tables = mih.tables_.tables;
    for (size_t j = 0; j < cut.n_tables; ++j) {
        tables[j].begin = j * n_cut / cut.n_tables;
        tables[j].n_bits = tables[j].n_low = (j + 1) * n_cut / cut.n_tables - tables[j].begin;
    }
    tables[0].n_low -= 8 * left_out;
    for (MihTable& table : tables) table.shares_starts = shares_starts(n, cut.n_bits, copies);
    // Work from begin on, part after part by whichever worker is free; do_part(i, stopped) and the whole are false if stopped.
    const auto share = [&workers](size_t begin, size_t end, auto do_part) {
        std::atomic<size_t> next{begin};
        return workers.run([&](size_t w) {
            const auto stopped = [&] { return workers.stopped(w); };
            for (size_t i; (i = next++) < end && do_part(i, stopped);) {}
        });
    };
    std::vector<uint64_t> words(n * n_words);  // own memory: planes may be a file that changes
    bool is_whole = share(0, (n + ITEMS_A_LOOK - 1) / ITEMS_A_LOOK, [&](size_t look, auto stopped) {
        for (size_t i = look * ITEMS_A_LOOK; i < std::min(n, (look + 1) * ITEMS_A_LOOK); ++i) load_code(planes, i, width, words.data() + i * n_words);
        return !stopped();
    });
    is_whole = is_whole && share(0, n_copies, [&](size_t j, auto stopped) { return fill_copy(tables[j], n, width, left_out, words.data(), stopped); });
    if (is_whole && left_out) mark_left_out(tables[0].copy, n, n_words, words.data());
    std::vector<uint64_t>().swap(words);  // given back before more is taken
    is_whole = is_whole && share(n_copies, cut.n_tables, [&](size_t j, auto stopped) { return fill_places(tables[j], tables[0].copy, n, stopped); });
    if (!is_whole) return std::nullopt;
    return mih;
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
