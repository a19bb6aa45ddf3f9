"""Density sensitive hashing the plain way: all pairs of groups, and entropies. Tests only."""

import math


def neighbors(centers, n_nearest):
    """The nearest other centers of each center; of equal ones the first."""
    lists = []
    for i, center in enumerate(centers):
        others = [j for j in range(len(centers)) if j != i]
        others.sort(key=lambda j: (round(math.dist(center, centers[j]), 9), j))
        lists.append(set(others[:n_nearest]))
    return lists


def candidates(centers, n_nearest, n_least, is_mutual):
    """Pairs of groups that are neighbors, with more neighbors if they are too few."""
    while True:
        near = neighbors(centers, n_nearest)
        pairs = []
        for i in range(len(centers)):
            for j in range(i + 1, len(centers)):
                sides = (j in near[i], i in near[j])
                if all(sides) if is_mutual else any(sides):
                    pairs.append((i, j))
        if len(pairs) >= n_least:
            return pairs
        n_nearest += 1


def entropy_of(centers, sizes, pair):
    """Entropy of the mass on the two sides of the plane halfway between two centers."""
    one, other = (centers[k] for k in pair)
    near_one = sum(
        size
        for center, size in zip(centers, sizes, strict=True)
        if math.dist(center, one) < math.dist(center, other)
    )
    shares = (near_one / sum(sizes), 1 - near_one / sum(sizes))
    return -sum(share * math.log(share) for share in shares if share > 0)
