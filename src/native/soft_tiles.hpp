// The loop nests of the soft histogram, compiled once an instruction set: include it from a file compiled for that set.
//
// Why it is fast: one 6 x 16 micro-kernel does all products from registers (12 accumulators, two loads and six broadcasts for twelve
// fused multiply-adds); a tile's products, bins and levels stay in the L1 cache; a pair costs one 64-bit add a histogram on the way
// in and one look-up a histogram on the way back. What bounds it: the products (1.5 times M * M * b multiply-adds, where the plain way
// takes 3), then two adds and two look-ups a pair.
#include <cstring>
#include <type_traits>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "soft.hpp"

namespace rankbits {
namespace {

typedef float Floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));

constexpr size_t STRIP = 6;

inline Floats load(const float* p) { return *reinterpret_cast<const Floats*>(p); }
inline void store(float* p, Floats x) { *reinterpret_cast<Floats*>(p) = x; }
inline void store(uint32_t* p, Ints x) { *reinterpret_cast<Ints*>(p) = x; }

#ifdef __AVX2__
inline Ints widen(const uint8_t* bytes) { return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))); }

inline __m128i words_of(Ints x) {
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)x, (__m256i)x), 0x08));
}

inline void store_cells(Ints x, uint16_t* cells) { _mm_storeu_si128(reinterpret_cast<__m128i*>(cells), words_of(x)); }

inline void store_cells(Ints x, uint8_t* cells) {
    const __m128i words = words_of(x);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(cells), _mm_packus_epi16(words, words));
}
#else
inline Ints widen(const uint8_t* bytes) {
    Ints x;
    for (int k = 0; k < 8; ++k) x[k] = bytes[k];
    return x;
}

template <class Cell>
inline void store_cells(Ints x, Cell* cells) {
    for (int k = 0; k < 8; ++k) cells[k] = Cell(x[k]);
}
#endif

// c[r][0..16) (+)= sum over k < depth of a[r * a_row + k * a_step] * b[k * b_step + 0..16), for r < 6.
template <bool ADD>
inline __attribute__((always_inline)) void multiply_strip(const float* a, size_t a_row, size_t a_step, const float* b, size_t b_step,
                                                          size_t depth, float* c, size_t c_row) {
    Floats low[STRIP] = {}, high[STRIP] = {};
    for (size_t k = 0; k < depth; ++k, a += a_step, b += b_step) {
        const Floats b0 = load(b), b1 = load(b + 8);
#pragma GCC unroll 6
        for (size_t r = 0; r < STRIP; ++r) {
            const float x = a[r * a_row];
            low[r] += x * b0;
            high[r] += x * b1;
        }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < STRIP; ++r) {
        float* row = c + r * c_row;
        store(row, ADD ? load(row) + low[r] : low[r]);
        store(row + 8, ADD ? load(row + 8) + high[r] : high[r]);
    }
}

struct Columns {  // [begin, end) and, where an own item splits them, a second run
    size_t begin[2], end[2];
};

inline Columns columns_of(const Tile& tile, size_t i) {
    if (tile.is_diagonal) return {{i + 1, 0}, {tile.cols, 0}};
    const int32_t own = tile.own ? tile.own[i] : -1;
    if (own < 0) return {{0, 0}, {tile.cols, 0}};
    return {{0, size_t(own) + 1}, {size_t(own), tile.cols}};
}

// n levels as bytes, those above the last one or below 0 as the last; the sign of the result is that of the smallest.
template <class Level>
inline Level narrow_levels(const Level* from, size_t n, std::make_unsigned_t<Level> last, uint8_t* to) {
    using Unsigned = std::make_unsigned_t<Level>;
    Level any = 0;
    for (size_t j = 0; j < n; ++j) {
        any |= from[j];
        to[j] = uint8_t(Unsigned(from[j]) < last ? Unsigned(from[j]) : last);
    }
    return any;
}

