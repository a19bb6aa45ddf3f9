// Multi-index hashing: exact search that looks only into buckets near the query.
//
// A code is cut into m substrings, and every substring has a table of its buckets. An item within distance m r + j of the query lies
// within r of it in one of the first j + 1 substrings, or within r - 1 in another; so buckets are visited in order of radius, then
// table, until the k-th item is no farther than that bound. Buckets hold copies of their codes, which a query reads in one run; or, to
// take less memory, rows only, each with some bits of its code as a signature, which tells most of those apart that are too far.
#pragma once
#include <cstring>
#include <optional>

#include "near.hpp"
#include "results.hpp"
#include "workers.hpp"

namespace rankbits {

constexpr uint64_t PROBE_COST = 24;  // of a bucket that is visited, in items compared: most of it is waiting for memory
constexpr size_t MAX_WORDS = 64;

// Numbers of 28 bits, or of 32 where rows need more: seven bytes hold two of them.
class Entries {
public:
    static size_t bits_for(size_t n) { return n <= size_t{1} << 28 ? 28 : 32; }
    static size_t bytes_for(size_t n) { return (n * bits_for(n) + 7) / 8 + sizeof(uint32_t); }  // the last is read as a whole word

    void resize(size_t n) {
        is_short_ = bits_for(n) == 28;
        bytes_.assign(bytes_for(n), 0);
    }

    uint32_t operator[](size_t i) const {
        uint32_t word;
        std::memcpy(&word, address(i), sizeof(word));
        return is_short_ ? word >> shift(i) & MASK : word;
    }

    void set(size_t i, uint32_t value) {
        uint32_t word = value;
        if (is_short_) {
            std::memcpy(&word, address(i), sizeof(word));
            word = (word & ~(MASK << shift(i))) | value << shift(i);
        }
        std::memcpy(bytes_.data() + (address(i) - bytes_.data()), &word, sizeof(word));
    }

    const uint8_t* address(size_t i) const { return bytes_.data() + (is_short_ ? 7 * i / 2 : 4 * i); }

private:
    static constexpr uint32_t MASK = (1u << 28) - 1;
    static uint32_t shift(size_t i) { return 4 * (i % 2); }

    bool is_short_ = false;
    std::vector<uint8_t> bytes_;
};

struct MihTable {
    size_t begin, n_bits;          // the substring
    std::vector<uint32_t> starts;  // of each bucket
    // With copies:
    std::vector<uint32_t> rows;    // in order of bucket
    std::vector<uint64_t> codes;   // the same, n_words each
    // Without:
    Entries entries;               // row, and above its bits the signature
    size_t sign_begin, sign_bits;  // the bits of a code that are its signature
    std::vector<uint16_t> bytes;   // of a code: those first of which neither substring nor signature tell anything
    size_t n_outside;              // so many of them have no bit of the substring
};

struct MihTables {
    size_t n, width, n_words;
    const uint8_t* planes;  // null with copies
    size_t row_bits;
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
    static size_t bytes_needed(size_t n, size_t width, bool copies);

    // Tables of n codes; nothing if stopped. Without copies, planes must stay where they are.
    static std::optional<Mih> build(const uint8_t* planes, size_t n, size_t width, bool copies, Workers& workers);

    size_t size() const { return tables_.n; }
    size_t width() const { return tables_.width; }

    // In order of (distance, row); is_finished[q] says which were not given up; cost is that of all. False if stopped.
    bool search(const uint8_t* queries, size_t n_bits, const uint64_t* allowed, const Wanted& wanted, uint64_t budget, Results& results,
                uint8_t* is_finished, uint64_t* cost, Workers& workers) const;

private:
    Mih() = default;
    // These are false if stopped.
    template <class Stopped>
    bool fill_copies(MihTable& table, const uint64_t* words, Stopped stopped) const;
    template <class Stopped>
    bool fill_rows(MihTable& table, Stopped stopped) const;

    MihTables tables_;
};

}  // namespace rankbits
