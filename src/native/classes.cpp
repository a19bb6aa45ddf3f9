// Class affinity. The chunk is sorted by class, and the queries too, so that two queries of one class go over a block together:
// items outside their class count for level 0, the one run inside it for level 1.
#include <algorithm>
#include <mutex>
#include <numeric>

#include "buffers.hpp"
#include "count.hpp"
#include "dispatch.hpp"
#include "distinct.hpp"

namespace rankbits {
namespace {

// The chunk by class, class numbers ascending: items, their weights if they have any, and where each class starts. Items of no
// query's class come last.
struct ByClass {
    std::vector<uint32_t> items, weights;
    std::vector<size_t> starts;

    ByClass(const int32_t* item_class, const Distinct& distinct, size_t n, size_t n_classes)
        : items(n), weights(distinct.weights.size()), starts(n_classes + 2, 0) {
        const auto item = [&](size_t k) { return distinct.weights.empty() ? static_cast<uint32_t>(k) : distinct.items[k]; };
        const auto spot = [&](uint32_t i) { return item_class[i] < 0 ? n_classes : static_cast<size_t>(item_class[i]); };
        for (size_t k = 0; k < n; ++k) ++starts[spot(item(k)) + 1];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        std::vector<size_t> next(starts.begin(), starts.end() - 1);
        for (size_t k = 0; k < n; ++k) {
            const size_t place = next[spot(item(k))]++;
            items[place] = item(k);
            if (!weights.empty()) weights[place] = distinct.weights[k];
        }
    }
};

// The part of class c within block [first, first + n), as positions in the block.
struct Run {
    size_t begin = 0, end = 0;
    Run(const std::vector<size_t>& starts, int32_t c, size_t first, size_t n) {
        if (c < 0) return;
        const auto inside = [&](size_t position) { return std::min(std::max(position, first), first + n) - first; };
        begin = inside(starts[static_cast<size_t>(c)]);
        end = inside(starts[static_cast<size_t>(c) + 1]);
    }
};

// One worker's block, scratch and rows.
struct Worker {
    Buffer<uint8_t> block;
    Buffer<uint32_t> joint, rows, weights;
    size_t n_bins;

    Worker(size_t n_items, size_t width, size_t bins)
        : block(zeroed<uint8_t>(kernels().block_bytes(n_items, width))),
          joint(zeroed<uint32_t>(kernels().joint_cells(bins))),
          rows(zeroed<uint32_t>(5 * bins)),
          weights(zeroed<uint32_t>(n_items + 256)),
          n_bins(bins) {}

    // Weights of a block, copied: a kernel may read a tile too far.
    const uint32_t* weights_of(const std::vector<uint32_t>& all, size_t first, size_t n) {
        if (all.empty()) return nullptr;
        std::copy(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + n), weights.get());
        return weights.get();
    }

    // One query's row of the level: u32 counters of one block.
    uint32_t* row(int level, int q) { return rows.get() + static_cast<size_t>(2 * level + q) * n_bins; }

    // Adds both levels of a query to its counts and clears them.
    void flush(int q, int64_t* counts, size_t n_levels) {
        uint32_t *other = row(0, q), *own = row(1, q);
        if (n_levels == 2) {  // the usual case, in a form that compilers turn into vectors
            for (size_t d = 0; d < n_bins; ++d) {
                counts[2 * d] += other[d];
                counts[2 * d + 1] += own[d];
            }
        } else {  // only level 0 is ever counted then
            for (size_t d = 0; d < n_bins; ++d) counts[d * n_levels] += other[d];
        }
        std::fill_n(other, n_bins, 0u);
        std::fill_n(own, n_bins, 0u);
    }
};

// Two queries against one block: level 0 in rows (0, q), level 1 in rows (1, q).
void count_pair(Worker& worker, const Items& items, const uint8_t* const codes[2], const Run runs[2], bool same_class) {
    const Kernels& set = kernels();
    const Scratch scratch{worker.joint.get()};
    uint32_t* const others[2] = {worker.row(0, 0), worker.row(0, 1)};
    uint32_t* const own[2] = {worker.row(1, 0), worker.row(1, 1)};
    if (same_class) {
        set.count_two(items, codes, runs[0].begin, runs[0].end, worker.n_bins, scratch, others);
        set.count_run(items, codes, runs[0].begin, runs[0].end, worker.n_bins, scratch, own);
        return;
    }
    set.count_two(items, codes, 0, 0, worker.n_bins, scratch, others);
    for (int q = 0; q < 2; ++q) {  // each alone, so in both places; what it counts is no longer of level 0
        const uint8_t* const twice[2] = {codes[q], codes[q]};
        uint32_t* const target[2] = {own[q], worker.row(2, 0)};
        set.count_run(items, twice, runs[q].begin, runs[q].end, worker.n_bins, scratch, target);
        for (size_t d = 0; d < worker.n_bins; ++d) others[q][d] -= own[q][d];
        std::fill_n(worker.row(2, 0), worker.n_bins, 0u);
    }
}

}  // namespace

