// Splits a problem into tiles for the float kernels of soft_tiles.hpp, or works pair by pair where those do not apply (double
// precision, soft bins wider or narrower than their spacing, more than 255 bins).
#include "soft.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "buffers.hpp"
#include "dispatch.hpp"

namespace rankbits {
namespace {

template <class T>
bool is_tiled(const Pairs<T>& pairs) {
    return std::is_same_v<T, float> && pairs.delta == 1.0 && pairs.n_bins <= 255 && pairs.n_items < MAX_ITEMS;
}

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// ---- tiles ----

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

class Tiles {
public:
    Tiles(const Pairs<float>& pairs, bool with_panels)
        : pairs_(pairs),
          queries_(pairs.queries, pairs.n_queries, pairs.n_bits, with_panels && pairs.is_square),
          items_(pairs.is_square ? Padded(pairs.queries, 0, pairs.n_bits, false)
                                 : Padded(pairs.items, pairs.n_items, pairs.n_bits, with_panels)) {}

    const Padded& queries() const { return queries_; }
    const Padded& items() const { return pairs_.is_square ? queries_ : items_; }

    size_t n_tiles() const {
        const size_t n = queries_.n_tiles;
        return pairs_.is_square ? n * (n + 1) / 2 : n * items_.n_tiles;
    }

    Bins bins() const {
        const float scale = float(pairs_.n_bins) / float(2 * pairs_.n_bits);
        return {pairs_.n_levels, pairs_.n_bins, float(pairs_.n_bins) / 2, scale};
    }

