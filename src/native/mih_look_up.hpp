// Looking up, compiled once for each way to count bits.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "mih.hpp"

namespace rankbits {
namespace {

// Bits [begin, begin + n) of a code of W words (0: some); n is at most 32.
template <size_t W>
inline uint32_t substring(const uint64_t* words, size_t begin, size_t n) {
    const size_t word = W == 1 ? 0 : begin / 64, shift = begin % 64;
    uint64_t bits = words[word] >> shift;
    if (W != 1 && shift + n > 64) bits |= words[word + 1] << (64 - shift);
    return static_cast<uint32_t>(bits & ((uint64_t{1} << n) - 1));
}

// The next larger number with as many bits set; nothing of use behind the last.
inline uint32_t next_mask(uint32_t mask) {
    if (mask == 0) return 0;
    const uint64_t lowest = mask & (~mask + 1), carried = mask + lowest;
    return static_cast<uint32_t>(carried | (carried ^ mask) >> (2 + std::countr_zero(mask)));
}

struct Candidate {
    uint32_t place, mask;  // the bucket it came from is that of the query, but for the bits of the mask
};

// One query. Memory is asked for ahead of its use: the starts of a batch of buckets, their first items, the codes of a batch of items.
template <size_t W>
class Search {
public:
    Search(const MihTables& all, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest, uint64_t& cost,
           const std::function<bool()>& is_stopped)
        : all_(all), query_(query), allowed_(allowed), budget_(budget), nearest_(nearest), cost_(cost), is_stopped_(is_stopped),
          copy_(&all.tables[0].copy), n_words_(W ? W : all.n_words), first_mask_(~uint64_t{0} << 8 * copy_->left_out),
          last_mask_(~uint64_t{0} >> (64 - 8 * (all.width - 8 * (n_words_ - 1)))) {}

    bool run() {
        if (!look_into_tables()) return false;
        if (!all_.has_copies) nearest_.rename([&](uint32_t place) { return copy_->rows[place]; });
        return true;
    }

private:
    bool look_into_tables() {
        const size_t m = all_.tables.size();
        size_t longest = 0;
        for (const MihTable& table : all_.tables) longest = std::max(longest, table.n_bits);
        for (size_t radius = 0; radius <= longest; ++radius) {
            for (size_t j = 0; j < m; ++j) {
                if (nearest_.limit() < static_cast<int>(m * radius + j)) return true;  // all that is as near has come up
                if (radius <= all_.tables[j].n_bits && !visit_all(j, radius)) return false;
            }
        }
        return true;
    }

    // Buckets whose starts are on their way from memory, then as many whose first lines are; and how many lines of each.
    static constexpr size_t AHEAD = 8, RING = 2 * AHEAD, LINES_ASKED = 6;
    static constexpr size_t WAITING = 256;
    static constexpr uint64_t COST_A_LOOK = 1 << 15;  // between two looks at whether to go on

    // All buckets of a table at one radius; false if given up.
    bool visit_all(size_t j, size_t radius) {
        const MihTable& table = all_.tables[j];
        uint64_t n_buckets = 1;
        for (size_t i = 0; i < radius; ++i) n_buckets = n_buckets * (table.n_bits - i) / (i + 1);
        if (cost_ + n_buckets * (PROBE_COST + (all_.n >> table.n_bits)) > budget_) return false;
        number_ = j;
        radius_ = radius;
        if (all_.has_copies) copy_ = &table.copy;
        const bool is_run = !table.copy.codes.empty();
        const uint32_t centre = table.bucket_of(substring<W>(query_, table.begin, table.n_bits));
        uint32_t mask = (uint32_t{1} << radius) - 1;
        for (uint64_t i = 0; i < n_buckets + 2 * AHEAD; ++i) {
            if (i >= 2 * AHEAD && !visit(table, is_run, buckets_[i % RING], masks_[i % RING])) return false;
            if (i < n_buckets) {
                masks_[i % RING] = mask;
                __builtin_prefetch(table.starts.address(centre ^ mask));
                mask = next_mask(mask);
            }
            if (i >= AHEAD && i < n_buckets + AHEAD) {
                Bucket& bucket = buckets_[(i - AHEAD) % RING];
                bucket = table.starts[centre ^ masks_[(i - AHEAD) % RING]];
                ask_for(table, is_run, bucket);
            }
        }
        compare_waiting();
        return true;
    }

    bool visit(const MihTable& table, bool is_run, const Bucket& bucket, uint32_t mask) {
        cost_ += PROBE_COST + (bucket.end - bucket.begin);
        if (cost_ > budget_) return false;
        if (is_run) {
            compare_run(bucket, mask);
        } else {
            for (size_t at = bucket.begin; at < bucket.end; ++at) add({table.places[at], mask});
        }
        if (cost_ < next_look_) return true;
        next_look_ = cost_ + COST_A_LOOK;
        return !is_stopped_();
    }