bool count_classes(const Codes& queries, const Codes& items, const int32_t* query_class, const int32_t* item_class, const Counts& counts,
                   Workers& workers) {
    const Distinct distinct = compress_if_it_pays(items, item_class, queries, counts.n_bins);
    const int32_t highest = *std::max_element(query_class, query_class + queries.n);
    const size_t n = distinct.weights.empty() ? items.n : distinct.items.size(), n_block = items_a_block(items.width, n);
    const ByClass sorted(item_class, distinct, n, highest < 0 ? 0 : static_cast<size_t>(highest) + 1);

    std::vector<uint32_t> asked(queries.n);
    std::iota(asked.begin(), asked.end(), 0u);
    std::stable_sort(asked.begin(), asked.end(), [&](uint32_t a, uint32_t b) { return query_class[a] < query_class[b]; });

    const size_t n_pairs = (queries.n + 1) / 2;
    const size_t by_query = std::min(workers.size(), n_pairs), by_block = std::max<size_t>(1, workers.size() / by_query);
    const size_t row_cells = counts.n_bins * counts.n_levels, cells = queries.n * row_cells;
    std::mutex adding;

    return workers.run([&](size_t w) {
        const size_t part = w % by_query, lane = w / by_query;
        if (lane >= by_block) return;
        Worker worker(n_block, items.width, counts.n_bins);
        const auto dropped = zeroed<int64_t>(row_cells);  // of a lone query's second place
        Buffer<int64_t> own;  // several workers share these queries: each counts for itself and adds at the end
        if (by_block > 1) own = zeroed<int64_t>(cells);
        int64_t* const totals = own ? own.get() : counts.data;
        for (size_t first = lane * n_block; first < n; first += by_block * n_block) {
            const size_t size = std::min(n_block, n - first);
            kernels().lay_out(items.data, sorted.items.data() + first, size, items.width, worker.block.get());
            const Items block{worker.block.get(), worker.weights_of(sorted.weights, first, size), size, items.width};
            for (size_t pair = part * n_pairs / by_query; pair < (part + 1) * n_pairs / by_query; ++pair) {
                if (workers.stopped(w)) return;
                const bool is_lone = 2 * pair + 1 == queries.n;
                const uint32_t q[2] = {asked[2 * pair], asked[is_lone ? 2 * pair : 2 * pair + 1]};
                const uint8_t* const codes[2] = {queries.data + q[0] * queries.width, queries.data + q[1] * queries.width};
                const Run runs[2] = {{sorted.starts, query_class[q[0]], first, size}, {sorted.starts, query_class[q[1]], first, size}};
                count_pair(worker, block, codes, runs, query_class[q[0]] == query_class[q[1]]);
                worker.flush(0, totals + q[0] * row_cells, counts.n_levels);
                worker.flush(1, is_lone ? dropped.get() : totals + q[1] * row_cells, counts.n_levels);
            }
        }
        if (own) {
            const std::lock_guard<std::mutex> lock(adding);
            for (size_t i = 0; i < cells; ++i) counts.data[i] += own[i];
        }
    });
}

}  // namespace rankbits