    // Runs body(tile, first query, first item, position of the tile) for a worker's share: every n-th row of tiles.
    template <class Body>
    void run(Workers& workers, size_t worker, Body body) const {
        int32_t own[TILE];
        for (size_t I = worker; I < queries_.n_tiles; I += workers.size()) {
            if (workers.stopped(worker)) return;
            for (size_t J = pairs_.is_square ? I : 0; J < items().n_tiles; ++J) body(tile(I, J, own), I * TILE, J * TILE, position(I, J));
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
        const uint8_t* back = pairs_.is_square ? pairs_.levels + j * ld + i : nullptr;
        return {rows, cols, pairs_.is_square && I == J, queries_.rows.get() + i * width, items().rows.get() + j * width,
                items().panels ? items().panels.get() + j * width : nullptr, width, pairs_.levels + i * ld + j, back, ld,
                has_own ? own : nullptr};
    }

    const Pairs<float>& pairs_;
    Padded queries_, items_;
};

// Packed cells to soft counts: a bin keeps what its pairs did not hand on, and gets what those of the bin below did.
void unpack(const uint64_t* cells, const Pairs<float>& pairs, float* counts, int64_t* level_counts) {
    const double unit = std::ldexp(1.0, -FRACTION_BITS);
    const uint64_t mask = (uint64_t{1} << COUNT_SHIFT) - 1;
    for (size_t v = 0; v < pairs.n_levels; ++v) {
        double handed_on = 0;
        int64_t total = 0;
        for (size_t k = 0; k < pairs.n_bins; ++k) {
            const uint64_t cell = cells[k * pairs.n_levels + v];
            const double n = double(cell >> COUNT_SHIFT), fraction = double(cell & mask) * unit;
            counts[k * pairs.n_levels + v] = float(n - fraction + handed_on);
            handed_on = fraction;
            total += int64_t(cell >> COUNT_SHIFT);
        }
        counts[pairs.n_bins * pairs.n_levels + v] = float(handed_on);
        level_counts[v] = total;
    }
}

bool count_tiles(const Pairs<float>& pairs, float* counts, int64_t* level_counts, uint8_t* bins, Workers& workers) {
    const Tiles tiles(pairs, true);
    const Bins shape = tiles.bins();
    const size_t stride = cells_a_row(shape);
    std::vector<Buffer<uint64_t>> cells(workers.size());
    const SoftKernels& run = soft_kernels();
    const bool finished = workers.run([&](size_t w) {
        cells[w] = zeroed<uint64_t>(pairs.n_queries * stride);
        uint64_t* hist = cells[w].get();
        tiles.run(workers, w, [&](const Tile& tile, size_t i, size_t j, size_t at) {
            run.count(tile, shape, hist + i * stride, pairs.is_square ? hist + j * stride : nullptr, bins ? bins + at * TILE * TILE : nullptr);
        });
    });
    for (size_t w = 1; w < cells.size(); ++w)
        for (size_t c = 0; c < pairs.n_queries * stride; ++c) cells[0][c] += cells[w][c];
    for (size_t q = 0; q < pairs.n_queries; ++q)
        unpack(cells[0].get() + q * stride, pairs, counts + q * (pairs.n_bins + 1) * pairs.n_levels, level_counts + q * pairs.n_levels);
    return finished;
}

// Steps of the gradient from each bin to the next.
Buffer<float> slopes_of(const Pairs<float>& pairs, const float* grad_counts, size_t stride) {
    const size_t n_steps = pairs.n_bins * pairs.n_levels;
    Buffer<float> slopes = zeroed<float>(pairs.n_queries * stride);
    for (size_t q = 0; q < pairs.n_queries; ++q) {
        const float* grad = grad_counts + q * (n_steps + pairs.n_levels);
        for (size_t c = 0; c < n_steps; ++c) slopes[q * stride + c] = grad[c + pairs.n_levels] - grad[c];
    }
    return slopes;
}

// Sums the workers' gradients, worker by worker, and scales them.
void collect(const std::vector<Buffer<float>>& parts, const Padded& codes, size_t n_bits, float scale, float* out) {
    for (size_t i = 0; i < codes.n; ++i) {
        for (size_t k = 0; k < n_bits; ++k) {
            float sum = 0;
            for (const Buffer<float>& part : parts) sum += part[i * codes.width + k];
            out[i * n_bits + k] = scale * sum;
        }
    }
}

bool pull_tiles(const Pairs<float>& pairs, const float* grad_counts, const uint8_t* bins, float* grad_queries, float* grad_items,
                Workers& workers) {
    const Tiles tiles(pairs, false);
    const Bins shape = tiles.bins();
    const size_t stride = slopes_a_row(shape), width = tiles.queries().width;
    const Buffer<float> slopes = slopes_of(pairs, grad_counts, stride);
    const SoftKernels& run = soft_kernels();
    std::vector<Buffer<float>> for_queries(workers.size()), for_items(grad_items ? workers.size() : 0);
    const bool finished = workers.run([&](size_t w) {
        for_queries[w] = zeroed<float>(tiles.queries().n_tiles * TILE * width);
        if (grad_items) for_items[w] = zeroed<float>(tiles.items().n_tiles * TILE * width);
        float* mine = for_queries[w].get();
        float* theirs = pairs.is_square ? mine : grad_items ? for_items[w].get() : nullptr;
        tiles.run(workers, w, [&](const Tile& tile, size_t i, size_t j, size_t at) {
            run.pull(tile, shape, slopes.get() + i * stride, pairs.is_square ? slopes.get() + j * stride : nullptr, bins + at * TILE * TILE,
                     mine + i * width, theirs ? theirs + j * width : nullptr);
        });
    });
    if (!finished) return false;
    collect(for_queries, tiles.queries(), pairs.n_bits, -shape.scale, grad_queries);
    if (grad_items) collect(for_items, tiles.items(), pairs.n_bits, -shape.scale, grad_items);
    return true;
}

// ---- pair by pair ----

template <class T>
T distance_in_bins(const Pairs<T>& pairs, size_t i, size_t j) {
    const T *a = pairs.queries + i * pairs.n_bits, *b = pairs.items + j * pairs.n_bits;
    T sums[4] = {};
    size_t k = 0;
    for (; k + 4 <= pairs.n_bits; k += 4)
        for (size_t l = 0; l < 4; ++l) sums[l] += a[k + l] * b[k + l];
    for (; k < pairs.n_bits; ++k) sums[0] += a[k] * b[k];
    const T product = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const T z = (T(pairs.n_bits) - product) * (T(pairs.n_bins) / T(2 * pairs.n_bits));
    return std::clamp(z, T(0), T(pairs.n_bins));
}

template <class T>
bool is_counted(const Pairs<T>& pairs, size_t i, size_t j) {
    return pairs.is_square ? i != j : !pairs.own || pairs.own[i] != int64_t(j);
}

// Runs body(bin, weight, slope of the weight) for the bins that z touches; at a centre the slope is that to the right, at the last
// one that to the left.
template <class T, class Body>
void for_bins(const Pairs<T>& pairs, T z, Body body) {
    const T delta = T(pairs.delta), top = T(pairs.n_bins);
    const int64_t first = std::max<int64_t>(0, int64_t(std::floor(z - delta))), last = std::min<int64_t>(pairs.n_bins, int64_t(std::ceil(z + delta)));
    for (int64_t d = first; d <= last; ++d) {
        const T away = z - T(d);
        const bool falls = away >= 0 && !(z == top && away == 0);
        if (falls ? away > delta || (away == delta && z != top) : -away > delta) continue;
        body(size_t(d), T(1) - std::abs(away) / delta, (falls ? T(-1) : T(1)) / delta);
    }
}

// The gradient of pair (i, j)'s distance from query i's counts.
template <class T>
T step_of(const Pairs<T>& pairs, size_t i, size_t j, T z, const T* grad_counts) {
    const size_t level = pairs.levels[i * pairs.n_items + j];
    const T* grad = grad_counts + i * (pairs.n_bins + 1) * pairs.n_levels + level;
    T step = 0;
    for_bins(pairs, z, [&](size_t bin, T, T slope) { step += slope * grad[bin * pairs.n_levels]; });
    return step;
}

template <class T>
bool count_pairs(const Pairs<T>& pairs, T* counts, int64_t* level_counts, Workers& workers) {
    const size_t stride = (pairs.n_bins + 1) * pairs.n_levels;
    return workers.run([&](size_t w) {
        for (size_t i = w; i < pairs.n_queries && !workers.stopped(w); i += workers.size()) {
            T* row = counts + i * stride;
            int64_t* of_level = level_counts + i * pairs.n_levels;
            std::fill_n(row, stride, T(0));
            std::fill_n(of_level, pairs.n_levels, 0);
            for (size_t j = 0; j < pairs.n_items; ++j) {
                if (!is_counted(pairs, i, j)) continue;
                const size_t level = pairs.levels[i * pairs.n_items + j];
                ++of_level[level];
                for_bins(pairs, distance_in_bins(pairs, i, j), [&](size_t bin, T weight, T) { row[bin * pairs.n_levels + level] += weight; });
            }
        }
    });
}

// out[i] = -scale * sum over j of step(i, j) * others[j], for i < n; each row has one worker, so threads do not change the sum.
template <class T, class Step>
bool pull_rows(size_t n, const T* others, size_t n_others, size_t n_bits, T scale, T* out, Workers& workers, Step step) {
    return workers.run([&](size_t w) {
        for (size_t i = w; i < n && !workers.stopped(w); i += workers.size()) {
            T* row = out + i * n_bits;
            std::fill_n(row, n_bits, T(0));
            for (size_t j = 0; j < n_others; ++j) {
                const T by = -scale * step(i, j);
                for (size_t k = 0; k < n_bits; ++k) row[k] += by * others[j * n_bits + k];
            }
        }
    });
}

template <class T>
bool pull_pairs(const Pairs<T>& pairs, const T* grad_counts, T* grad_queries, T* grad_items, Workers& workers) {
    const T scale = T(pairs.n_bins) / T(2 * pairs.n_bits);
    const auto one_way = [&](size_t i, size_t j) {
        return is_counted(pairs, i, j) ? step_of(pairs, i, j, distance_in_bins(pairs, i, j), grad_counts) : T(0);
    };
    const auto both_ways = [&](size_t i, size_t j) {
        if (i == j) return T(0);
        const T z = distance_in_bins(pairs, std::min(i, j), std::max(i, j));
        return step_of(pairs, i, j, z, grad_counts) + step_of(pairs, j, i, z, grad_counts);
    };
    if (pairs.is_square)
        return pull_rows(pairs.n_queries, pairs.items, pairs.n_items, pairs.n_bits, scale, grad_queries, workers, both_ways);
    if (!pull_rows(pairs.n_queries, pairs.items, pairs.n_items, pairs.n_bits, scale, grad_queries, workers, one_way)) return false;
    return !grad_items || pull_rows(pairs.n_items, pairs.queries, pairs.n_queries, pairs.n_bits, scale, grad_items, workers,
                                    [&](size_t j, size_t i) { return one_way(i, j); });
}

}  // namespace

const SoftKernels& soft_kernels() {
    const SoftKernels* avx2 = avx2_soft_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_soft_kernels();
}

template <class T>
size_t kept_bins(const Pairs<T>& pairs) {
    if (!is_tiled(pairs)) return 0;
    const size_t queries = (pairs.n_queries + TILE - 1) / TILE, items = (pairs.n_items + TILE - 1) / TILE;
    return (pairs.is_square ? queries * (queries + 1) / 2 : queries * items) * TILE * TILE;
}

template <class T>
bool count_soft(const Pairs<T>& pairs, T* counts, int64_t* level_counts, uint8_t* bins, Workers& workers) {
    if constexpr (std::is_same_v<T, float>) {
        if (is_tiled(pairs)) return count_tiles(pairs, counts, level_counts, bins, workers);
    }
    return count_pairs(pairs, counts, level_counts, workers);
}

template <class T>
bool pull_soft(const Pairs<T>& pairs, const T* grad_counts, const uint8_t* bins, T* grad_queries, T* grad_items, Workers& workers) {
    if constexpr (std::is_same_v<T, float>) {
        if (is_tiled(pairs)) return pull_tiles(pairs, grad_counts, bins, grad_queries, grad_items, workers);
    }
    return pull_pairs(pairs, grad_counts, grad_queries, grad_items, workers);
}

template size_t kept_bins(const Pairs<float>&);
template size_t kept_bins(const Pairs<double>&);
template bool count_soft(const Pairs<float>&, float*, int64_t*, uint8_t*, Workers&);
template bool count_soft(const Pairs<double>&, double*, int64_t*, uint8_t*, Workers&);
template bool pull_soft(const Pairs<float>&, const float*, const uint8_t*, float*, float*, Workers&);
template bool pull_soft(const Pairs<double>&, const double*, const uint8_t*, double*, double*, Workers&);

}  // namespace rankbits
