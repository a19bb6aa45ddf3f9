#include "relax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "buffers.hpp"
#include "soft.hpp"

namespace rankbits {
namespace {

// What a tie adds and its derivatives: by its own counts c, by x (its relevant count, or its gain) and by the sums N, X before it.
struct Tie {
    double value, by_c, by_x, by_N, by_X;
};

Tie simplified_tie(double c, double p, double N, double P) {
    const double above = 2 * P + p + 1, below = 2 * N + c + 1, value = p * above / below;
    return {value, -value / below, (above + p) / below, -2 * value / below, 2 * p / below};
}

struct Guarded {
    double value, slope;
};

Guarded at_least_guard(double x) { return x > GUARD ? Guarded{x, 1} : Guarded{GUARD, 0}; }

// The papers' printed AP_r: a logarithm of C over `start`, start = N (Eq. 11, CVPR) or N + 1 (Eq. 7, arXiv).
Tie printed_tie(double c, double p, double N, double P, double start) {
    const Guarded n = at_least_guard(c), end = at_least_guard(N + c), from = at_least_guard(start);
    const double log = std::log(end.value / from.value), log_C = end.slope / end.value, log_start = -from.slope / from.value;
    const double t = c - 1, square = t * t + GUARD * GUARD, pole = t / square, pole_c = (GUARD * GUARD - t * t) / (square * square);
    const double level = P + 1 - (p - 1) * pole * (N + 1), share = p / n.value;
    return {p * (p - 1) * pole + share * level * log,
            p * (p - 1) * pole_c - share / n.value * n.slope * level * log - share * (p - 1) * pole_c * (N + 1) * log + share * level * log_C,
            (2 * p - 1) * pole + level * log / n.value - share * pole * (N + 1) * log,
            -share * (p - 1) * pole * log + share * level * (log_C + log_start), share * log};
}

// The sum of discounts up to a real rank, linear between whole ones; slope D(⌈x⌉). Ranks beyond the sums, and those that are no
// number, are read as the last one and as 0.
struct Discounts {
    const DiscountSums& of;
    size_t place(double rank, size_t least) const { return rank > double(least) ? std::min(size_t(std::min(rank, 1e15)), of.n - 1) : least; }
    double sum(double rank) const { return of.sums[place(rank, 0)]; }
    double of_rank(double rank) const { return of.sums[place(rank, 1)] - of.sums[place(rank, 1) - 1]; }
    double slope(double x) const { return of_rank(std::max(1.0, std::ceil(x))); }

    // Mean discount of the ranks from N to N + c: by pieces, so that nothing cancels.
    double mean(double N, double c) const {
        const double first = std::floor(N), end = N + c;
        if (end <= first + 1) return of_rank(first + 1);
        const double last = std::floor(end);
        const double head = (first + 1 - N) * of_rank(first + 1), tail = end > last ? (end - last) * of_rank(last + 1) : 0;
        return (head + sum(last) - sum(first + 1) + tail) / c;
    }
};

Tie exact_gain(double c, double gain, double N, const Discounts& discounts) {
    const double mean = discounts.mean(N, c);
    if (N + c <= std::floor(N) + 1 || c <= 0) return {gain * mean, 0, mean, 0, 0};
    const double at_end = discounts.slope(N + c), at_start = discounts.slope(N);
    return {gain * mean, gain * (at_end - mean) / c, mean, gain * (at_end - at_start) / c, 0};
}

Tie simplified_gain(double c, double gain, double N) {
    const double rank = N + (c + 1) / 2 + 1, log = std::log2(rank), slope = -gain / (log * log * rank * std::log(2.0));
    return {gain / log, slope / 2, 1 / log, slope, 0};
}

// li(x) = Ei(ln x), x > 1, by its power series: ranks are far below where it would lose digits.
double log_integral(double x) {
    const double u = std::log(x);
    double sum = 0.57721566490153286061 + std::log(u), term = 1;
    for (int k = 1; k < 200; ++k) {
        term *= u / k;
        sum += term / k;
        if (term < 1e-18 * std::abs(sum)) break;
    }
    return sum;
}

// Eq. (8) of the arXiv text: ln 2 [li(C + 1) - li(N + 2)] for the tie's discounts.
Tie printed_gain(double c, double gain, double N) {
    const Guarded n = at_least_guard(c), end = at_least_guard(N + c);
    const double ln2 = std::log(2.0), span = ln2 * (log_integral(end.value + 1) - log_integral(N + 2));
    const double by_end = ln2 * end.slope / std::log(end.value + 1), by_start = -ln2 / std::log(N + 2);
    return {gain / n.value * span, gain / n.value * (by_end - n.slope * span / n.value), span / n.value, gain / n.value * (by_end + by_start), 0};
}

class Row {  // the memory of one query's ties
public:
    explicit Row(size_t n) {
        const size_t stride = (n + 15) / 8 * 8;
        memory_ = zeroed<double>(17 * stride);
        double* at = memory_.get();
        const auto next = [&](size_t rows = 1) { return std::exchange(at, at + rows * stride); };
        ties = {next(), next(), next(), next(), next(), next(), next(5), next(), next(), next(), next(), next(), next(), n, stride};
    }

    Ties ties;
    Span span{0, 0};

