"""Losses of pairs and triplets the plain way: loops over lists of floats, one term at a time.

A query meets all items but its own (`own[i]`, -1 for none). `similar[i][j]` is 0 or 1.
"""

import math


def logistic(x):
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def met(own, n_items):
    """Pairs (query, item) that count."""
    return [(i, j) for i in range(len(own)) for j in range(n_items) if j != own[i]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def quantisation(codes):
    """Mean over bits of the squared distance to the nearer of -1 and +1."""
    errors = [min((x - 1) ** 2, (x + 1) ** 2) for code in codes for x in code]
    return sum(errors) / len(errors)


def dpsh(queries, items, similar, own, eta, factor=0.5):
    """Minus the mean log-likelihood of the pairs, Θ = factor * u_i · u_j, and the penalty."""
    terms = []
    for i, j in met(own, len(items)):
        theta = factor * dot(queries[i], items[j])
        terms.append(logistic(-theta) if similar[i][j] else logistic(theta))
    return sum(terms) / len(terms) + eta * quantisation(queries)


def hashnet(queries, items, similar, own, slope, overlap=None):
    """Similar and dissimilar pairs weigh the same in all; a pair's part is c, or 1."""
    pairs = met(own, len(items))
    n_similar = sum(similar[i][j] for i, j in pairs)
    of_kind = {1: n_similar, 0: len(pairs) - n_similar}
    total = weights = 0.0
    for i, j in pairs:
        c = overlap[i][j] if overlap is not None and similar[i][j] else 1.0
        weight = c * len(pairs) / of_kind[similar[i][j]]
        theta = slope * dot(queries[i], items[j]) / len(queries[i])
        total += weight * (logistic(theta) - similar[i][j] * theta)
        weights += weight
    return total / weights


def jaccard(one, other):
    """Shared tags over the tags that either has; rows of 0 and 1."""
    tags, others = ({k for k, has in enumerate(row) if has} for row in (one, other))
    return len(tags & others) / len(tags | others)


def dtsh(queries, items, similar, own, margin, eta):
    """Mean over queries of the mean over their triplets; margin in bits."""
    values = []
    for i in range(len(queries)):
        theta = {j: dot(queries[i], items[j]) / 2 for _, j in met([own[i]], len(items))}
        near, far = ([j for j in theta if similar[i][j] == kind] for kind in (1, 0))
        terms = [logistic(theta[n] - theta[p] + margin) for p in near for n in far]
        if terms:
            values.append(sum(terms) / len(terms))
    return (sum(values) / len(values) if values else 0.0) + eta * quantisation(queries)


def mihash(queries, items, similar, own, n_bins):
    """Minus the mean over queries of sum p(d, v) log(p(d, v) / (p(d) p(v))), in nats.

    A pair at distance z, in bin spacings, gives bin d the share max(0, 1 - |z - d|).
    """
    values = []
    for i in range(len(queries)):
        joint = [[0.0, 0.0] for _ in range(n_bins + 1)]
        for _, j in met([own[i]], len(items)):
            b = len(queries[i])
            z = (b - dot(queries[i], items[j])) / 2 * n_bins / b
            for d in range(n_bins + 1):
                joint[d][similar[i][j]] += max(0.0, 1 - abs(z - d))
        information = _information(joint)
        if information is not None:
            values.append(information)
    return -sum(values) / len(values) if values else 0.0


def _information(joint):
    """Of a table of counts with two columns; None where a column is empty."""
    columns = [sum(row[v] for row in joint) for v in (0, 1)]
    if min(columns) == 0:
        return None
    n = sum(columns)
    return sum(
        row[v] / n * math.log(row[v] * n / (sum(row) * columns[v]))
        for row in joint
        for v in (0, 1)
        if row[v] > 0
    )
