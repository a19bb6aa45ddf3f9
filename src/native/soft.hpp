// The soft tie histogram of relaxed codes, its gradient, and the relaxed metrics that read it.
//
// Notation: s the inner product of two codes, z = offset - scale * s their distance in bins, k = floor(z) its lower bin, t = z - k.
// A pair adds 1 - t to bin k and t to bin k + 1, so the gradient of its distance is the step of the gradient from bin k to k + 1.
#pragma once
#include <cstddef>
#include <cstdint>

#include "workers.hpp"

namespace rankbits {

constexpr size_t TILE = 48;           // rows and columns of pairs worked on at a time: three 16-column panels, eight 6-row strips
constexpr size_t PANEL = 16;          // columns of a packed panel
constexpr int FRACTION_BITS = 24;     // a pair adds 2^44 + t * 2^24 to one 64-bit cell: its count and its fraction at once,
constexpr int COUNT_SHIFT = 44;       // in integers, so that the sum does not depend on the order
constexpr size_t MAX_ITEMS = size_t{1} << 20;

// A tile of pairs of `rows` queries and `cols` items. With hist_b (or slopes_b) each pair also counts for its item as the query.
struct Tile {
    size_t rows, cols;
    bool is_diagonal;           // of a square problem: the pairs below the diagonal are those above it, the diagonal never counts
    const float* a;             // codes of the rows, `width` floats apart, zeroed up to six rows
    const float* b;             // codes of the columns, the same way, zeroed up to PANEL rows
    const float* panels;        // codes of the columns again: [column / 16][bit][16]
    size_t width;               // floats a code, a multiple of 16, zeroed behind the bits
    const uint8_t* levels_ab;   // level of column j for row i at [i * ld + j]
    const uint8_t* levels_ba;   // level of row i for column j at [j * ld + i], or null
    size_t ld;
    const int32_t* own;         // a column to leave out of each row, -1 for none; or null
};

struct Bins {
    size_t n_levels, n_bins;    // n_bins spacings, n_bins + 1 centres
    float offset, scale;
};

// Rows of a table lie a cache line further apart than they are long: a power of two would put them all in the same few sets.
inline size_t cells_a_row(const Bins& shape) { return shape.n_bins * shape.n_levels + 8; }
inline size_t slopes_a_row(const Bins& shape) { return shape.n_bins * shape.n_levels + 16; }

// The ties of one query, nearest first: soft counts c, what counts in them x (the relevant part, or the gain), the sums N, X before
// each, a = N + 1 (and once more behind the last); then what each tie adds and its derivatives. Arrays are `stride` doubles long,
// eight more than there are ties; psi is five of them.
struct Ties {
    double *c, *x, *N, *X, *a, *psi, *value, *by_c, *by_x, *by_N, *by_X;
    size_t n, stride;
};

struct SoftKernels {
    // Adds the tile to the packed cells hist[row][bin][level] and leaves each pair's bin in bins[i * TILE + j] unless null.
    void (*count)(const Tile& tile, const Bins& shape, uint64_t* hist_a, uint64_t* hist_b, uint8_t* bins);
    // Adds the gradient of the tile to grad_a and grad_b (null for not wanted), `width` floats a row, for a unit scale of the distance.
    void (*pull)(const Tile& tile, const Bins& shape, const float* slopes_a, const float* slopes_b, const uint8_t* bins, float* grad_a,
                 float* grad_b);
    // ψ, ψ', ψ'', ψ''' and ψ'''' at n ascending points x >= 1, in rows of `stride` doubles; both may be touched up to n + 3.
    void (*polygammas)(const double* x, size_t n, size_t stride, double* out);
    void (*exact_ap)(const Ties& ties, size_t first, size_t end);  // in the closed form of docs/math.md
};

const SoftKernels& portable_soft_kernels();
const SoftKernels* avx2_soft_kernels();  // null where the compiler or the CPU has no AVX2 or FMA
const SoftKernels& soft_kernels();       // of the dispatch level in use

template <class T>
struct Pairs {
    const T* queries;
    const T* items;         // equal to queries in a square problem
    const uint8_t* levels;  // (n_queries, n_items) positions of levels
    const int64_t* own;     // item to leave out of each query's list, -1 for none; or null
    size_t n_queries, n_items, n_bits;
    size_t n_levels, n_bins;
    double delta;           // half width of a soft bin, in spacings
    bool is_square;         // each query against the other queries
};

// Bytes that count_soft can leave for pull_soft; 0 where the pairs are worked out anew.
template <class T>
size_t kept_bins(const Pairs<T>& pairs);

// counts (n_queries, n_bins + 1, n_levels) and the hard counts of each level (n_queries, n_levels). False if stopped.
template <class T>
bool count_soft(const Pairs<T>& pairs, T* counts, int64_t* level_counts, uint8_t* bins, Workers& workers);

// Gradients of the codes from a gradient of the counts; grad_items is null where it is not wanted, and not read in a square problem.
template <class T>
bool pull_soft(const Pairs<T>& pairs, const T* grad_counts, const uint8_t* bins, T* grad_queries, T* grad_items, Workers& workers);

}  // namespace rankbits
