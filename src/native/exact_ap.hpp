// The ties of a query and their AP in closed form, four ties at a time, compiled once an instruction set: include it from a file compiled for that set.
//
// A tie adds p (P + 1) Q + (p² - s) R, a = N + 1: Q the mean of ψ' over [a, a + c], R = (1 - a Q)/(c - 1) = (1 - a B)/c with B the
// mean of ψ' over [a + 1, a + c]. The first form of R has its removable pole at c = 1, the second at c = 0: each is used on its far
// side of 1/2. docs/math.md derives them.
#include "soft.hpp"

namespace rankbits {
namespace {

typedef double Doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t Longs __attribute__((vector_size(32), aligned(8), may_alias));

inline Doubles load(const double* p) { return *reinterpret_cast<const Doubles*>(p); }
inline void store(double* p, Doubles x) { *reinterpret_cast<Doubles*>(p) = x; }

// Sums of the lanes up to each, itself included.
inline Doubles running_sums(Doubles x) {
    const Doubles zero{};
    x += __builtin_shuffle(x, zero, Longs{4, 0, 1, 2});
    return x + __builtin_shuffle(x, zero, Longs{4, 4, 0, 1});
}

inline Doubles before(Doubles sums, double carried) { return __builtin_shuffle(sums, Doubles{}, Longs{4, 0, 1, 2}) + carried; }

// Counts and gained counts of four ties from the d-th on.
inline void sum_levels(const double* counts, size_t n_levels, const double* gains, size_t d, Doubles& c, Doubles& x, Doubles& s) {
    c = x = s = Doubles{};
    if (n_levels == 2) {
        const Doubles low = load(counts + 2 * d), high = load(counts + 2 * d + 4);
        const Doubles first = __builtin_shuffle(low, high, Longs{0, 2, 4, 6}), second = __builtin_shuffle(low, high, Longs{1, 3, 5, 7});
        c = first + second;
        x = gains[0] * first + gains[1] * second;
        s = gains[0] * gains[0] * first + gains[1] * gains[1] * second;
        return;
    }
    for (size_t lane = 0; lane < 4; ++lane)
        for (size_t v = 0; v < n_levels; ++v) {
            c[lane] += counts[(d + lane) * n_levels + v];
            x[lane] += gains[v] * counts[(d + lane) * n_levels + v];
            s[lane] += gains[v] * gains[v] * counts[(d + lane) * n_levels + v];
        }
}

// Four ties at a time: sums over ties wait for each other only from one four to the next.
void gather(const double* counts, size_t n_levels, const double* gains, Span span, const Ties& ties) {
    double N = 0, X = 0;
    for (size_t d = span.first; d < span.end; d += 4) {
        Doubles c, x, s;
        sum_levels(counts, n_levels, gains, d, c, x, s);
        if (d + 4 > span.end) {
            const Longs is_tie = Longs{0, 1, 2, 3} < int64_t(span.end - d);
            c = is_tie ? c : Doubles{}, x = is_tie ? x : Doubles{}, s = is_tie ? s : Doubles{};
        }
        const Doubles sums = running_sums(c), gained = running_sums(x), N_before = before(sums, N);
        store(ties.c + d, c);
        store(ties.x + d, x);
        store(ties.s + d, s);
        store(ties.N + d, N_before);
        store(ties.X + d, before(gained, X));
        store(ties.a + d, N_before + 1.0);
        N += sums[3], X += gained[3];
    }
    ties.a[span.end] = N + 1;
}

// ln(w) for w >= 1: w = 2^e * m with m in [1, 2), then ln m = 2 atanh(y), y = (m - √2)/(m + √2), and ln √2 back.
inline Doubles log_of(Doubles w) {
    const Longs bits = reinterpret_cast<Longs&>(w);
    const Longs magic = Longs{} + 0x4330000000000000;
    Longs exponent_bits = ((bits >> 52) & 0x7ff) | magic;
    Longs mantissa_bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
    const Doubles exponent = reinterpret_cast<Doubles&>(exponent_bits) - (4503599627370496.0 + 1023.0);
    const Doubles m = reinterpret_cast<Doubles&>(mantissa_bits);
    const double root = 1.41421356237309504880;
    const Doubles y = (m - root) / (m + root), y2 = y * y;
    Doubles sum = y2 * (1.0 / 23) + 1.0 / 21;
    for (int odd = 19; odd >= 1; odd -= 2) sum = sum * y2 + 1.0 / odd;
    return (exponent + 0.5) * 0.69314718055994530942 + 2.0 * y * sum;
}

// Bernoulli numbers B_2k / (2k): coefficients of the asymptotic series ψ(w) = ln w - 1/(2w) - sum over k of B_2k / (2k w^2k).
constexpr double BERNOULLI[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
constexpr int N_BERNOULLI = 7;
constexpr int SHIFT = 8;

// ψ^(order) at x by SHIFT steps of the recurrence and the asymptotic series, all five orders at once.
void polygammas(const double* x, size_t n, size_t stride, double* out) {
    for (size_t i = 0; i < n; i += 4) {
        const Doubles at = load(x + i);
        Doubles s0{}, s1{}, s2{}, s3{}, s4{};
        const int shift = at[0] < SHIFT + 1 ? SHIFT : 0;
        for (int k = 0; k < shift; ++k) {
            const Doubles r = 1.0 / (at + double(k)), r2 = r * r;
            s0 += r;
            s1 += r2;
            s2 += r2 * r;
            s3 += r2 * r2;
            s4 += r2 * r2 * r;
        }
        const Doubles w = at + double(shift), u = 1.0 / w, u2 = u * u;
        Doubles t0{}, t1{}, t2{}, t3{}, t4{};
        for (int k = N_BERNOULLI; k >= 1; --k) {  // Horner in 1/w^2; derivatives bring down 2k, 2k+1, ...
            const double b = BERNOULLI[k - 1], e = 2.0 * k;
            t0 = t0 * u2 + b;
            t1 = t1 * u2 + b * e;
            t2 = t2 * u2 + b * e * (e + 1);
            t3 = t3 * u2 + b * e * (e + 1) * (e + 2);
            t4 = t4 * u2 + b * e * (e + 1) * (e + 2) * (e + 3);
        }
        const Doubles u3 = u2 * u, u4 = u2 * u2, u5 = u4 * u, u6 = u4 * u2;
        const Doubles psi[5] = {
            log_of(w) - 0.5 * u - t0 * u2 - s0,
            u + 0.5 * u2 + t1 * u3 + s1,
            -u2 - u3 - t2 * u4 - 2.0 * s2,
            2.0 * u3 + 3.0 * u4 + t3 * u5 + 6.0 * s3,
            -6.0 * u4 - 12.0 * u5 - t4 * u6 - 24.0 * s4,
        };
        for (int order = 0; order < 5; ++order) store(out + order * stride + i, psi[order]);
    }
}

struct Ends {  // ψ ... ψ'''' at one end of an interval
    Doubles psi[5];
};

struct Mean {  // of ψ' over [x, x + t], and its derivatives
    Doubles value, by_t, by_x;
};

// Differences over t lose digits where t is small beside x: there, Hermite quadrature over the two ends.
inline Mean mean_slope(Doubles x, Doubles t, const Ends& f, const Ends& g) {
    const Doubles *a = f.psi, *b = g.psi;
    const Longs is_small = (t < 0.01 * x) & (t > -0.01 * x);
    const Doubles by = 1.0 / (is_small ? Doubles{} + 1.0 : t), mean = (b[0] - a[0]) * by;
    const Doubles small_mean = (a[1] + b[1]) * 0.5 + t * (3.0 / 28) * (a[2] - b[2]) + t * t * (1.0 / 84) * (a[3] + b[3]) +
                               t * t * t * (1.0 / 1680) * (a[4] - b[4]);
    const Doubles by_x = (a[2] + b[2]) * 0.5 + t * (1.0 / 10) * (a[3] - b[3]) + t * t * (1.0 / 120) * (a[4] + b[4]);
    const Doubles by_t = a[2] * (1.0 / 7) + b[2] * (5.0 / 14) + t * (a[3] * (4.0 / 105) - b[3] * (13.0 / 210)) +
                         t * t * (a[4] * (1.0 / 280) + b[4] * (1.0 / 210));
    return {is_small ? small_mean : mean, is_small ? by_t : (b[1] - mean) * by, is_small ? by_x : (b[1] - a[1]) * by};
}

// ψ^(k)(x + 1) from ψ^(k)(x).
inline Ends step_up(const Ends& f, Doubles x) {
    const Doubles r = 1.0 / x, r2 = r * r, r3 = r2 * r;
    return {{f.psi[0] + r, f.psi[1] - r2, f.psi[2] + 2.0 * r3, f.psi[3] - 6.0 * r2 * r2, f.psi[4] + 24.0 * r2 * r3}};
}

// Fills the ties of the span from ties.c, x, s, N, X: value and derivatives by c, x, s, N, X.
void exact_ap(const Ties& ties, Span span) {
    polygammas(ties.a + span.first, span.end - span.first + 1, ties.stride, ties.psi + span.first);
    const auto at = [&](size_t d) {
        const double* psi = ties.psi + d;
        return Ends{{load(psi), load(psi + ties.stride), load(psi + 2 * ties.stride), load(psi + 3 * ties.stride), load(psi + 4 * ties.stride)}};
    };
    for (size_t d = span.first; d < span.end; d += 4) {
        const Doubles c = load(ties.c + d), p = load(ties.x + d), a = load(ties.a + d), P1 = load(ties.X + d) + 1.0, pairs = p * p - load(ties.s + d);
        const Ends f = at(d), g = at(d + 1);
        const Mean Q = mean_slope(a, c, f, g), B = mean_slope(a + 1.0, c - 1.0, step_up(f, a), g);
        const Longs is_low = c < 0.5;
        const Doubles by = 1.0 / (is_low ? c - 1.0 : c);
        const Mean M = {is_low ? Q.value : B.value, is_low ? Q.by_t : B.by_t, is_low ? Q.by_x : B.by_x};
        const Doubles R = (1.0 - a * M.value) * by, R_c = (-a * M.by_t - R) * by, R_a = (-M.value - a * M.by_x) * by;
        store(ties.value + d, p * P1 * Q.value + pairs * R);
        store(ties.by_c + d, p * P1 * Q.by_t + pairs * R_c);
        store(ties.by_x + d, P1 * Q.value + 2.0 * p * R);
        store(ties.by_s + d, -R);
        store(ties.by_N + d, p * P1 * Q.by_x + pairs * R_a);
        store(ties.by_X + d, p * Q.value);
    }
}

}  // namespace
}  // namespace rankbits
