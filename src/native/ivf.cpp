#include "ivf.hpp"

#include <atomic>

namespace rankbits {
namespace {

constexpr size_t ASKED = 8192;  // bytes of a list: more would push out what is needed now

// Items of one list, offered under their own rows.
void offer_list(const Lists& lists, size_t list, OneQuery& query, const uint64_t* allowed, Nearest& nearest) {
    query.scan(lists.items, static_cast<size_t>(lists.starts[list]), static_cast<size_t>(lists.starts[list + 1]), nearest,
               [&](size_t place, uint32_t distance) {
                   const uint32_t row = lists.rows[place];
                   if (row < lists.n_rows && (!allowed || allowed[row / 64] >> (row % 64) & 1)) nearest.offer(row, distance);
               });
}

// Asks for the beginning of a list while another is gone over.
void ask_for(const Lists& lists, size_t list) {
    const size_t bytes = lists.items.width * GROUP;
    const uint8_t* first = lists.items.data + static_cast<size_t>(lists.starts[list]) * bytes;
    const size_t size = static_cast<size_t>(lists.starts[list + 1] - lists.starts[list]) * bytes;
    for (size_t at = 0; at < std::min(size, ASKED); at += 64) __builtin_prefetch(first + at, 0, 2);
}

}  // namespace

bool search_lists(const Lists& lists, const uint8_t* queries, const uint64_t* allowed, const Wanted& wanted, size_t n_probes, Results& results,
                  Workers& workers) {
    std::atomic<size_t> next{0};
    if (wanted.k > 0 && !wanted.is_complete) results.hope_for(std::min(wanted.k, lists.n_rows));
    const size_t n_bits = lists.items.n_bits;
    const int far = static_cast<int>(n_bits), farthest = static_cast<int>(8 * lists.items.width);  // with bits beyond n_bits set
    return workers.run([&](size_t w) {
        OneQuery query(lists.items.width);
        Nearest near_lists, nearest;
        std::vector<uint32_t> chosen, distances;
        for (size_t q; (q = next++) < results.n_queries();) {
            if (workers.stopped(w)) return;
            query.set(queries + q * lists.items.width);
            near_lists.begin({n_probes, farthest, false}, farthest, 8 * lists.items.width, Rows::ascending);
            query.scan(lists.centres, 0, lists.centres.n_groups(), near_lists, [&](size_t centre, uint32_t distance) {
                if (centre < lists.centres.n) near_lists.offer(static_cast<uint32_t>(centre), distance);
            });
            nearest.begin(wanted, far, n_bits, Rows::any);
            chosen.resize(near_lists.n_results());
            distances.resize(chosen.size());
            near_lists.write(distances.data(), chosen.data());
            for (size_t i = 0; i < chosen.size(); ++i) {
                if (i + 1 < chosen.size()) ask_for(lists, chosen[i + 1]);
                offer_list(lists, chosen[i], query, allowed, nearest);
            }
            results.put(q, nearest);
        }
    });
}

}  // namespace rankbits
