// Splits the pairs into tiles for the float kernels of soft_tiles.hpp, or has soft_pairs.hpp work one by one where those do not apply.
#include "soft_histogram.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "dispatch.hpp"
#include "soft_pairs.hpp"

namespace rankbits {
namespace {

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Codes with zeroed bits up to a multiple of 16 and zeroed rows up to a multiple of TILE; panels hold them once more, transposed.
struct Padded {
    size_t n, width, n_tiles;
    Buffer<float> rows, panels;

    Padded(const float* codes, size_t n_rows, size_t n_bits, bool with_panels)
        : n(n_rows), width(round_up(n_bits, PANEL)), n_tiles((n_rows + TILE - 1) / TILE), rows(zeroed<float>(n_tiles * TILE * width)) {
        for (size_t i = 0; i < n; ++i) std::copy_n(codes + i * n_bits, n_bits, rows.get() + i * width);
        if (!with_panels) return;
        panels = zeroed<float>(n_tiles * TILE * width);
        for (size_t i = 0; i < n; ++i) {
            float* panel = panels.get() + i / PANEL * PANEL * width + i % PANEL;
            for (size_t k = 0; k < n_bits; ++k) panel[k * PANEL] = codes[i * n_bits + k];
        }
    }

    size_t rows_of(size_t tile) const { return std::min(TILE, n - tile * TILE); }
};

// Levels as bytes: the caller's own, or a copy of wider ones. Rows are narrowed from end to end, since a tile's own part of each is too
// short to be read at the speed of memory.
class Narrowed {
public:
    Narrowed(const Pairs<float>& pairs, Workers& workers) {
        const LevelType type = pairs.levels.type;
        bytes = {static_cast<const uint8_t*>(pairs.levels.data), type == LevelType::i8};
        if (type == LevelType::u8 || type == LevelType::i8) return;
        const size_t n = pairs.n_queries * pairs.n_items;
        copy_ = uninitialized<uint8_t>(n);
        bytes = {copy_.get(), false};
        std::atomic<bool> is_negative{false};
        workers.run([&](size_t w) {
            const size_t first = w * n / workers.size(), end = (w + 1) * n / workers.size();
            if (!soft_kernels().narrow(pairs.levels, first, end - first, pairs.n_levels - 1, copy_.get() + first)) is_negative = true;
        });
        are_whole = !is_negative;
    }

    ByteLevels bytes;
    bool are_whole = true;  // none of those that were narrowed is below 0

private:
    Buffer<uint8_t> copy_;
};

class Tiles {
public:
    // Without levels, tiles can be pulled but not counted.
    Tiles(const Pairs<float>& pairs, const ByteLevels* levels)
        : pairs_(pairs),
          levels_(levels ? *levels : ByteLevels{nullptr, false}),
          queries_(pairs.queries, pairs.n_queries, pairs.n_bits, levels && pairs.is_square),
          items_(pairs.is_square ? Padded(pairs.queries, 0, pairs.n_bits, false)
                                 : Padded(pairs.items, pairs.n_items, pairs.n_bits, levels)) {}

    const Padded& queries() const { return queries_; }
    const Padded& items() const { return pairs_.is_square ? queries_ : items_; }

    Bins bins() const {
        const float scale = float(pairs_.n_bins) / float(2 * pairs_.n_bits);
        return {pairs_.n_levels, pairs_.n_bins, float(pairs_.n_bins) / 2, scale};
    }

    // A tile of a square problem has the cells of its rows and those of its columns.
    size_t cell_bytes_a_tile() const { return (pairs_.is_square ? 2 : 1) * TILE * TILE * bytes_a_cell(bins()); }

    size_t cell_bytes() const {
        const size_t n = queries_.n_tiles;
        return (pairs_.is_square ? n * (n + 1) / 2 : n * items_.n_tiles) * cell_bytes_a_tile();
    }

