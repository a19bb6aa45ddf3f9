"""MLH the plain way: all pairs of codes. Exponential time: tests only."""

from itertools import product


def loss(g, h, is_similar, radius, slope):
    """The hinge around the radius, bit by bit."""
    distance = sum(a != b for a, b in zip(g, h, strict=True))
    if is_similar:
        return max(0, distance - radius + 1)
    return slope * max(0, radius - distance + 1)


def largest_value(u, v, is_similar, radius, slope):
    """The largest loss(g, h) + g'u + h'v over all pairs of codes."""
    codes = list(product((-1, 1), repeat=len(u)))
    return max(
        loss(g, h, is_similar, radius, slope)
        + sum(a * x for a, x in zip(g, u, strict=True))
        + sum(b * x for b, x in zip(h, v, strict=True))
        for g in codes
        for h in codes
    )
