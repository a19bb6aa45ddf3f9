"""Sentences made from numbers: what agrees with a paper, and what does not."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from rankbits.benchmark import ResultCell
from rankbits.papers._names import title_of

Cells = Mapping[str, Mapping[int, ResultCell]]  # by method and code length
Values = Mapping[str, Mapping[int, float]]
_MOST_NAMED = 4


def means(cells: Cells, metric: str) -> dict[str, dict[int, float]]:
    """The mean of a metric by method and code length, where there is one."""
    scores = {
        method: {bits: cell.score(metric) for bits, cell in row.items()}
        for method, row in cells.items()
    }
    return {
        method: {bits: score.mean for bits, score in row.items() if score is not None}
        for method, row in scores.items()
    }


def listed(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def leader(values: Values, what: str) -> str:
    """Who is best at how many of the lengths, by the four digits that are printed.

    >>> leader({"rsh": {8: 0.7, 16: 0.8}, "sh": {8: 0.6, 16: 0.9}}, "AP")
    'The highest AP is that of RSH at 8 bits (0.7000) and that of SH at 16 bits (0.9000).'
    >>> leader({"rsh": {8: 0.70001}, "sh": {8: 0.70002}}, "AP")
    'The highest AP is that of RSH and SH at 8 bits (0.7000).'
    """
    lengths = sorted({bits for row in values.values() for bits in row})
    won: dict[tuple[str, ...], list[str]] = {}
    best_scores: dict[tuple[str, ...], list[str]] = {}
    for bits in lengths:
        printed = {method: f"{row[bits]:.4f}" for method, row in values.items() if bits in row}
        best = max(printed.values(), key=float)
        winners = tuple(method for method, score in printed.items() if score == best)
        won.setdefault(winners, []).append(str(bits))
        best_scores.setdefault(winners, []).append(best)
    if len(values) < 2 or not won:
        return ""
    parts = [
        f"that of {listed([title_of(method) for method in winners])} at {listed(bits)} bits "
        f"({listed(best_scores[winners])})"
        for winners, bits in won.items()
    ]
    return f"The highest {what} is {listed(parts)}."


def order(values: Values, published: Values) -> str:
    """How many pairs of methods stand in the paper's order, and which do not.

    >>> order({"a": {8: 0.5}, "b": {8: 0.6}}, {"a": {8: 0.1}, "b": {8: 0.2}})
    "Of 1 pair of methods and length, 1 stands in the paper's order."
    """
    agreeing, against = 0, []
    for one, other in combinations([method for method in values if method in published], 2):
        for bits in sorted(values[one].keys() & values[other].keys()):
            theirs = published[one].get(bits, 0.0) - published[other].get(bits, 0.0)
            if bits not in published[one] or bits not in published[other] or theirs == 0:
                continue
            if (values[one][bits] - values[other][bits]) * theirs > 0:
                agreeing += 1
            else:
                higher, lower = (one, other) if theirs < 0 else (other, one)
                against.append((higher, lower, bits))
    total = agreeing + len(against)
    if not total:
        return ""
    pairs = "pair of methods and length" if total == 1 else "pairs of methods at one length"
    stand = "stands" if agreeing == 1 else "stand"
    return f"Of {total} {pairs}, {agreeing} {stand} in the paper's order{_exceptions(against)}."


def _exceptions(against: Sequence[tuple[str, str, int]]) -> str:
    """Pairs that stand the other way round here, most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for higher, lower, _ in against:
        counts[higher, lower] = counts.get((higher, lower), 0) + 1
    if not counts:
        return ""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    names = [
        f"{title_of(higher)} is above {title_of(lower)} at {n} length{'s' if n > 1 else ''}"
        for (higher, lower), n in ranked[:_MOST_NAMED]
    ]
    rest = len(ranked) - len(names)
    more = f", and {rest} more" if rest > 0 else ""
    return f"; here {', '.join(names)}{more}"


def compared(values: Values, published: Values) -> str:
    """By how much ours lie above or below the paper's values, for the methods of both."""
    pairs = [
        (values[method][bits] - row[bits], method, bits)
        for method, row in published.items()
        for bits in row
        if bits in values.get(method, {})
    ]
    if not pairs:
        return ""
    above = sum(difference > 0 for difference, _, _ in pairs)
    low, high = min(pairs), max(pairs)
    return (
        f"{above} of {len(pairs)} values lie above the paper's, which is on other features: from "
        f"{low[0]:+.3f} ({title_of(low[1])}, {low[2]} bits) to {high[0]:+.3f} "
        f"({title_of(high[1])}, {high[2]} bits)."
    )


def claim(text: str, held: Iterable[bool], cases_name: str = "cases") -> str:
    """A paper's claim and how often it holds here.

    >>> claim("RSH is best", [True, True, False])
    'The paper: RSH is best. Here: in 2 of 3 cases.'
    """
    cases = list(held)
    if not cases:
        return ""
    n_held, total = sum(cases), len(cases)
    if total == 1:
        verdict = "it is so" if n_held else "it is not so"
    elif n_held == total:
        verdict = f"in both {cases_name}" if total == 2 else f"in all {total} {cases_name}"
    else:
        verdict = f"in {n_held or 'none'} of {total} {cases_name}"
    return f"The paper: {text}. Here: {verdict}."
