"""SDH the plain way: sums over rows, classes and bits one by one. Tests only."""


def loss(Y, F, B, W, P, classifier_penalty, map_weight, ridge):
    """|Y - B W|² + λ |W|² + ν (|B - F P|² + δ |P|²), term by term."""
    total = classifier_penalty * sum(w**2 for w in W.ravel())
    total += map_weight * ridge * sum(p**2 for p in P.ravel())
    for y, f, b in zip(Y, F, B, strict=True):
        total += sum(
            (y[c] - sum(b[k] * W[k, c] for k in range(len(b)))) ** 2 for c in range(len(y))
        )
        mapped = [sum(f[j] * P[j, k] for j in range(len(f))) for k in range(len(b))]
        total += map_weight * sum((b[k] - mapped[k]) ** 2 for k in range(len(b)))
    return total


def cycle(B, M, Q):
    """One cycle of bitwise descent of tr(B M B') - 2 tr(B Q'), row by row.

    Each bit takes its cheaper sign, and 1 if both cost the same.
    """
    B = B.copy()
    for row, q in zip(B, Q, strict=True):
        for k in range(len(row)):
            costs = {}
            for sign in (1.0, -1.0):
                row[k] = sign
                costs[sign] = row @ M @ row - 2 * row @ q
            row[k] = 1.0 if costs[1.0] <= costs[-1.0] else -1.0
    return B