    // The first lines of a bucket; of a long one, the processor itself notices that the others will be needed.
    // Inlined by force: GCC takes a function that does nothing but this for one without effect, and leaves its calls out.
    [[gnu::always_inline]] void ask_for(const MihTable& table, bool is_run, const Bucket& bucket) const {
        const uint8_t* first = is_run ? copy_->address(bucket.begin) + copy_->left_out : table.places.address(bucket.begin);
        const uint8_t* end = is_run ? copy_->address(bucket.end) + copy_->left_out : table.places.address(bucket.end) + 1;
        end = std::min(end, first + LINES_ASKED * 64);
        for (const uint8_t* line = first; line < end; line += 64) __builtin_prefetch(line);
    }

    void compare_run(const Bucket& bucket, uint32_t mask) {
        const size_t step = copy_->code_bytes;
        const uint8_t* code = copy_->address(bucket.begin);
        int limit = nearest_.limit();
        for (size_t place = bucket.begin; place < bucket.end; ++place, code += step) {
            uint64_t difference[W ? W : MAX_WORDS];
            const int distance = compare(code, difference);
            if (distance > limit) continue;
            offer({static_cast<uint32_t>(place), mask}, difference, distance);
            limit = nearest_.limit();
        }
    }

    void add(const Candidate& candidate) {
        waiting_[n_waiting_++] = candidate;
        __builtin_prefetch(copy_->address(candidate.place) + copy_->left_out);
        if (n_waiting_ == WAITING) compare_waiting();
    }

    void compare_waiting() {
        for (size_t i = 0; i < n_waiting_; ++i) {
            uint64_t difference[W ? W : MAX_WORDS];
            const int distance = compare(copy_->address(waiting_[i].place), difference);
            if (distance <= nearest_.limit()) offer(waiting_[i], difference, distance);
        }
        n_waiting_ = 0;
    }

    // The distance of what the copy has of a code.
    int compare(const uint8_t* code, uint64_t* difference) const {
        int distance = 0;
        for (size_t w = 0; w < n_words_; ++w) {
            uint64_t word;
            std::memcpy(&word, code + 8 * w, sizeof(word));
            word ^= query_[w];
            if (w == 0) word &= first_mask_;
            if (w + 1 == n_words_) word &= last_mask_;
            distance += std::popcount(difference[w] = word);
        }
        return distance;
    }

    // The bytes that the copy leaves out: the last that begin no later than the place.
    uint64_t left_out_of(size_t place) const {
        const uint16_t* mark = copy_->marks.data() + place / Copy::PLACES_A_MARK;
        const uint32_t* firsts = copy_->firsts.data();
        return static_cast<uint64_t>(std::upper_bound(firsts + mark[0] + 1, firsts + mark[1] + 1, place) - firsts - 1);
    }

    // An item comes up in every table that has it near, and a bucket may be read with some items of those beside it: an item counts
    // in its own bucket, of the table where it came up first.
    bool is_first(const uint64_t* difference, uint32_t mask) const {
        for (size_t j = 0; j < all_.tables.size(); ++j) {
            const MihTable& table = all_.tables[j];
            const uint32_t bits = substring<W>(difference, table.begin, table.n_bits);
            const auto distance = static_cast<size_t>(std::popcount(bits));
            if (j == number_ ? table.bucket_of(bits) != mask : distance < radius_ || (distance == radius_ && j < number_)) return false;
        }
        return true;
    }

    // Takes an item by its difference and its distance in what the copy has of the code.
    void offer(const Candidate& candidate, uint64_t* difference, int distance) {
        const uint32_t place = candidate.place;
        if (copy_->left_out) {
            const uint64_t first = left_out_of(place) ^ (query_[0] & ~first_mask_);
            difference[0] |= first;
            distance += std::popcount(first);
        }
        if (distance > nearest_.limit() || !is_first(difference, candidate.mask)) return;
        // Rows of one copy are looked up at the end: by then most items have been found to be too far.
        const uint32_t row = allowed_ || all_.has_copies ? copy_->rows[place] : 0;
        if (allowed_ && !(allowed_[row / 64] >> (row % 64) & 1)) return;
        nearest_.offer(all_.has_copies ? row : place, static_cast<uint32_t>(distance));
    }

    const MihTables& all_;
    const uint64_t *query_, *allowed_;
    const uint64_t budget_;
    Nearest& nearest_;
    uint64_t& cost_;
    const std::function<bool()>& is_stopped_;
    const Copy* copy_;
    const size_t n_words_;
    const uint64_t first_mask_, last_mask_;  // the bits of the first and the last word that are part of what the copy has
    uint64_t next_look_ = COST_A_LOOK;
    size_t number_ = 0, radius_ = 0, n_waiting_ = 0;
    uint32_t masks_[RING];
    Bucket buckets_[RING];
    Candidate waiting_[WAITING];
};

bool look_up(const MihTables& all, const uint64_t* query, const uint64_t* allowed, uint64_t budget, Nearest& nearest, uint64_t& cost,
             const std::function<bool()>& is_stopped) {
    if (all.n_words == 1) return Search<1>(all, query, allowed, budget, nearest, cost, is_stopped).run();
    if (all.n_words == 2) return Search<2>(all, query, allowed, budget, nearest, cost, is_stopped).run();
    return Search<0>(all, query, allowed, budget, nearest, cost, is_stopped).run();
}

}  // namespace
}  // namespace rankbits
