#include "rescore.hpp"

#include <algorithm>
#include <cmath>

#include "dispatch.hpp"

namespace rankbits {
namespace {

constexpr size_t PAIRS_A_SHARE = 256;
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

}  // namespace

bool score_vectors(const VectorPairs& pairs, Metric metric, double* scores, int64_t* bad_row, Workers& workers) {
    const ScoreKernels& run = score_kernels();
    const auto number = static_cast<size_t>(pairs.number);
    const Score score = run.score[number][static_cast<size_t>(metric)];
    const size_t stride = pairs.d * bytes_of(pairs.number);
    const auto* rows = static_cast<const uint8_t*>(pairs.rows);
    std::atomic<size_t> next{0};
    std::atomic<int64_t> lowest{NO_BAD_ROW};
    const bool is_finished = workers.run([&](size_t w) {
        for (size_t first; (first = next.fetch_add(PAIRS_A_SHARE)) < pairs.n_pairs;) {  // ascending: a mapped file is read forwards
            if (workers.stopped(w)) return;
            const size_t last = std::min(first + PAIRS_A_SHARE, pairs.n_pairs);
            for (size_t i = first; i < last; ++i) {
                const auto* row = rows + static_cast<size_t>(pairs.pair_rows[i]) * stride;
                if (i + PREFETCHED < last) {
                    const auto* ahead = rows + static_cast<size_t>(pairs.pair_rows[i + PREFETCHED]) * stride;
                    for (size_t at = 0; at < std::min<size_t>(stride, 512); at += 64) __builtin_prefetch(ahead + at);
                }
                scores[i] = score(row, pairs.queries + static_cast<size_t>(pairs.pair_queries[i]) * pairs.d, pairs.d);
                if (std::isfinite(scores[i]) || run.is_finite[number](row, pairs.d)) continue;  // what is not finite shows in the score
                int64_t before = lowest.load();
                while (pairs.pair_rows[i] < before && !lowest.compare_exchange_weak(before, pairs.pair_rows[i])) {}
            }
        }
    });
    *bad_row = lowest;
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