#ifdef __AVX2__
// Eight 64-bit levels as 32-bit ones, in the order 0 1 4 5 2 3 6 7.
inline __m256i narrow_eight(__m256i low, __m256i high, __m256i last) {
    const __m256 a = _mm256_castsi256_ps(low), b = _mm256_castsi256_ps(high);
    const __m256i words = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)), above = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    const __m256i is_short = _mm256_cmpeq_epi32(above, _mm256_setzero_si256());
    return _mm256_min_epu32(_mm256_or_si256(words, _mm256_andnot_si256(is_short, _mm256_set1_epi32(-1))), last);
}

// What torch users have: the compiler's own way with eight bytes a level takes three times as long.
inline int64_t narrow_levels(const int64_t* from, size_t n, uint64_t last, uint8_t* to) {
    const __m256i highest = _mm256_set1_epi32(int(last));
    __m256i any = _mm256_setzero_si256();
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        __m256i four[4];
        for (size_t k = 0; k < 4; ++k) {
            four[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + j + 4 * k));
            any = _mm256_or_si256(any, four[k]);
        }
        const __m256i words = _mm256_packus_epi32(narrow_eight(four[0], four[1], highest), narrow_eight(four[2], four[3], highest));
        const __m256i bytes = _mm256_packus_epi16(words, words);
        const __m128i ordered = _mm_unpacklo_epi16(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j), ordered);
    }
    const int64_t is_negative = _mm256_movemask_pd(_mm256_castsi256_pd(any)) ? INT64_MIN : 0;
    return is_negative | narrow_levels<int64_t>(from + j, n - j, last, to + j);
}
#endif

bool narrow(const LevelMatrix& levels, size_t first, size_t n, size_t last, uint8_t* to) {
    return with_levels(levels, [=](auto* from) {
        using Level = std::remove_const_t<std::remove_pointer_t<decltype(from)>>;
        const auto highest = std::make_unsigned_t<Level>(last);  // below 256: there are at most 256 levels
        return !(narrow_levels(from + first, n, highest, to) < 0);
    });
}

// Levels of a tile gathered from rows that may lie a page apart, those of the next tile, `ahead` bytes further, asked for meanwhile;
// false if one is below 0.
inline bool gather_levels(const ByteLevels& levels, size_t first, size_t ld, size_t ahead, size_t rows, size_t cols, size_t last,
                          uint8_t* to) {
    const uint8_t* row = levels.data + first;
    uint8_t any = 0;
    for (size_t i = 0; i < rows; ++i, row += ld, to += TILE) {
        __builtin_prefetch(row + ahead);
        any |= cols == TILE ? narrow_levels(row, TILE, uint8_t(last), to) : narrow_levels(row, cols, uint8_t(last), to);
    }
    return !(levels.are_signed && any >= 128);
}

// A 16 x 16 block of bytes: row i meets row i + 8 in turn, and four such rounds bring column j to row j.
inline void transpose(const uint8_t* from, uint8_t* to) {
    const Bytes low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8;
    Bytes rows[16], turned[16];
    for (int i = 0; i < 16; ++i) rows[i] = *reinterpret_cast<const Bytes*>(from + i * TILE);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 8; ++i) {
            turned[2 * i] = __builtin_shuffle(rows[i], rows[i + 8], low);
            turned[2 * i + 1] = __builtin_shuffle(rows[i], rows[i + 8], high);
        }
        for (int i = 0; i < 8; ++i) {
            rows[2 * i] = __builtin_shuffle(turned[i], turned[i + 8], low);
            rows[2 * i + 1] = __builtin_shuffle(turned[i], turned[i + 8], high);
        }
    }
    for (int i = 0; i < 16; ++i) *reinterpret_cast<Bytes*>(to + i * TILE) = rows[i];
}

// The levels of a tile's pairs for its rows and, with BOTH, for its columns, each at [row * TILE + column].
template <bool BOTH>
struct Levels {
    alignas(64) uint8_t for_rows[TILE * TILE], for_columns[BOTH ? TILE * TILE : 1];
    bool are_whole;  // none is below 0

