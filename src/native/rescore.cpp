#include "rescore.hpp"

#include <algorithm>
#include <cmath>

#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t PAIRS_A_SHARE = 256;
constexpr size_t ROWS_A_SHARE = 64, ROWS_AHEAD = 2, ROW_PAIRS = 16;
constexpr size_t PREFETCHED = 4;  // pairs ahead whose rows are asked for
constexpr size_t VALUES = 256;    // of a byte

const ScoreKernels& score_kernels() {
    const ScoreKernels* avx2 = avx2_score_kernels();
    return avx2 && &kernels() != &portable_kernels() ? *avx2 : portable_score_kernels();
}

size_t bytes_of(Number number) {
    constexpr size_t BYTES[] = {2, 4, 8, 1, 1};
    return BYTES[static_cast<size_t>(number)];
}

void join_halves(const double* low, const double* high, double* table) {
    for (size_t value = 0; value < VALUES; ++value) table[value] = low[value & 15] + high[value >> 4];
}

// What each value of each byte adds; bits behind the last one add nothing. The highest bit of a byte is its first. The sums of a byte's two
// halves are added, so that who has the sums of halves only (real.cpp) gets the same score.
void make_tables(const BytePairs& pairs, size_t q, double* tables) {
    for (size_t byte = 0; byte < pairs.width; ++byte) {
        double halves[2][16] = {};
        for (size_t bit = 0; bit < 8; ++bit) {
            const size_t place = 8 * byte + 7 - bit, n = size_t{1} << bit % 4;
            const double one = place < pairs.n_bits ? pairs.if_set[q * pairs.n_bits + place] : 0.0;
            const double zero = place < pairs.n_bits ? pairs.if_clear[q * pairs.n_bits + place] : 0.0;
            double* sums = halves[bit / 4];
            for (size_t value = 0; value < n; ++value) {
                sums[n + value] = sums[value] + one;
                sums[value] += zero;
            }
        }
        join_halves(halves[0], halves[1], tables + byte * VALUES);
    }
}

// scores[candidate] where make(q, tables) gives each query a table of 256 entries for every byte and byte(q, i, k) is byte k of candidate i.
template <class Pairs, class Make, class Byte>
bool add_up(const Pairs& pairs, Make make, Byte byte, double* scores, Workers& workers) {
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        std::vector<double> tables(pairs.width * VALUES);
        for (size_t q; (q = next++) < pairs.n_queries;) {
            if (workers.stopped(w)) return;
            make(q, tables.data());
            for (auto i = static_cast<size_t>(pairs.offsets[q]); i < static_cast<size_t>(pairs.offsets[q + 1]); ++i) {
                double sum = 0.0;
                for (size_t k = 0; k < pairs.width; ++k) sum += tables[k * VALUES + byte(q, i, k)];
                scores[i] = sum;
            }
        }
    });
}

// Scores pairs of one row at a time, and remembers the lowest row that is not finite.
class PairScorer {
public:
    PairScorer(const VectorPairs& pairs, Metric metric, double* scores)
        : pairs_(pairs), scores_(scores), stride_(pairs.d * bytes_of(pairs.number)) {
        const auto number = static_cast<size_t>(pairs.number);
        score_ = score_kernels().score[number][static_cast<size_t>(metric)];
        is_finite_ = score_kernels().is_finite[number];
    }

    const uint8_t* row_of(size_t pair) const {
        return static_cast<const uint8_t*>(pairs_.rows) + static_cast<size_t>(pairs_.pair_rows[pair]) * stride_;
    }
    size_t stride() const { return stride_; }

    void prefetch(size_t pair, size_t n_bytes) const {
        for (size_t at = 0; at < n_bytes; at += 64) __builtin_prefetch(row_of(pair) + at);
    }

    int64_t bad_row() const { return lowest_; }

    // The pairs are of one row, and at most ROW_PAIRS.
    void score(const size_t* some, size_t n) {
        const double* queries[ROW_PAIRS];
        double scores[ROW_PAIRS];
        for (size_t i = 0; i < n; ++i) queries[i] = pairs_.queries + static_cast<size_t>(pairs_.pair_queries[some[i]]) * pairs_.d;
        score_(row_of(some[0]), queries, n, pairs_.d, scores);
        bool is_finite = true;
        for (size_t i = 0; i < n; ++i) {
            scores_[some[i]] = scores[i];
            is_finite &= std::isfinite(scores[i]);
        }
        if (is_finite || is_finite_(row_of(some[0]), pairs_.d)) return;  // what is not finite shows in the score
        int64_t before = lowest_.load();
        while (pairs_.pair_rows[some[0]] < before && !lowest_.compare_exchange_weak(before, pairs_.pair_rows[some[0]])) {}
    }

private:
    const VectorPairs& pairs_;
    double* scores_;
    size_t stride_;
    Score score_;
    bool (*is_finite_)(const void*, size_t);
    std::atomic<int64_t> lowest_{NO_BAD_ROW};
};