    void set(size_t d, const Tie& tie) {
        ties.value[d] = tie.value, ties.by_c[d] = tie.by_c, ties.by_x[d] = tie.by_x, ties.by_N[d] = tie.by_N, ties.by_X[d] = tie.by_X;
    }

private:
    Buffer<double> memory_;
};

// In four sums, since each addition waits for the one before it.
double total(const Row& row) {
    double sums[4] = {};
    size_t d = row.span.first;
    for (; d + 4 <= row.span.end; d += 4)
        for (size_t k = 0; k < 4; ++k) sums[k] += row.ties.value[d + k];
    for (; d < row.span.end; ++d) sums[0] += row.ties.value[d];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Gradient by each count: its own tie's, and through N and X that of every tie behind it; 0 where no pair is near.
template <class T>
void spread(const Row& row, size_t n_levels, const double* gains, double scale, T* grads) {
    const Ties& ties = row.ties;
    std::fill_n(grads, ties.n * n_levels, T(0));
    double behind_N = 0, behind_X = 0;
    for (size_t d = row.span.end; d-- > row.span.first;) {
        const double by_c = ties.by_c[d] + behind_N, by_x = ties.by_x[d] + behind_X, by_s = ties.by_s[d];
        for (size_t v = 0; v < n_levels; ++v) grads[d * n_levels + v] = T(scale * (by_c + gains[v] * (by_x + gains[v] * by_s)));
        behind_N += ties.by_N[d], behind_X += ties.by_X[d];
    }
}

void ap_ties(Row& row, Form form, const SoftKernels& run) {
    const Ties& ties = row.ties;
    if (form == Form::exact) return run.exact_ap(ties, row.span);
    for (size_t d = row.span.first; d < row.span.end; ++d) {
        const double c = ties.c[d], p = ties.x[d], N = ties.N[d], P = ties.X[d];
        row.set(d, form == Form::simplified ? simplified_tie(c, p, N, P) : printed_tie(c, p, N, P, form == Form::cvpr ? N : N + 1));
    }
}

void gain_ties(Row& row, Form form, const Discounts& discounts) {
    const Ties& ties = row.ties;
    for (size_t d = row.span.first; d < row.span.end; ++d) {
        const double c = ties.c[d], gain = ties.x[d], N = ties.N[d];
        if (form == Form::exact) row.set(d, exact_gain(c, gain, N, discounts));
        else row.set(d, form == Form::simplified ? simplified_gain(c, gain, N) : printed_gain(c, gain, N));
    }
}

// Best possible gain: the highest levels first.
double ideal_gain(const int64_t* level_counts, size_t n_levels, const double* gains, const Discounts& discounts) {
    double ideal = 0, before = 0;
    for (size_t v = n_levels; v-- > 1;) {
        const double after = before + double(level_counts[v]);
        ideal += gains[v] * (discounts.sum(after) - discounts.sum(before));
        before = after;
    }
    return ideal;
}

constexpr size_t ROWS_A_TIME = 16;  // between two looks at whether to stop

// Runs of(row, level counts) -> the divisor of each query, after it has filled the ties; 0 leaves the query undefined.
template <class T, class Of>
bool for_rows(const SoftRows& rows, const Relaxed<T>& out, const double* gains, Workers& workers, Of of) {
    const size_t size = out.n_centres * out.n_levels, step = ROWS_A_TIME * workers.size();
    const SoftKernels& run = soft_kernels();
    return workers.run([&](size_t w) {
        Row row(out.n_centres);
        const Buffer<double> counts = zeroed<double>(size + 4 * out.n_levels);  // gather may read three ties further
        const Buffer<int64_t> level_counts = uninitialized<int64_t>(out.n_levels);
        for (size_t first = w * ROWS_A_TIME; first < out.n_queries && !workers.stopped(w); first += step) {
            for (size_t q = first; q < std::min(first + ROWS_A_TIME, out.n_queries); ++q) {
                row.span = rows.read(q, counts.get(), level_counts.get());
                run.gather(counts.get(), out.n_levels, gains, row.span, row.ties);
                const double divisor = of(row, level_counts.get());
                out.values[q] = divisor > 0 ? T(total(row) / divisor) : std::numeric_limits<T>::quiet_NaN();
                if (!out.grads) continue;
                if (divisor > 0) spread(row, out.n_levels, gains, 1 / divisor, out.grads + q * size);
                else std::fill_n(out.grads + q * size, size, T(0));
            }
        }
    });
}

}  // namespace

template <class T>
bool relaxed_ap(const SoftRows& rows, const Relaxed<T>& out, Form form, const double* relevance, Workers& workers) {
    const SoftKernels& run = soft_kernels();
    return for_rows(rows, out, relevance, workers, [&](Row& row, const int64_t* level_counts) {
        double expected = 0;
        for (size_t v = 0; v < out.n_levels; ++v) expected += relevance[v] * double(level_counts[v]);
        if (expected <= 0) return 0.0;
        ap_ties(row, form, run);
        return std::max(expected, 1.0);
    });
}

template <class T>
bool relaxed_ndcg(const SoftRows& rows, const Relaxed<T>& out, Form form, const double* gains, const DiscountSums& discount_sums,
                  Workers& workers) {
    const Discounts discounts{discount_sums};
    return for_rows(rows, out, gains, workers, [&](Row& row, const int64_t* level_counts) {
        const double ideal = ideal_gain(level_counts, out.n_levels, gains, discounts);
        if (ideal > 0) gain_ties(row, form, discounts);
        return ideal;
    });
}

template bool relaxed_ap(const SoftRows&, const Relaxed<float>&, Form, const double*, Workers&);
template bool relaxed_ap(const SoftRows&, const Relaxed<double>&, Form, const double*, Workers&);
template bool relaxed_ndcg(const SoftRows&, const Relaxed<float>&, Form, const double*, const DiscountSums&, Workers&);
template bool relaxed_ndcg(const SoftRows&, const Relaxed<double>&, Form, const double*, const DiscountSums&, Workers&);

}  // namespace rankbits