    Levels(const Tile& tile, size_t n_levels) {
        are_whole = gather_levels(tile.levels, tile.first_ab, tile.ld, TILE, tile.rows, tile.cols, n_levels - 1, for_rows);
        if (!BOTH) return;
        alignas(64) uint8_t turned[TILE * TILE];
        are_whole &= gather_levels(tile.levels, tile.first_ba, tile.ld, TILE * tile.ld, tile.cols, tile.rows, n_levels - 1, turned);
        for (size_t i = 0; i < TILE; i += 16)
            for (size_t j = 0; j < TILE; j += 16) transpose(turned + j * TILE + i, for_columns + i * TILE + j);
    }
};

// What a strip of pairs adds, and to which cells of its first row's and its first column's histogram.
struct Strip {
    alignas(64) float products[STRIP * TILE];
    alignas(64) uint32_t fraction[STRIP * TILE], at_row[STRIP * TILE], at_column[STRIP * TILE];
};

template <bool BOTH, class Cell>
inline void place(Strip& strip, const Bins& shape, const uint8_t* row_levels, const uint8_t* column_levels, Cell* cells) {
    const Floats zero{}, top = zero + float(shape.n_bins), unit = zero + float(1 << FRACTION_BITS);
    const Ints last = Ints{} + int32_t(shape.n_bins - 1), ramp = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32_t stride = int32_t(cells_a_row(shape)), n_levels = int32_t(shape.n_levels);
    for (size_t r = 0; r < STRIP; ++r) {
        for (size_t j = 0; j < TILE; j += 8) {
            const size_t at = r * TILE + j;
            Floats z = shape.offset - shape.scale * load(strip.products + at);
            z = z > zero ? z : zero;
            z = z < top ? z : top;
            Ints k = __builtin_convertvector(z, Ints);
            k = k < last ? k : last;
            const Floats t = z - __builtin_convertvector(k, Floats);
            const Ints at_row = k * n_levels + widen(row_levels + at);
            store(strip.fraction + at, __builtin_convertvector(t * unit, Ints));
            store(strip.at_row + at, at_row + int32_t(r) * stride);
            store_cells(at_row, cells + at);
            if (!BOTH) continue;
            const Ints at_column = k * n_levels + widen(column_levels + at);
            store(strip.at_column + at, at_column + (ramp + int32_t(j)) * stride);
            store_cells(at_column, cells + TILE * TILE + at);
        }
    }
}

template <bool BOTH>
inline __attribute__((always_inline)) void add_pair(const Strip& strip, size_t at, uint64_t* rows, uint64_t* columns) {
    const uint64_t added = (uint64_t{1} << COUNT_SHIFT) | strip.fraction[at];
    rows[strip.at_row[at]] += added;
    if (BOTH) columns[strip.at_column[at]] += added;
}

// Two adds to one cell wait for each other, and few bins are in use: so the six rows of a strip advance together, each one column
// ahead of the row above it, and an add meets its row's or column's last one only six adds later.
template <bool BOTH>
inline void add_skewed(const Strip& strip, size_t cols, uint64_t* rows, uint64_t* columns) {
    for (size_t r = 0; r < STRIP; ++r)
        for (size_t j = 0; j < (r < cols ? r : cols); ++j) add_pair<BOTH>(strip, r * TILE + j, rows, columns);
    size_t j = 0;
    for (; j + STRIP - 1 < cols; ++j) {
#pragma GCC unroll 6
        for (size_t r = 0; r < STRIP; ++r) add_pair<BOTH>(strip, r * (TILE + 1) + j, rows, columns);
    }
    for (size_t r = 0; r < STRIP; ++r)
        for (size_t k = j + r; k < cols; ++k) add_pair<BOTH>(strip, r * TILE + k, rows, columns);
}

