// Finer scores of candidates, and the best of them. Every sum is in double and in one order, whatever the threads and the instruction
// set, so that equal rows get equal scores.
#pragma once
#include <cstddef>
#include <cstdint>

#include "real_numbers.hpp"
#include "workers.hpp"

namespace rankbits {

enum class Metric { l2, ip, cosine };
enum class Number { half, single, whole, int8, uint8 };

constexpr int64_t NO_BAD_ROW = INT64_MAX;

// Scores of a row of d numbers of one type for n queries, at least one: Euclidean distance; minus the product; or 1 minus it, the row taken
// as of length 1.
using Score = void (*)(const void* row, const double* const* queries, size_t n, size_t d, double* scores);

struct ScoreKernels {
    Score score[5][3];  // [Number][Metric]
    bool (*is_finite[5])(const void* row, size_t d);
};

const ScoreKernels& portable_score_kernels();
const ScoreKernels* avx2_score_kernels();  // null where the compiler or the CPU has no AVX2

struct VectorPairs {
    const void* rows;  // n_rows of d numbers
    Number number;
    size_t n_rows, d;
    const double* queries;        // d numbers each
    const int64_t* pair_rows;     // ascending, so that a mapped file is read forwards
    const int64_t* pair_queries;
    size_t n_pairs;
};

// scores[pair]; the lowest row that is not finite goes to bad_row. False if stopped.
bool score_vectors(const VectorPairs& pairs, Metric metric, double* scores, int64_t* bad_row, Workers& workers);

struct BytePairs {
    const double *if_set, *if_clear;  // n_bits for each query: what a bit of code ^ mask adds
    size_t n_bits, width, n_queries;
    const uint8_t* masks;    // width for each query
    const uint8_t* codes;    // width for each candidate
    const int64_t* offsets;  // candidates of query q stand from offsets[q] to offsets[q + 1]
};

// scores[candidate] as sums over bytes of tables with 256 entries. False if stopped.
bool score_bytes(const BytePairs& pairs, double* scores, Workers& workers);

struct TablePairs {
    RealNumbers numbers;  // tables
    size_t width, n_queries;
    const uint8_t* codes;    // width for each candidate
    const int64_t* offsets;  // as above
};

// scores[candidate] as the search by real-valued queries (real.hpp) has it, to the last bit. False if stopped.
bool score_tables(const TablePairs& pairs, double* scores, Workers& workers);

struct Ranking {
    const double* scores;
    const int64_t* ids;
    const int64_t* offsets;
    size_t n_queries, k;
};

// The k best of each query by (score as float, id) into rows of k; places left over stay as they are. is_number becomes false if a
// score is NaN. False if stopped.
bool best_scores(const Ranking& ranking, float* scores, int64_t* ids, bool* is_number, Workers& workers);

}  // namespace rankbits
