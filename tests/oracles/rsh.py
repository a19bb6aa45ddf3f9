"""RSH the plain way: the triplet tensor, pair by pair, and searches item by item. Tests only."""

import numpy as np


def triplet_tensor(levels):
    """S of shape (M, N, N), Eq. 2 of the paper: 1 where i is ranked above j, -1 below, 0 level."""
    n_queries, n = levels.shape
    tensor = np.zeros((n_queries, n, n), int)
    for m in range(n_queries):
        for i in range(n):
            for j in range(n):
                tensor[m, i, j] = int(levels[m, i] > levels[m, j]) - int(
                    levels[m, i] < levels[m, j]
                )
    return tensor


def ranking_matrix(rows, queries, tensor):
    """B = sum_m p_m q_m' with p_m = sum_ij (x_i - x_j) S_mij, all sums written out."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for q, S in zip(queries, tensor, strict=True):
        p = np.zeros(rows.shape[1])
        for i, x in enumerate(rows):
            for j, other in enumerate(rows):
                p += (x - other) * S[i, j]
        total += np.outer(p, q)
    return total


def without_own(tensor, own):
    """The tensor of lists that leave the query itself out."""
    kept = tensor.astype(float)
    for m, item in enumerate(own):
        kept[m, item, :] = kept[m, :, item] = 0
    return kept


def weighted(tensor, lead):
    """Triplets of i above j, and the same from j's side, by 1 + exp(lead_i - lead_j)."""
    kept = tensor.astype(float)
    for m, S in enumerate(tensor):
        kept[m] = S * (1 + np.exp(np.subtract.outer(lead[m], lead[m]) * S))
    return kept


def nearest(queries, database, radius, k):
    """(distance, id) of every item in the table that has it nearest, for each query, sorted."""
    found = []
    for q in range(len(queries[0])):
        pairs = []
        for i in range(len(database[0])):
            apart = [
                int((mine[q] != theirs[i]).sum())
                for mine, theirs in zip(queries, database, strict=True)
            ]
            if radius is None or min(apart) <= radius:
                pairs.append((min(apart), i))
        found.append(sorted(pairs)[:k])
    return found