template <bool BOTH, class Cell>
bool count_strips(const Tile& tile, const Bins& shape, uint64_t* hist_a, uint64_t* hist_b, Cell* cells) {
    const Levels<BOTH> levels(tile, shape.n_levels);
    Strip strip;
    std::memset(strip.products, 0, sizeof strip.products);
    for (size_t row = 0; row < tile.rows; row += STRIP) {
        for (size_t j = tile.is_diagonal ? row / PANEL * PANEL : 0; j < tile.cols; j += PANEL)
            multiply_strip<false>(tile.a + row * tile.width, tile.width, 1, tile.panels + j * tile.width, PANEL, tile.width,
                                  strip.products + j, TILE);
        place<BOTH>(strip, shape, levels.for_rows + row * TILE, BOTH ? levels.for_columns + row * TILE : nullptr, cells + row * TILE);
        uint64_t* rows = hist_a + row * cells_a_row(shape);
        const size_t n_rows = STRIP < tile.rows - row ? STRIP : tile.rows - row;
        if (n_rows == STRIP && !tile.is_diagonal && !tile.own) {
            add_skewed<BOTH>(strip, tile.cols, rows, hist_b);
            continue;
        }
        for (size_t r = 0; r < n_rows; ++r) {
            const Columns columns = columns_of(tile, row + r);
            for (int run = 0; run < 2; ++run)
                for (size_t j = columns.begin[run]; j < columns.end[run]; ++j) add_pair<BOTH>(strip, r * TILE + j, rows, hist_b);
        }
    }
    return levels.are_whole;
}

bool count_tile(const Tile& tile, const Bins& shape, uint64_t* hist_a, uint64_t* hist_b, void* cells) {
    const auto count = [&](auto* typed) {
        return hist_b ? count_strips<true>(tile, shape, hist_a, hist_b, typed) : count_strips<false>(tile, shape, hist_a, hist_b, typed);
    };
    return bytes_a_cell(shape) == 1 ? count(static_cast<uint8_t*>(cells)) : count(static_cast<uint16_t*>(cells));
}

typedef double Reals __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t Longs64 __attribute__((vector_size(32), aligned(8), may_alias));

// Numbers below 2^52 as doubles.
inline Reals real(Longs64 n) {
    const Longs64 bits = n | 0x4330000000000000;
    return (Reals)bits - 4503599627370496.0;
}

// The hard count of each level in cells [first, end): the fractions of fewer than MAX_ITEMS pairs never reach the bits of the counts, so
// that cells add up.
inline void add_levels(const uint64_t* hist, size_t first, size_t end, size_t n_levels, int64_t* level_counts) {
    for (size_t v = 0; v < n_levels; ++v) level_counts[v] = 0;
    size_t c = first;
    if (n_levels <= 2) {
        Longs64 sums{};
        for (; c + 4 <= end; c += 4) sums += *reinterpret_cast<const Longs64*>(hist + c);
        for (size_t lane = 0; lane < 4; ++lane) level_counts[lane % n_levels] += int64_t(sums[lane]);
    }
    for (size_t v = 0; c < end; ++c, v = v + 1 == n_levels ? 0 : v + 1) level_counts[v] += int64_t(hist[c]);
    for (size_t v = 0; v < n_levels; ++v) level_counts[v] = int64_t(uint64_t(level_counts[v]) >> COUNT_SHIFT);
}

// Bins outside which all cells are zero, four cells at a time.
inline Span busy_bins(const uint64_t* hist, const Bins& shape) {
    const auto are_zero = [&](size_t c) { return !(hist[c] | hist[c + 1] | hist[c + 2] | hist[c + 3]); };
    size_t first = 0, end = shape.n_bins * shape.n_levels;
    while (first + 4 <= end && are_zero(first)) first += 4;
    while (first + 4 <= end && are_zero(end - 4)) end -= 4;
    return {first / shape.n_levels, (end + shape.n_levels - 1) / shape.n_levels};
}