    // Runs body(tile, first query, first item, where its cells begin) for a worker's share: every n-th row of tiles.
    template <class Body>
    void run(Workers& workers, size_t worker, Body body) const {
        int32_t own[TILE];
        for (size_t I = worker; I < queries_.n_tiles; I += workers.size()) {
            if (workers.stopped(worker)) return;
            for (size_t J = pairs_.is_square ? I : 0; J < items().n_tiles; ++J)
                body(tile(I, J, own), I * TILE, J * TILE, position(I, J) * cell_bytes_a_tile());
        }
    }

private:
    size_t position(size_t I, size_t J) const {
        const size_t n = queries_.n_tiles;
        return pairs_.is_square ? I * n - I * (I + 1) / 2 + J : I * items_.n_tiles + J;
    }

    Tile tile(size_t I, size_t J, int32_t* own) const {
        const size_t i = I * TILE, j = J * TILE, width = queries_.width, ld = pairs_.n_items;
        const size_t rows = queries_.rows_of(I), cols = items().rows_of(J);
        bool has_own = false;
        for (size_t r = 0; pairs_.own && r < rows; ++r) {
            const int64_t at = pairs_.own[i + r] - int64_t(j);
            own[r] = at >= 0 && at < int64_t(cols) ? int32_t(at) : -1;
            has_own |= own[r] >= 0;
        }
        return {rows, cols, pairs_.is_square && I == J, queries_.rows.get() + i * width, items().rows.get() + j * width,
                items().panels ? items().panels.get() + j * width : nullptr, width, levels_, i * ld + j, j * ld + i, ld,
                has_own ? own : nullptr};
    }

