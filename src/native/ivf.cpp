#include "ivf.hpp"

#include <atomic>

namespace rankbits {
namespace {

// Items of one list, offered under their own rows.
void offer_list(const Lists& lists, size_t list, OneQuery& query, const uint64_t* allowed, Nearest& nearest) {
    query.scan(lists.items, static_cast<size_t>(lists.starts[list]), static_cast<size_t>(lists.starts[list + 1]), nearest,
               [&](size_t place, uint32_t distance) {
                   const uint32_t row = lists.rows[place];
                   if (row != NO_ROW && (!allowed || allowed[row / 64] >> (row % 64) & 1)) nearest.offer(row, distance);
               });
}

}  // namespace

bool search_lists(const Lists& lists, const uint8_t* queries, size_t n_queries, const uint64_t* allowed, const Wanted& wanted, size_t n_probes,
                  std::vector<Found>* results, Workers& workers) {
    std::atomic<size_t> next{0};
    const size_t n_bits = lists.items.n_bits;
    return workers.run([&](size_t w) {
        OneQuery query(lists.items.width);
        for (size_t q; (q = next++) < n_queries;) {
            if (workers.stopped(w)) return;
            query.set(queries + q * lists.items.width);
            Nearest near_lists({n_probes, static_cast<int>(n_bits), false}, static_cast<int>(n_bits), n_bits);
            query.scan(lists.centres, 0, lists.centres.n_groups(), near_lists, [&](size_t centre, uint32_t distance) {
                if (centre < lists.centres.n) near_lists.offer(static_cast<uint32_t>(centre), distance);
            });
            Nearest nearest({wanted.k, wanted.radius, true}, static_cast<int>(n_bits), n_bits);
            for (const Found& list : near_lists.finish(true)) offer_list(lists, list.row, query, allowed, nearest);
            results[q] = nearest.finish(false);
            if (wanted.k > 0 && !wanted.is_complete && results[q].size() > wanted.k) results[q].resize(wanted.k);
        }
    });
}

}  // namespace rankbits