// Pairs as they come, ascending, so that a mapped file is read forwards.
bool score_in_turn(const VectorPairs& pairs, PairScorer& scorer, Workers& workers) {
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        for (size_t first; (first = next.fetch_add(PAIRS_A_SHARE)) < pairs.n_pairs;) {
            if (workers.stopped(w)) return;
            const size_t last = std::min(first + PAIRS_A_SHARE, pairs.n_pairs);
            for (size_t i = first; i < last; ++i) {
                if (i + PREFETCHED < last) scorer.prefetch(i + PREFETCHED, std::min<size_t>(scorer.stride(), 512));
                scorer.score(&i, 1);
            }
        }
    });
}

// All pairs of a row together: where rows have several, each is read once.
bool score_by_rows(const VectorPairs& pairs, PairScorer& scorer, Workers& workers) {
    // starts[r + 1] is where the pairs of row r begin in order, and, once they stand there, where they end.
    std::vector<size_t> starts(pairs.n_rows + 2), order(pairs.n_pairs), rows;
    for (size_t i = 0; i < pairs.n_pairs; ++i) ++starts[static_cast<size_t>(pairs.pair_rows[i]) + 2];
    for (size_t r = 0; r < pairs.n_rows; ++r) {
        if (starts[r + 2] > 0) rows.push_back(r);
        starts[r + 2] += starts[r + 1];
    }
    for (size_t i = 0; i < pairs.n_pairs; ++i) order[starts[static_cast<size_t>(pairs.pair_rows[i]) + 1]++] = i;
    std::atomic<size_t> next{0};
    return workers.run([&](size_t w) {
        for (size_t first; (first = next.fetch_add(ROWS_A_SHARE)) < rows.size();) {
            if (workers.stopped(w)) return;
            for (size_t i = first; i < std::min(first + ROWS_A_SHARE, rows.size()); ++i) {
                if (i + ROWS_AHEAD < rows.size()) scorer.prefetch(order[starts[rows[i + ROWS_AHEAD]]], scorer.stride());
                const size_t end = starts[rows[i] + 1];
                for (size_t at = starts[rows[i]]; at < end; at += ROW_PAIRS) scorer.score(&order[at], std::min(ROW_PAIRS, end - at));
            }
        }
    });
}

}  // namespace

bool score_vectors(const VectorPairs& pairs, Metric metric, double* scores, int64_t* bad_row, Workers& workers) {
    PairScorer scorer(pairs, metric, scores);
    const bool is_dense = 2 * pairs.n_pairs >= pairs.n_rows;
    const bool is_finished = is_dense ? score_by_rows(pairs, scorer, workers) : score_in_turn(pairs, scorer, workers);
    *bad_row = scorer.bad_row();
    return is_finished;
}

bool score_bytes(const BytePairs& pairs, double* scores, Workers& workers) {
    const size_t width = pairs.width;
    const auto make = [&](size_t q, double* tables) { make_tables(pairs, q, tables); };
    const auto byte = [&](size_t q, size_t i, size_t k) { return pairs.codes[i * width + k] ^ pairs.masks[q * width + k]; };
    return add_up(pairs, make, byte, scores, workers);
}

bool score_tables(const TablePairs& pairs, double* scores, Workers& workers) {
    const size_t width = pairs.width, n_bits = pairs.numbers.n_bits;
    const auto make = [&](size_t q, double* tables) {
        const double* of_query = pairs.numbers.row(q);
        for (size_t k = 0; k < width; ++k) {
            join_halves(table_of_half(of_query, n_bits, 2 * k), table_of_half(of_query, n_bits, 2 * k + 1), tables + k * VALUES);
        }
    };
    const auto byte = [&](size_t, size_t i, size_t k) { return pairs.codes[i * width + k]; };
    return add_up(pairs, make, byte, scores, workers);
}

bool best_scores(const Ranking& ranking, float* scores, int64_t* ids, bool* is_number, Workers& workers) {
    std::atomic<size_t> next{0};
    std::atomic<bool> has_nan{false};
    const bool is_finished = workers.run([&](size_t w) {
        std::vector<std::pair<float, int64_t>> items;
        for (size_t q; (q = next++) < ranking.n_queries;) {
            if (workers.stopped(w)) return;
            items.clear();
            for (auto i = static_cast<size_t>(ranking.offsets[q]); i < static_cast<size_t>(ranking.offsets[q + 1]); ++i) {
                items.emplace_back(static_cast<float>(ranking.scores[i]) + 0.0f, ranking.ids[i]);  // so that -0.0 is 0.0
            }
            if (std::any_of(items.begin(), items.end(), [](const auto& item) { return std::isnan(item.first); })) {
                has_nan = true;
                continue;
            }
            const size_t n = std::min(ranking.k, items.size());
            const auto end = items.begin() + static_cast<std::ptrdiff_t>(n);
            if (n < items.size()) std::nth_element(items.begin(), end, items.end());
            std::sort(items.begin(), end);
            for (size_t i = 0; i < n; ++i) {
                scores[q * ranking.k + i] = items[i].first;
                ids[q * ranking.k + i] = items[i].second;
            }
        }
    });
    *is_number = !has_nan;
    return is_finished;
}

}  // namespace rankbits
