// Some queries at a time choose their lists, while the centres are in the cache, then go through them one after the other.
#include "ivf.hpp"

#include <atomic>

namespace rankbits {
namespace {

constexpr size_t CHUNK = 16;  // queries

// Lists of some queries, and what the search through them needs.
class Probes {
public:
    Probes(const Lists& lists, const Wanted& wanted, size_t n_probes, const uint64_t* allowed)
        : lists_(lists), wanted_(wanted), n_probes_(n_probes), allowed_(allowed), hits_(new Hit[MAX_TILE]) {}

    // Lists of query number i of a chunk, nearest first.
    void choose(size_t i, const uint8_t* query) {
        if (i == queries_.size()) {
            queries_.emplace_back(lists_.items.width);
            chosen_.emplace_back();
        }
        queries_[i].set(query);
        const Planes& centres = lists_.centres;
        const int farthest = static_cast<int>(8 * centres.width);  // with bits beyond n_bits set
        nearest_.begin({n_probes_, farthest, false}, farthest, 8 * centres.width, Rows::ascending);
        queries_[i].scan(centres.data, 0, centres.n_groups(), nearest_, hits_.get(),
                         [&](size_t place, const Hit* hits, size_t n_hits) { offer(place, centres.n, hits, n_hits); });
        chosen_[i].resize(nearest_.n_results());
        distances_.resize(chosen_[i].size());
        nearest_.write(distances_.data(), chosen_[i].data());
    }

    // What query number i finds in its lists.
    Nearest& search(size_t i) {
        const std::vector<uint32_t>& chosen = chosen_[i];
        const size_t n_bits = lists_.items.n_bits;
        nearest_.begin(wanted_, static_cast<int>(n_bits), n_bits, Rows::any);
        for (const uint32_t list : chosen) search_list(queries_[i], list);
        if (!allowed_) nearest_.rename([&](uint32_t place) { return lists_.rows[place]; });
        return nearest_;
    }

private:
    // Items are offered by their place, since rows are in other memory: only those that stay are looked up in the end. A filter must know
    // them at once.
    void search_list(const OneQuery& query, size_t list) {
        const auto begin = static_cast<size_t>(lists_.starts[list]), end = static_cast<size_t>(lists_.starts[list + 1]);
        const size_t n_places = begin * GROUP + lists_.sizes[list];
        query.scan(lists_.items.data, begin, end, nearest_, hits_.get(), [&](size_t place, const Hit* hits, size_t n_hits) {
            if (!allowed_) {
                offer(place, n_places, hits, n_hits);
                for (size_t i = 0; i < n_hits; ++i) __builtin_prefetch(lists_.rows + place + hits[i].position);
                return;
            }
            for (size_t i = 0; i < n_hits; ++i) {
                const uint32_t row = lists_.rows[place + hits[i].position];
                if (row < lists_.n_rows && allowed_[row / 64] >> (row % 64) & 1) nearest_.offer(row, hits[i].distance);
            }
        });
    }

    // Hits from place on; those that stand at n_places or behind are none, and come last.
    void offer(size_t place, size_t n_places, const Hit* hits, size_t n_hits) {
        while (n_hits && place + hits[n_hits - 1].position >= n_places) --n_hits;
        nearest_.offer_each(n_hits, [&](size_t i) { return Found{static_cast<uint32_t>(place + hits[i].position), hits[i].distance}; });
    }

    const Lists& lists_;
    const Wanted wanted_;
    const size_t n_probes_;
    const uint64_t* allowed_;
    std::unique_ptr<Hit[]> hits_;
    std::vector<OneQuery> queries_;
    std::vector<std::vector<uint32_t>> chosen_;
    std::vector<uint32_t> distances_;
    Nearest nearest_;
};

}  // namespace

bool search_lists(const Lists& lists, const uint8_t* queries, const uint64_t* allowed, const Wanted& wanted, size_t n_probes, Results& results,
                  Workers& workers) {
    if (wanted.k > 0 && !wanted.is_complete) results.hope_for(std::min(wanted.k, lists.n_rows));
    const size_t n_queries = results.n_queries(), chunk = std::clamp(n_queries / (4 * workers.size()), size_t{1}, CHUNK);
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        Probes probes(lists, wanted, n_probes, allowed);
        for (size_t first; (first = next.fetch_add(chunk)) < n_queries;) {
            if (workers.stopped(w)) return;
            const size_t n = std::min(chunk, n_queries - first);
            for (size_t i = 0; i < n; ++i) probes.choose(i, queries + (first + i) * lists.items.width);
            for (size_t i = 0; i < n; ++i) results.put(first + i, probes.search(i));
        }
    });
}

}  // namespace rankbits