// A bin keeps what its pairs did not hand on, and gets what those of the bin below did.
Span unpack(const uint64_t* hist, const Bins& shape, double* counts, int64_t* level_counts) {
    const size_t n_levels = shape.n_levels;
    const Span bins = busy_bins(hist, shape);
    const Longs64 mask = Longs64{} + ((uint64_t{1} << COUNT_SHIFT) - 1);
    const double unit = 1.0 / (1 << FRACTION_BITS);
    std::memset(counts, 0, (shape.n_bins + 1) * n_levels * sizeof(double));
    for (size_t c = bins.first * n_levels; c < (bins.end + 1) * n_levels; c += 4) {
        const Longs64 cells = *reinterpret_cast<const Longs64*>(hist + c), below = *reinterpret_cast<const Longs64*>(hist + c - n_levels);
        *reinterpret_cast<Reals*>(counts + c) = real(cells >> COUNT_SHIFT) - real(cells & mask) * unit + real(below & mask) * unit;
    }
    add_levels(hist, bins.first * n_levels, bins.end * n_levels, n_levels, level_counts);
    return {bins.first, bins.end + 1};
}

void steps(const float* grads, const Bins& shape, float by, float* slopes) {
    const size_t n = shape.n_bins * shape.n_levels;
    for (size_t c = 0; c < n; ++c) slopes[c] = by * (grads[c + shape.n_levels] - grads[c]);
}

// out[i * TILE + j] = the gradient of the distance of pair (i, j), from its row's and its column's slopes.
template <bool BOTH, class Cell>
inline void look_up(const Tile& tile, const Bins& shape, const float* slopes_a, const float* slopes_b, const Cell* cells, float* out) {
    const size_t stride = slopes_a_row(shape);
    for (size_t i = 0; i < tile.rows; ++i) {
        const Columns columns = columns_of(tile, i);
        const float* row = slopes_a + i * stride;
        const Cell *at_row = cells + i * TILE, *at_column = at_row + TILE * TILE;
        for (int run = 0; run < 2; ++run)
            for (size_t j = columns.begin[run]; j < columns.end[run]; ++j)
                out[i * TILE + j] = BOTH ? row[at_row[j]] + slopes_b[j * stride + at_column[j]] : row[at_row[j]];
    }
    if (!tile.is_diagonal) return;
    for (size_t i = 0; i < tile.rows; ++i)
        for (size_t j = i + 1; j < tile.cols; ++j) out[j * TILE + i] = out[i * TILE + j];
}

void pull_tile(const Tile& tile, const Bins& shape, const float* slopes_a, const float* slopes_b, const void* cells, float* grad_a,
               float* grad_b) {
    alignas(64) float by_distance[TILE * TILE];
    const bool has_gaps = tile.is_diagonal || tile.own || tile.rows % STRIP || tile.cols % STRIP;
    if (has_gaps) std::memset(by_distance, 0, sizeof by_distance);
    const auto fill = [&](auto* typed) {
        if (slopes_b) look_up<true>(tile, shape, slopes_a, slopes_b, typed, by_distance);
        else look_up<false>(tile, shape, slopes_a, slopes_b, typed, by_distance);
    };
    if (bytes_a_cell(shape) == 1) fill(static_cast<const uint8_t*>(cells));
    else fill(static_cast<const uint16_t*>(cells));
    for (size_t bit = 0; bit < tile.width; bit += PANEL) {
        for (size_t i = 0; i < tile.rows; i += STRIP)
            multiply_strip<true>(by_distance + i * TILE, TILE, 1, tile.b + bit, tile.width, tile.cols, grad_a + i * tile.width + bit, tile.width);
        if (!grad_b || tile.is_diagonal) continue;
        for (size_t j = 0; j < tile.cols; j += STRIP)
            multiply_strip<true>(by_distance + j, 1, TILE, tile.a + bit, tile.width, tile.rows, grad_b + j * tile.width + bit, tile.width);
    }
}

}  // namespace
}  // namespace rankbits
