// Multi-index hashing: exact search that looks only into buckets near the query.
//
// A code is cut into m substrings, and every substring has a table of its buckets. An item within distance m r + j of the query lies
// within r of it in one of the first j + 1 substrings, or within r - 1 in another; so buckets are visited in order of radius, then
// table, until the k-th item is no farther than that bound. Buckets hold copies of their codes, which a query reads in one run.
#pragma once
#include <optional>

#include "results.hpp"
#include "workers.hpp"

namespace rankbits {

constexpr uint64_t PROBE_COST = 24;  // of a bucket that is visited, in items compared: most of it is waiting for memory
constexpr size_t MAX_WORDS = 64;

struct MihTable {
    size_t begin, n_bits;          // the substring
    std::vector<uint32_t> starts;  // of each bucket
    std::vector<uint32_t> rows;    // in order of bucket
    std::vector<uint64_t> codes;   // the same, n_words each
};

struct MihTables {
    size_t n, width, n_words;
    std::vector<MihTable> tables;
    std::vector<std::vector<std::vector<uint32_t>>> masks;  // [substring bits][radius]: all masks with so many bits set
};

// Shows nearest what may be near; false if it was given up because it would cost more than budget. Words of allowed are null where all
// items may be found. Rows come in any order.
// is_stopped is asked between buckets.
using LookUp = bool (*)(const MihTables& tables, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest,
                        uint64_t& cost, const std::function<bool()>& is_stopped);
LookUp portable_look_up();
LookUp popcnt_look_up();  // null where the compiler or the CPU has no popcnt

class Mih {
public:
    // Substrings of the codes, near log2(n) bits each, from 4 to 16.
    static size_t n_tables(size_t n, size_t width);
    static size_t bytes_needed(size_t n, size_t width);

    // Tables of codes of width bytes, rows first; nothing if stopped.
    static std::optional<Mih> build(const uint8_t* packed, size_t n, size_t width, Workers& workers);

    size_t size() const { return tables_.n; }
    size_t width() const { return tables_.width; }

    // In order of (distance, row); is_finished[q] says which were not given up; cost is that of all. False if stopped.
    bool search(const uint8_t* queries, size_t n_bits, const uint64_t* allowed, const Wanted& wanted, uint64_t budget, Results& results,
                uint8_t* is_finished, uint64_t* cost, Workers& workers) const;

private:
    Mih() = default;
    // False if stopped.
    template <class Stopped>
    bool fill(MihTable& table, const uint64_t* words, Stopped stopped) const;

    MihTables tables_;
};

}  // namespace rankbits
