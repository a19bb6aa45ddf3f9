// Class affinity. The chunk is sorted by class, and the queries too, so that a group of queries of one class goes over a block
// together: items outside their class count for level 0, the one run inside it for level 1.
#include <algorithm>
#include <mutex>
#include <numeric>

#include "buffers.hpp"
#include "count.hpp"
#include "dispatch.hpp"
#include "distinct.hpp"

namespace rankbits {
namespace {

// Class numbers of our own, below n_classes; -1 for all others, which no query has. A caller's may change while we count.
std::vector<int32_t> known_classes(const int32_t* classes, size_t n, size_t n_classes) {
    std::vector<int32_t> known(classes, classes + n);
    for (int32_t& c : known) c = c < 0 || static_cast<size_t>(c) >= n_classes ? -1 : c;
    return known;
}

// The chunk by class, class numbers ascending: items, their weights if they have any, and where each class starts. Items of no
// query's class come last.
struct ByClass {
    std::vector<uint32_t> items, weights;
    std::vector<size_t> starts;

    ByClass(const std::vector<int32_t>& item_class, const Distinct& distinct, size_t n, size_t n_classes)
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
Range run_of(const std::vector<size_t>& starts, int32_t c, size_t first, size_t n) {
    if (c < 0) return {0, 0};
    const auto inside = [&](size_t position) { return std::min(std::max(position, first), first + n) - first; };
    return {inside(starts[static_cast<size_t>(c)]), inside(starts[static_cast<size_t>(c) + 1])};
}

// One worker's block, scratch and rows.
struct Worker {
    Buffer<uint8_t> block;
    Buffer<uint32_t> joint, rows, weights;
    size_t n_bins;

    Worker(size_t n_items, size_t width, size_t bins)
        : block(zeroed<uint8_t>(kernels().block_bytes(n_items, width))),
          joint(zeroed<uint32_t>(kernels().joint_cells(bins))),
          rows(zeroed<uint32_t>(2 * MAX_GROUP * bins)),
          weights(zeroed<uint32_t>(n_items + 256)),
          n_bins(bins) {}

    // Weights of a block, copied: a kernel may read a tile too far.
    const uint32_t* weights_of(const std::vector<uint32_t>& all, size_t first, size_t n) {
        if (all.empty()) return nullptr;
        std::copy(all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + n), weights.get());
        return weights.get();
    }

    // One query's row of a level: u32 counters of one block.
    uint32_t* row(size_t level, size_t q) { return rows.get() + (level * MAX_GROUP + q) * n_bins; }

