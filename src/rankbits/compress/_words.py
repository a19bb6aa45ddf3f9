"""The sentences of a result, built from its numbers alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Report = Callable[[str], None]
KINDS = {"bits": "queries in bits", "real": "real-valued queries"}


def sentence_of(candidate: Mapping[str, Any]) -> str:
    """A recommendation in one sentence."""
    metric = candidate["metric"]
    kept = candidate["metrics"][metric]
    words = (
        f"{name_of(candidate)}: keeps {percent(kept['kept'])} "
        f"({_whole(kept['low'])}–{_whole(kept['high'])}) of {metric}, "
        f"{microseconds(candidate['microseconds'])} a query"
    )
    if candidate["holds"]:
        return f"{words}."
    return (
        f"Nothing tried keeps {percent(candidate['keep'])} of {metric} with confidence; "
        f"nearest is {words}."
    )


def name_of(candidate: Mapping[str, Any]) -> str:
    """What a candidate is, in a few words.

    >>> name_of({"bytes": 16, "method": "itq", "query": "real", "pool": 50})
    '16 bytes, itq, real-valued queries, pool 50'
    """
    pool = "no re-ranking" if candidate["pool"] is None else f"pool {candidate['pool']:,}"
    n = candidate["bytes"]
    unit = "byte" if n == 1 else "bytes"
    return f"{n} {unit}, {candidate['method']}, {KINDS[candidate['query']]}, {pool}"


def advice_of(
    candidate: Mapping[str, Any], table: Sequence[Mapping[str, Any]], n_queries: int
) -> str:
    """What would keep enough, where nothing that was tried does."""
    kept, keep = candidate["metrics"][candidate["metric"]], candidate["keep"]
    if kept["kept"] > keep:
        reach = (kept["kept"] - kept["low"]) / (kept["kept"] - keep)
        n_needed = int(round(n_queries * reach**2, -1))
        return (
            f"{percent(kept['kept'])} is enough, but {n_queries} queries cannot vouch for it: some "
            f"{n_needed:,} queries like these would, if the value stays."
        )
    ours = [row for row in table if not row["is_peer"]]
    most, deepest = (max(row[key] or 0 for row in ours) for key in ("bytes", "pool"))
    return (
        f"More bytes than {most} would keep more, and so would re-ranking more than "
        f"{deepest:,} items."
    )


def counted(n: int, one: str, many: str) -> str:
    """A number and the words for one or for many.

    >>> counted(1, "query is zero", "queries are zero"), counted(2, "item", "items")
    ('1 query is zero', '2 items')
    """
    return f"{n:,} {one if n == 1 else many}"


def percent(share: float) -> str:
    """A share in percent, with a digit more where it is near to all.

    >>> percent(0.873), percent(0.9951), percent(1.0)
    ('87 %', '99.5 %', '100 %')
    """
    return f"{_whole(share)} %"


def microseconds(value: float) -> str:
    """A time of a query, in the unit that suits it.

    >>> microseconds(38.2), microseconds(2345.0)
    ('38 µs', '2.3 ms')
    """
    return f"{value:.0f} µs" if value < 1000 else f"{value / 1000:.1f} ms"


def _whole(share: float) -> str:
    number = 100 * share
    is_near = 99 <= number < 100 and round(number, 1) < 100
    return f"{number:.1f}" if is_near and round(number, 1) != 99 else f"{number:.0f}"
