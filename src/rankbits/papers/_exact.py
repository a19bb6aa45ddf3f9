"""Exact numbers that need no data: a tied list, orthodromes of a code space, LGAP by hand.

Each function returns what goes into the file of its exhibit, ready for JSON. They are computed, not
copied: by the metrics of rankbits, with the brute force beside them that must agree.
"""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from rankbits import metrics
from rankbits.affinity import levels
from rankbits.codes import BinaryCodes
from rankbits.histogram import TieHistogram

_LISTS = ((6, 3), (10, 5))  # items and relevant ones: TALR's toy list, and that of mLGAP's Figure 2
_BITS = 12


def tied_list() -> dict[str, Any]:
    """AP of a list where all items are tied: best, worst, exact, and the mean over all orders."""
    return {"lists": [_one_list(n_items, n_relevant) for n_items, n_relevant in _LISTS]}


def _one_list(n_items: int, n_relevant: int) -> dict[str, Any]:
    tie = [n_items - n_relevant, n_relevant]
    hist = TieHistogram(np.array([[tie, [0, 0]]]), np.array([0, 1]))
    worst, best = (float(bound[0]) for bound in metrics.average_precision_bounds(hist))
    orders = [_ap(ranks) for ranks in combinations(range(1, n_items + 1), n_relevant)]
    return {
        "items": n_items,
        "relevant": n_relevant,
        "best": best,
        "worst": worst,
        "exact": float(metrics.average_precision(hist)[0]),
        "mean_of_orders": float(np.mean(orders)),
        "orders": len(orders),
    }


def _ap(ranks: tuple[int, ...]) -> float:
    """AP of one order, by its definition."""
    return float(np.mean([hits / rank for hits, rank in enumerate(ranks, start=1)]))


def orthodromes() -> dict[str, Any]:
    """Two orthodromes of 24 codes of 12 bits whose classes rank perfectly, as full as they can be.

    All classes have diameter 1; or one of them has diameter 3.
    """
    even = _classes_around([2] * 8)
    uneven = _classes_around([4, 2, 2, 2, 2, 2])
    return {
        "bits": _BITS,
        "circles": [
            {"title": "all classes of diameter 1", **_judged_circle(even)},
            {"title": "one class of diameter 3", **_judged_circle(uneven)},
        ],
        "bound": 2 / 3,
    }


def _classes_around(sizes: list[int]) -> list[int]:
    """Classes of these numbers of codes in a row, apart by the free codes that ranking needs.

    A class of n codes in a row has the diameter n - 1, and no code of another class may be within
    it: between two classes there are as many free codes as the larger diameter.
    """
    circle: list[int] = []
    for number, size in enumerate(sizes):
        following = sizes[(number + 1) % len(sizes)]
        circle += [number] * size + [-1] * (max(size, following) - 1)
    return (circle + [-1] * (2 * _BITS))[: 2 * _BITS]


def orthodrome_codes() -> np.ndarray:
    """The 24 codes of an orthodrome: bits are set one after the other, then cleared."""
    steps = np.arange(2 * _BITS)
    places = np.arange(_BITS)
    return ((steps[:, None] > places) & (steps[:, None] <= places + _BITS)).astype(np.uint8)


def _judged_circle(classes: list[int]) -> dict[str, Any]:
    """The circle with what brute force says: share of codes used, and AP of its own ranking."""
    used = np.flatnonzero(np.array(classes) >= 0)
    codes = orthodrome_codes()[used]
    labels = np.array(classes)[used]
    distance = (codes[:, None] != codes).sum(axis=2)
    is_same = labels[:, None] == labels
    within = np.where(is_same, distance, 0).max(axis=1)
    to_others = np.where(is_same, 2 * _BITS, distance).min(axis=1)
    return {
        "classes": classes,
        "used": len(used),
        "share": len(used) / len(classes),
        "is_perfect": bool((within < to_others).all()),
    }


def lgap_by_hand() -> dict[str, Any]:
    """The example of LGAP@2 with 4 bits: ball by ball, and by the metric itself."""
    near_codes = sorted(range(16), key=lambda code: (code.bit_count(), code))
    items, relevant = (
        dict.fromkeys(near_codes, 0) | dict(zip(near_codes, counts, strict=False))
        for counts in ((1, 2, 1, 1, 1, 2, 1, 1), (1, 1, 1, 1, 0, 1, 0, 0))
    )
    balls = [_ball(radius, items, relevant) for radius in range(3)]
    by_hand = sum(ball["precision"] * ball["evenness"] for ball in balls) / len(balls)
    return {"bits": 4, "balls": balls, "by_hand": by_hand, "metric": _by_metric(items, relevant)}


def _ball(radius: int, items: dict[int, int], relevant: dict[int, int]) -> dict[str, Any]:
    codes = [code for code in items if code.bit_count() <= radius]
    counts, hits = [items[code] for code in codes], [relevant[code] for code in codes]
    n_codes = sum(comb(4, distance) for distance in range(radius + 1))
    return {
        "items": counts,
        "relevant": hits,
        "precision": sum(hits) / sum(counts),
        "evenness": sum(counts) / (max(counts) * n_codes),
    }


def _by_metric(items: dict[int, int], relevant: dict[int, int]) -> float:
    codes = [code for code, n in items.items() for _ in range(n)]
    levels_of = [int(k < relevant[code]) for code, n in items.items() for k in range(n)]
    database = BinaryCodes.from_bits([[code >> bit & 1 for bit in range(4)] for code in codes])
    query = BinaryCodes.from_bits([[0, 0, 0, 0]])
    return float(metrics.lgap(query, database, levels(np.array([levels_of])), radius=2)[0])
