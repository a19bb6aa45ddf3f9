// Multi-index hashing: exact search that looks only into buckets near the query.
//
// m substrings of a code have a table of buckets each. An item within distance m r + j of the query lies within r of it in one of the
// first j + 1 substrings, or within r - 1 in another; so buckets are visited in order of radius, then table, until the k-th item is no
// farther than that bound. Bits outside all substrings do no harm: they only add to distances.
//
// With copies, every table has the codes in the order of its buckets, and a query reads a bucket in one run. Without, only the first
// table has: the others lead to places in that copy.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "near.hpp"
#include "packed.hpp"
#include "results.hpp"
#include "starts.hpp"
#include "workers.hpp"

namespace rankbits {

constexpr uint64_t PROBE_COST = 24;  // of a bucket that is visited, in items compared: most of it is waiting for memory
constexpr size_t MAX_WORDS = 64;

// How codes are cut: m substrings, of so many bits at most.
struct Cut {
    size_t n_tables, n_bits;
};

// Codes in the order of a table's buckets, and the row of each place. The first bytes of codes may be left out, as many as the table's
// substring has in full: buckets are then in order of these bytes, so that the number of a place tells what they are.
struct Copy {
    static constexpr size_t MARGIN = sizeof(uint64_t);  // a code is read in whole words, which reach over both its ends
    static constexpr size_t PLACES_A_MARK = 256;
    static size_t n_marks(size_t n) { return n / PLACES_A_MARK + 2; }

    size_t left_out, code_bytes;
    LargeVector<uint8_t> codes;
    PackedNumbers rows;
    std::vector<uint32_t> firsts;  // the first place of each value of the bytes that are left out
    std::vector<uint16_t> marks;   // that value at every PLACES_A_MARK-th place, and behind the last the largest there is

    // Where the code would begin if nothing was left out.
    const uint8_t* address(size_t place) const { return codes.data() + MARGIN + place * code_bytes - left_out; }
    uint8_t* address(size_t place) { return codes.data() + MARGIN + place * code_bytes - left_out; }
};

struct MihTable {
    size_t begin, n_bits;  // the substring
    size_t n_low;          // the bits of a bucket's number below those of the bytes that its copy leaves out
    bool shares_starts;
    Starts starts;         // of the buckets
    Copy copy;             // empty without copies, but for the first table
    PackedNumbers places;  // in the first table's copy, by bucket; empty with copies, and in the first table

    // The bits of a substring, with the first of them on top where the copy leaves these out.
    uint32_t bucket_of(uint32_t substring) const {
        return (substring << n_low | substring >> (n_bits - n_low)) & ((1u << n_bits) - 1);
    }
};

struct MihTables {
    size_t n, width, n_words;
    bool has_copies;
    std::vector<MihTable> tables;
};

// Shows nearest what may be near; false if it was given up because it would cost more than budget. Words of allowed are null where all
// items may be found. Rows come in any order. is_stopped is asked between buckets.
using LookUp = bool (*)(const MihTables& tables, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest,
                        uint64_t& cost, const std::function<bool()>& is_stopped);
LookUp portable_look_up();
LookUp popcnt_look_up();  // null where the compiler or the CPU has no popcnt

class Mih {
public:
    static Cut cut(size_t n, size_t width, bool copies);
    static size_t bytes_needed(size_t n, size_t width, bool copies);

    // Tables of n codes; nothing if stopped.
    static std::optional<Mih> build(const uint8_t* planes, size_t n, size_t width, bool copies, Workers& workers);

    size_t size() const { return tables_.n; }
    size_t width() const { return tables_.width; }

    // In order of (distance, row); is_finished[q] says which were not given up; cost is that of all. False if stopped.
    bool search(const uint8_t* queries, size_t n_bits, const uint64_t* allowed, const Wanted& wanted, uint64_t budget, Results& results,
                uint8_t* is_finished, uint64_t* cost, Workers& workers) const;

private:
    Mih() = default;

    MihTables tables_;
};

}  // namespace rankbits
