"""Numbers in words: the sentences of the pages, built from audits alone."""

from collections.abc import Sequence
from itertools import combinations, pairwise

from rankbits.evaluation import Audit

EXPLANATIONS = {
    "worst": "In each tie the irrelevant items come first. No tie-breaker can print less.",
    "class": (
        "A stable sort keeps the stored order inside a tie. Where the data set is stored class by "
        "class, queries of the first class see their own items first in every tie and those of the "
        "last class see them last. The mean may hide it; single queries do not."
    ),
    "index": (
        "A stable sort keeps the order of the rows, so the score depends on how the file was "
        "written."
    ),
    "argsort": (
        "numpy's default sort is not stable: the order inside a tie depends on the version, the "
        "machine and the number of items."
    ),
    "trec": (
        "trec_eval ignores the order of a run and sorts by score, then by document id as a string, "
        "descending: item 9 comes before item 11."
    ),
    "sklearn": (
        "Each tie is one threshold of the precision-recall curve: all of its relevant items get "
        "the precision at its end. That is less than the expectation as long as precision falls "
        "along the ranking."
    ),
    "shuffled": (
        "A random order scatters around the exact value; the mean over many seeds approaches it."
    ),
    "best": "In each tie the relevant items come first. No tie-breaker can print more.",
}
LABELS = {  # short names, in the order of the tables
    "worst": "worst case",
    "class": "sorted by class",
    "index": "index order",
    "argsort": "numpy argsort",
    "trec": "trec_eval",
    "sklearn": "scikit-learn",
    "shuffled": "shuffled",
    "best": "best case",
}
_PRINTED = [key for key in LABELS if key not in ("worst", "best")]


def signed(points: float) -> str:
    """Points with a sign and two decimals; nothing that rounds to zero has a sign.

    >>> signed(-1.234), signed(0.5), signed(-0.001)
    ('−1.23', '+0.50', '0.00')
    """
    text = f"{points:+.2f}".replace("-", "\N{MINUS SIGN}")
    return "0.00" if text[1:] == "0.00" else text


def decimals(low: float, high: float) -> int:
    """Decimals that tell two scores apart, three at least and six at most.

    >>> decimals(0.31, 0.42), decimals(0.4120, 0.4123), decimals(0.5, 0.5)
    (3, 5, 3)
    """
    places = 3
    while places < 6 and 0 < high - low < 10 ** (1 - places):
        places += 1
    return places


def headline(audit: Audit) -> str:
    """The finding of an audit in two sentences."""
    ap = audit.ap
    places = decimals(ap.worst, ap.best)
    exact, low, high = (f"{value:.{places}f}" for value in (ap.expected, ap.worst, ap.best))
    if ap.worst == ap.best:
        return f"These codes score AP {exact}. No order of the tied items can change that."
    return (
        f"These codes score AP {exact}. Depending on how ties are broken, "
        f"a tool may print anything from {low} to {high}."
    )


def printed_range(audit: Audit) -> str:
    """What the audited tools print, and the farthest of them."""
    rows = [row for row in audit.ap.rows if row.key in _PRINTED]
    low, high = min(row.value for row in rows), max(row.value for row in rows)
    places = decimals(low, high)
    farthest = max(rows, key=lambda row: abs(row.points))
    single = max(rows, key=lambda row: row.largest_points)
    return (
        f"On this database common tools print {low:.{places}f} to {high:.{places}f}; "
        f"{LABELS[farthest.key]} is farthest off, by {signed(farthest.points)} points. A single "
        f"query is off by up to {single.largest_points:.1f} points ({LABELS[single.key]})."
    )


def ranking(audits: Sequence[Audit]) -> str:
    """The exact AP of all codes, the best first, with the digits that tell them apart."""
    ranked = sorted(audits, key=lambda audit: -audit.ap.expected)
    places = max(
        (decimals(low.ap.expected, high.ap.expected) for high, low in pairwise(ranked)), default=3
    )
    first, *others = (f"“{audit.name}” {audit.ap.expected:.{places}f}" for audit in ranked)
    name, score = first.rsplit(" ", 1)
    return f"{name} scores AP {', '.join([score, *others])}."


def closest_pair(audits: Sequence[Audit]) -> tuple[Audit, Audit] | None:
    """The two codes nearest in AP, the better first, among those whose ranges overlap."""
    pairs = combinations(sorted(audits, key=lambda audit: -audit.ap.expected), 2)
    overlapping = [(a, b) for a, b in pairs if b.ap.best > a.ap.worst]
    return min(overlapping, key=lambda ab: ab[0].ap.expected - ab[1].ap.expected, default=None)


def comparison(audits: Sequence[Audit]) -> str:
    """Whether ties alone could reorder these codes."""
    pair = closest_pair(audits)
    if pair is None:
        return "No two ranges overlap: whatever breaks the ties, the order of these codes stands."
    first, second = pair
    gap = 100 * (first.ap.expected - second.ap.expected)
    moved = max(100 * (audit.ap.best - audit.ap.worst) for audit in pair)
    return (
        f"“{first.name}” beats “{second.name}” by {gap:.2f} points of AP. "
        f"Tie-breaking alone can move one of the two scores by {moved:.2f}."
    )


def reversal(audits: Sequence[Audit]) -> str:
    """Who prints the lesser of the closest codes as the better; nothing if nobody does."""
    pair = closest_pair(audits)
    if pair is None:
        return ""
    first, second = ({row.key: row.value for row in audit.ap.rows} for audit in pair)
    wrong = [key for key in _PRINTED if first.get(key, 0.0) < second.get(key, 0.0)]
    if not wrong:
        return (
            "The tools audited here still agree on which is better; the ranges say they need not."
        )
    listed = "; ".join(
        f"{LABELS[key]} prints {first[key]:.4f} for the first and {second[key]:.4f} for the second"
        for key in wrong
    )
    return f"How a tool treats ties is enough to turn their order round: {listed}."