    // Adds both levels of a query to its counts, which have `bins` of our bins, and clears them.
    void flush(size_t q, int64_t* counts, size_t bins, size_t n_levels) {
        uint32_t *other = row(0, q), *own = row(1, q);
        if (n_levels == 2) {  // the usual case, in a form that compilers turn into vectors
            for (size_t d = 0; d < bins; ++d) {
                counts[2 * d] += other[d];
                counts[2 * d + 1] += own[d];
            }
        } else {  // only level 0 is ever counted then
            for (size_t d = 0; d < bins; ++d) counts[d * n_levels] += other[d];
        }
        std::fill_n(other, n_bins, 0u);
        std::fill_n(own, n_bins, 0u);
    }
};

// Has memory brought near while a block is counted: rows of all queries together are larger than a cache.
void ask_for(const int64_t* row, size_t n) {
    for (size_t i = 0; i < n; i += 8) __builtin_prefetch(row + i, 1);
}

// A group of queries against one block: level 0 in rows (0, q), level 1 in rows (1, q).
void count_block(Worker& worker, const Items& items, const Group& group, const Range* runs, bool same_class) {
    const Kernels& set = kernels();
    const Scratch scratch{worker.joint.get()};
    uint32_t *others[MAX_GROUP], *own[MAX_GROUP];
    for (size_t q = 0; q < group.n; ++q) {
        others[q] = worker.row(0, q);
        own[q] = worker.row(1, q);
    }
    if (same_class) {
        const Range outside[2] = {{0, runs[0].begin}, {runs[0].end, items.n}};
        set.count_group(items, group, outside, 2, worker.n_bins, scratch, others);
        set.count_group(items, group, runs, 1, worker.n_bins, scratch, own);
        return;
    }
    const Range all{0, items.n};
    set.count_group(items, group, &all, 1, worker.n_bins, scratch, others);
    for (size_t q = 0; q < group.n; ++q) {  // the own run again, each query alone; it is no longer of level 0
        set.count_group(items, {{group.codes[q]}, 1}, &runs[q], 1, worker.n_bins, scratch, &own[q]);
        for (size_t d = 0; d < worker.n_bins; ++d) others[q][d] -= own[q][d];
    }
}

}  // namespace

bool count_classes(const Codes& queries, const Codes& items, const int32_t* class_of_query, const int32_t* class_of_item,
                   const Counts& counts, Workers& workers) {
    const size_t n_bins = bins_of_bytes(items.width);
    const std::vector<int32_t> query_class = known_classes(class_of_query, queries.n, queries.n);
    const int32_t highest = *std::max_element(query_class.begin(), query_class.end());
    const size_t n_classes = static_cast<size_t>(highest + 1);
    const std::vector<int32_t> item_class = known_classes(class_of_item, items.n, n_classes);
    const Distinct distinct = compress_if_it_pays(items, item_class.data(), queries, n_bins);
    const size_t n = distinct.weights.empty() ? items.n : distinct.items.size(), n_block = items_a_block(items.width, n);
    const ByClass sorted(item_class, distinct, n, n_classes);

    std::vector<uint32_t> asked(queries.n);
    std::iota(asked.begin(), asked.end(), 0u);
    std::stable_sort(asked.begin(), asked.end(), [&](uint32_t a, uint32_t b) { return query_class[a] < query_class[b]; });

    const size_t most = kernels().group_size(n_bins), n_groups = (queries.n + most - 1) / most;
    const size_t by_query = std::min(workers.size(), n_groups), by_block = std::max<size_t>(1, workers.size() / by_query);
    const size_t row_cells = counts.n_bins * counts.n_levels, cells = queries.n * row_cells;
    std::mutex adding;

    return workers.run([&](size_t w) {
        const size_t part = w % by_query, lane = w / by_query;
        if (lane >= by_block) return;
        Worker worker(n_block, items.width, n_bins);
        Buffer<int64_t> own;  // several workers share these queries: each counts for itself and adds at the end
        if (by_block > 1) own = zeroed<int64_t>(cells);
        int64_t* const totals = own ? own.get() : counts.data;
        for (size_t first = lane * n_block; first < n; first += by_block * n_block) {
            const size_t size = std::min(n_block, n - first);
            kernels().lay_out(items.data, sorted.items.data() + first, size, items.width, worker.block.get());
            const Items block{worker.block.get(), worker.weights_of(sorted.weights, first, size), size, items.width};
            for (size_t g = part * n_groups / by_query; g < (part + 1) * n_groups / by_query; ++g) {
                if (workers.stopped(w)) return;
                const uint32_t* members = asked.data() + g * most;
                Group group{{}, std::min(most, queries.n - g * most)};
                Range runs[MAX_GROUP];
                for (size_t q = 0; q < group.n; ++q) {
                    group.codes[q] = queries.data + members[q] * queries.width;
                    ask_for(totals + members[q] * row_cells, row_cells);
                    runs[q] = run_of(sorted.starts, query_class[members[q]], first, size);
                }
                count_block(worker, block, group, runs, query_class[members[0]] == query_class[members[group.n - 1]]);
                for (size_t q = 0; q < group.n; ++q) worker.flush(q, totals + members[q] * row_cells, counts.n_bins, counts.n_levels);
            }
        }
        if (own) {
            const std::lock_guard<std::mutex> lock(adding);
            for (size_t i = 0; i < cells; ++i) counts.data[i] += own[i];
        }
    });
}

}  // namespace rankbits
