// The loop nests of the soft tie histogram of relaxed codes, of its gradient, and of the relaxed metrics that read it.
//
// Notation: s the inner product of two codes, z = offset - scale * s their distance in bins, k = floor(z) its lower bin, t = z - k.
// A pair adds 1 - t to bin k and t to bin k + 1, so the gradient of its distance is the step of the gradient from bin k to k + 1.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rankbits {

constexpr size_t TILE = 48;           // rows and columns of pairs worked on at a time: three 16-column panels, eight 6-row strips
constexpr size_t PANEL = 16;          // columns of a packed panel
constexpr int FRACTION_BITS = 24;     // a pair adds 2^44 + t * 2^24 to one 64-bit cell: its count and its fraction at once,
constexpr int COUNT_SHIFT = 44;       // in integers, so that the sum does not depend on the order
constexpr size_t MAX_ITEMS = size_t{1} << 20;

// Levels of pairs, in whatever integers the caller has them. A level above the last one, or below 0, counts as the last.
enum class LevelType { u8, i8, i16, i32, i64 };

struct LevelMatrix {
    const void* data;
    LevelType type;
};

// Runs body(pointer to the first level) with the pointer's own type.
template <class Body>
auto with_levels(const LevelMatrix& levels, Body body) {
    switch (levels.type) {
        case LevelType::u8: return body(static_cast<const uint8_t*>(levels.data));
        case LevelType::i8: return body(static_cast<const int8_t*>(levels.data));
        case LevelType::i16: return body(static_cast<const int16_t*>(levels.data));
        case LevelType::i32: return body(static_cast<const int32_t*>(levels.data));
        default: return body(static_cast<const int64_t*>(levels.data));
    }
}

// The same as bytes, which is what tiles are counted from.
struct ByteLevels {
    const uint8_t* data;
    bool are_signed;
};

// A tile of pairs of `rows` queries and `cols` items. With a second histogram (or slopes_b) each pair also counts for its item as the
// query.
struct Tile {
    size_t rows, cols;
    bool is_diagonal;     // of a square problem: the pairs below the diagonal are those above it, the diagonal never counts
    const float* a;       // codes of the rows, `width` floats apart, zeroed up to six rows
    const float* b;       // codes of the columns, the same way, zeroed up to PANEL rows
    const float* panels;  // codes of the columns again: [column / 16][bit][16]
    size_t width;         // floats a code, a multiple of 16, zeroed behind the bits
    ByteLevels levels;
    size_t first_ab;      // level of column j for row i at [first_ab + i * ld + j]
    size_t first_ba;      // level of row i for column j at [first_ba + j * ld + i], in a square problem
    size_t ld;
    const int32_t* own;   // a column to leave out of each row, -1 for none; or null
};

struct Bins {
    size_t n_levels, n_bins;    // n_bins spacings, n_bins + 1 centres
    float offset, scale;
};

// Rows of a table lie a cache line further apart than they are long: a power of two would put them all in the same few sets. A row of
// cells has a bin of zeros behind its last one, and whoever allocates the rows puts `lead_of_cells` zeros before the first of them, so
// that every bin can be read together with the one below it.
inline size_t cells_a_row(const Bins& shape) { return (shape.n_bins + 1) * shape.n_levels + 8; }
inline size_t lead_of_cells(const Bins& shape) { return (shape.n_levels + 7) / 8 * 8; }
inline size_t slopes_a_row(const Bins& shape) { return shape.n_bins * shape.n_levels + 16; }

// Ties [first, end) of a query: outside them it has no items.
struct Span {
    size_t first, end;
};

// The ties of one query, nearest first: soft counts c, what counts in them x (the relevant part, or the gain) and its squares s (of an
// item that is relevant with some chance, the chance squared), the sums N, X before each, a = N + 1 (and once more behind the last);
// then what each tie adds and its derivatives. Arrays are `stride` doubles long, at least eight more than there are ties; psi is five
// of them.
struct Ties {
    double *c, *x, *s, *N, *X, *a, *psi, *value, *by_c, *by_x, *by_s, *by_N, *by_X;
    size_t n, stride;
};

// Which cell of its histogram a pair was added to, bin * n_levels + level: of the row's [i * TILE + j] and, TILE * TILE further, of the
// column's. This is all that the way back needs of a pair: a byte, or two where a histogram has more than 256 cells.
inline size_t bytes_a_cell(const Bins& shape) { return shape.n_bins * shape.n_levels <= 256 ? 1 : 2; }

struct SoftKernels {
    // Levels [first, first + n) as bytes. False if one is below 0.
    bool (*narrow)(const LevelMatrix& levels, size_t first, size_t n, size_t last, uint8_t* to);
    // Adds the tile to the packed cells hist[row][bin][level] and leaves each pair's cells. False if a level is below 0.
    bool (*count)(const Tile& tile, const Bins& shape, uint64_t* hist_a, uint64_t* hist_b, void* cells);
    // One row of packed cells to its soft counts (n_bins + 1, n_levels) and the hard count of each level; counts may be touched up to
    // three further. The span reaches one tie further than the bins that pairs were added to, for what they hand on.
    Span (*unpack)(const uint64_t* hist, const Bins& shape, double* counts, int64_t* level_counts);
    // slopes[c] = by * (grads[c + n_levels] - grads[c]): the steps of a gradient from each bin to the next.
    void (*steps)(const float* grads, const Bins& shape, float by, float* slopes);
    // Adds the gradient of the tile to grad_a and grad_b (null for not needed), `width` floats a row, for a unit scale of the distance.
    void (*pull)(const Tile& tile, const Bins& shape, const float* slopes_a, const float* slopes_b, const void* cells, float* grad_a,
                 float* grad_b);
    // ψ, ψ', ψ'', ψ''' and ψ'''' at n ascending points x >= 1, in rows of `stride` doubles; both may be touched up to n + 3.
    void (*polygammas)(const double* x, size_t n, size_t stride, double* out);
    // Fills c, x, s, N, X and a of the span from soft counts, which may be read up to three ties further; x is the sum of a tie's
    // counts times their gains, s that of the counts times the squares of their gains.
    void (*gather)(const double* counts, size_t n_levels, const double* gains, Span span, const Ties& ties);
    void (*exact_ap)(const Ties& ties, Span span);  // in the closed form of docs/math.md
};

const SoftKernels& portable_soft_kernels();
const SoftKernels* avx2_soft_kernels();  // null where the compiler or the CPU has no AVX2 or FMA
const SoftKernels& soft_kernels();       // of the dispatch level in use

template <class T>
struct Pairs {
    const T* queries;
    const T* items;      // equal to queries in a square problem
    LevelMatrix levels;  // (n_queries, n_items)
    const int64_t* own;  // item to leave out of each query's list, -1 for none; or null
    size_t n_queries, n_items, n_bits;
    size_t n_levels, n_bins;
    double delta;        // half width of a soft bin, in spacings
    bool is_square;      // each query against the other queries

    size_t counts_a_row() const { return (n_bins + 1) * n_levels; }
};

}  // namespace rankbits