    const Pairs<float>& pairs_;
    const ByteLevels levels_;
    Padded queries_, items_;
};

// Sums the workers' gradients, worker by worker, and scales them.
void collect(const std::vector<Buffer<float>>& parts, const Padded& codes, size_t n_bits, float scale, float* out) {
    for (size_t i = 0; i < codes.n; ++i) {
        float* const row = out + i * n_bits;
        std::fill_n(row, n_bits, 0.0f);
        for (const Buffer<float>& part : parts)
            for (size_t k = 0; k < n_bits; ++k) row[k] += part[i * codes.width + k];
        for (size_t k = 0; k < n_bits; ++k) row[k] *= scale;
    }
}

}  // namespace

const SoftKernels& soft_kernels() {
    const SoftKernels* avx2 = avx2_soft_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_soft_kernels();
}

template <class T>
bool SoftHistogram<T>::is_tiled() const {
    return std::is_same_v<T, float> && pairs_.delta == 1.0 && pairs_.n_bins <= 255 && pairs_.n_items < MAX_ITEMS;
}

template <>
bool SoftHistogram<float>::count_tiles(Workers& workers) {
    const Narrowed levels(pairs_, workers);
    const Tiles tiles(pairs_, &levels.bytes);
    const Bins shape = tiles.bins();
    const size_t stride = cells_a_row(shape), lead = lead_of_cells(shape), n_packed = lead + pairs_.n_queries * stride;
    const SoftKernels& run = soft_kernels();
    if (keeps_cells_) cells_ = uninitialized<uint8_t>(tiles.cell_bytes());
    std::vector<Buffer<uint64_t>> packed(workers.size());
    std::atomic<bool> is_negative{!levels.are_whole};
    const bool finished = workers.run([&](size_t w) {
        packed[w] = zeroed<uint64_t>(n_packed);
        const Buffer<uint8_t> forgotten = uninitialized<uint8_t>(keeps_cells_ ? 0 : tiles.cell_bytes_a_tile());
        uint64_t* hist = packed[w].get() + lead;
        bool are_whole = true;
        tiles.run(workers, w, [&](const Tile& tile, size_t i, size_t j, size_t first_cell) {
            uint8_t* cells = keeps_cells_ ? cells_.get() + first_cell : forgotten.get();
            are_whole &= run.count(tile, shape, hist + i * stride, pairs_.is_square ? hist + j * stride : nullptr, cells);
        });
        if (!are_whole) is_negative = true;
    });
    if (!finished) return false;
    for (size_t w = 1; w < packed.size(); ++w)
        for (size_t c = 0; c < n_packed; ++c) packed[0][c] += packed[w][c];
    packed_ = std::move(packed[0]);
    has_negative_level_ = is_negative;
    return true;
}

template <>
bool SoftHistogram<float>::pull_tiles(const float* grad_counts, const float* weights, float* grad_queries, float* grad_items,
                                      Workers& workers) const {
    const Tiles tiles(pairs_, nullptr);
    const Bins shape = tiles.bins();
    const size_t stride = slopes_a_row(shape), width = tiles.queries().width;
    const SoftKernels& run = soft_kernels();
    const Buffer<float> slopes = uninitialized<float>(pairs_.n_queries * stride);
    for (size_t q = 0; q < pairs_.n_queries; ++q)
        run.steps(grad_counts + q * pairs_.counts_a_row(), shape, weights ? weights[q] : 1, slopes.get() + q * stride);
    std::vector<Buffer<float>> for_queries(workers.size()), for_items(grad_items ? workers.size() : 0);
    const bool finished = workers.run([&](size_t w) {
        for_queries[w] = zeroed<float>(tiles.queries().n_tiles * TILE * width);
        if (grad_items) for_items[w] = zeroed<float>(tiles.items().n_tiles * TILE * width);
        float* rows = for_queries[w].get();
        float* columns = pairs_.is_square ? rows : grad_items ? for_items[w].get() : nullptr;
        tiles.run(workers, w, [&](const Tile& tile, size_t i, size_t j, size_t first_cell) {
            run.pull(tile, shape, slopes.get() + i * stride, pairs_.is_square ? slopes.get() + j * stride : nullptr, cells_.get() + first_cell,
                     rows + i * width, columns ? columns + j * width : nullptr);
        });
    });
    if (!finished) return false;
    collect(for_queries, tiles.queries(), pairs_.n_bits, -shape.scale, grad_queries);
    if (grad_items) collect(for_items, tiles.items(), pairs_.n_bits, -shape.scale, grad_items);
    return true;
}

template <class T>
bool SoftHistogram<T>::count(Workers& workers) {
    if constexpr (std::is_same_v<T, float>) {
        if (is_tiled()) return count_tiles(workers);
    }
    counts_ = uninitialized<T>(pairs_.n_queries * pairs_.counts_a_row());
    level_counts_ = uninitialized<int64_t>(pairs_.n_queries * pairs_.n_levels);
    return count_pairs(pairs_, counts_.get(), level_counts_.get(), has_negative_level_, workers);
}

Span span_of(const double* counts, size_t n_ties, size_t n_levels) {
    const auto is_item = [](double count) { return count > 0; };
    const auto has_items = [&](size_t tie) { return std::any_of(counts + tie * n_levels, counts + (tie + 1) * n_levels, is_item); };
    size_t first = 0, end = n_ties;
    while (first < end && !has_items(first)) ++first;
    while (end > first && !has_items(end - 1)) --end;
    if (first == end) return {0, 0};
    return {first - (first > 0), std::min(end + 1, n_ties)};
}

template <class T>
Span SoftHistogram<T>::read(size_t query, double* counts, int64_t* level_counts) const {
    if (packed_) {
        const Bins shape{pairs_.n_levels, pairs_.n_bins, 0, 0};
        return soft_kernels().unpack(packed_.get() + lead_of_cells(shape) + query * cells_a_row(shape), shape, counts, level_counts);
    }
    const size_t size = pairs_.counts_a_row();
    for (size_t c = 0; c < size; ++c) counts[c] = double(counts_[query * size + c]);
    std::copy_n(level_counts_.get() + query * pairs_.n_levels, pairs_.n_levels, level_counts);
    return span_of(counts, pairs_.n_bins + 1, pairs_.n_levels);
}

template <class T>
bool SoftHistogram<T>::pull(const T* grad_counts, const T* weights, T* grad_queries, T* grad_items, Workers& workers) const {
    if constexpr (std::is_same_v<T, float>) {
        if (is_tiled()) return pull_tiles(grad_counts, weights, grad_queries, grad_items, workers);
    }
    return pull_pairs(pairs_, {grad_counts, weights}, grad_queries, grad_items, workers);
}

template class SoftHistogram<float>;
template class SoftHistogram<double>;

}  // namespace rankbits
