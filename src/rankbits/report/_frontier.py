"""The figures of a compression: quality kept against bytes, against time, and against the pool.

A candidate is a row of `result.json`: a method, bytes, a kind of query and a pool. Up and to the
left is better everywhere; the ring marks what is recommended.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

Candidate = Mapping[str, Any]
_LINES = (
    ("relevant", "o"),
    ("irrelevant", "s"),
    ("trec", "^"),
    ("sklearn", "D"),
    ("argsort", "v"),
    ("shuffled", "P"),
)
_PEER = "worst"
_MOST_METHODS = len(_LINES)


def frontier(candidates: Sequence[Candidate], metric: str) -> list[Candidate]:
    """The candidates of ours that nothing beats, in order of bytes and pool.

    Parameters
    ----------
    candidates : sequence of dict
        Rows of `result.json`.
    metric : str
        The metric whose share kept decides.

    Returns
    -------
    list of dict
        Those than which no other keeps more with as few bytes and as small a pool.
    """
    ours = [row for row in candidates if not row["is_peer"]]
    ours.sort(key=lambda row: (row["bytes"], row["pool"] or 0, -_kept(row, metric)))
    best: list[Candidate] = []
    for row in ours:
        rivals = [other for other in best if (other["pool"] or 0) <= (row["pool"] or 0)]
        if all(_kept(other, metric) < _kept(row, metric) for other in rivals):
            best.append(row)
    return best


def bytes_plot(result: Mapping[str, Any], *, narrow: bool = False, name: str = "bytes") -> str:
    """Quality kept without re-ranking against bytes, a line for each method and kind of query.

    Parameters
    ----------
    result : dict
        The content of `result.json`.
    narrow : bool, default=False
        Whether the figure is for a narrow screen.
    name : str, default="bytes"
        What the parts of the figure are called within a page.
    """
    metric, rows = _metric(result), [row for row in result["candidates"] if row["pool"] is None]
    lines: dict[tuple[str, str], list[Candidate]] = {}
    for row in rows:
        lines.setdefault((row["method"], row["query"]), []).append(row)
    styles = _styles(result["candidates"])

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for (method, query), line in lines.items():
            axes.plot(
                [row["bytes"] for row in line],
                [100 * _kept(row, metric) for row in line],
                linestyle="-" if query == "real" else ":",
                label=f"{plain(method, 28)}, {query}",
                **styles[method],
            )
        lengths = sorted({row["bytes"] for row in rows})
        axes.set_xscale("log", base=2)
        axes.set_xticks(lengths, [str(length) for length in lengths], minor=False)
        axes.minorticks_off()
        axes.set_xlabel("bytes of a code")
        _finish(axes, figure, result, narrow)

    return draw(name, _size(narrow), paint, f"{metric} kept without re-ranking, by bytes.")


def time_plot(result: Mapping[str, Any], *, narrow: bool = False, name: str = "time") -> str:
    """Quality kept against microseconds a query: every candidate a dot, the recommended one ringed.

    Parameters
    ----------
    result : dict
        The content of `result.json`.
    narrow : bool, default=False
        Whether the figure is for a narrow screen.
    name : str, default="time"
        What the parts of the figure are called within a page.
    """
    metric, chosen = _metric(result), result["recommendation"]
    lengths = sorted({row["bytes"] for row in result["candidates"]})

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        ours = [row for row in result["candidates"] if not row["is_peer"]]
        for place, length in enumerate(lengths):
            dots = [row for row in ours if row["bytes"] == length]
            token, mark = _LINES[place % len(_LINES)]
            axes.plot(
                [row["microseconds"] for row in dots],
                [100 * _kept(row, metric) for row in dots],
                mark,
                color=COLOURS[token],
                markersize=4,
                alpha=0.75,
                label=f"{length} bytes",
            )
        ring = {"markersize": 13, "markerfacecolor": "none", "markeredgewidth": 1.6}
        kept = 100 * chosen["metrics"][metric]["kept"]
        axes.plot([chosen["microseconds"]], [kept], "o", color=COLOURS["ink"], **ring)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.tick_params(axis="x", which="minor", length=0, labelbottom=False)
        axes.set_xlabel("microseconds a query, one thread")
        _finish(axes, figure, result, narrow)

    return draw(name, _size(narrow), paint, f"{metric} kept, by microseconds a query.")


def pool_plot(result: Mapping[str, Any], *, narrow: bool = False, name: str = "pool") -> str:
    """Quality kept against the pool by the best way of each length, with its interval.

    Parameters
    ----------
    result : dict
        The content of `result.json`.
    narrow : bool, default=False
        Whether the figure is for a narrow screen.
    name : str, default="pool"
        What the parts of the figure are called within a page.
    """
    metric = _metric(result)
    lines = best_lines(result["candidates"], metric)
    pools = sorted({row["pool"] or 0 for line in lines.values() for row in line})

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for place, (label, line) in enumerate(lines.items()):
            token, mark = _LINES[place % len(_LINES)]
            shift = 0.06 * (place - (len(lines) - 1) / 2)
            places = [pools.index(row["pool"] or 0) + shift for row in line]
            kept, low, high = (
                [100 * row["metrics"][metric][end] for row in line]
                for end in ("kept", "low", "high")
            )
            style = {"color": COLOURS[token], "linewidth": 1.4, "markersize": 4.5}
            axes.vlines(places, low, high, color=COLOURS[token], linewidth=0.9, alpha=0.7)
            axes.plot(places, kept, mark + "-", label=plain(label, 40), **style)
        axes.set_xticks(range(len(pools)), ["none", *(f"{pool:,}" for pool in pools[1:])])
        axes.set_xlabel("items re-ranked by their vectors")
        _finish(axes, figure, result, narrow)

    return draw(name, _size(narrow), paint, f"{metric} kept, by the number of re-ranked items.")


def best_lines(candidates: Sequence[Candidate], metric: str) -> dict[str, list[Candidate]]:
    """For each length the way of ours that keeps most without re-ranking, with all its pools."""
    ours = [row for row in candidates if not row["is_peer"]]
    lines = {}
    for length in sorted({row["bytes"] for row in ours}):
        of_length = [row for row in ours if row["bytes"] == length]
        plain_rows = [row for row in of_length if row["pool"] is None]
        best = max(plain_rows, key=lambda row: _kept(row, metric))
        key = best["method"], best["query"]
        line = [row for row in of_length if (row["method"], row["query"]) == key]
        label = f"{length} bytes, {best['method']}, {best['query']}"
        lines[label] = sorted(line, key=lambda row: row["pool"] or 0)
    return lines


def _finish(axes: Any, figure: Any, result: Mapping[str, Any], narrow: bool) -> None:
    """The axis of the quality, the line of what is to be kept, and the legend."""
    chosen = result["recommendation"]
    axes.axhline(100 * chosen["keep"], color=COLOURS["muted"], linewidth=0.8, linestyle="--")
    low = min(100 * _kept(row, _metric(result)) for row in result["candidates"])
    axes.set_ylim(max(0, 5 * (low // 5) - 2), max(103, axes.get_ylim()[1]))
    axes.set_ylabel(f"{_metric(result)} kept, %")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    if narrow:
        figure.legend(frameon=False, fontsize=7.5, loc="outside lower left", ncols=1)
    else:
        figure.legend(frameon=False, fontsize=8, loc="outside right upper")


def _styles(candidates: Sequence[Candidate]) -> dict[str, dict[str, Any]]:
    """The line of each method; those of peers are gray."""
    ours = dict.fromkeys(row["method"] for row in candidates if not row["is_peer"])
    styles = {}
    for place, method in enumerate(ours):
        token, mark = _LINES[place % _MOST_METHODS]
        styles[method] = {"color": COLOURS[token], "marker": mark}
        if place >= _MOST_METHODS:  # colors and marks begin anew, with hollow marks
            styles[method]["markerfacecolor"] = "none"
    peers = dict.fromkeys(row["method"] for row in candidates if row["is_peer"])
    for place, method in enumerate(peers):
        styles[method] = {"color": COLOURS[_PEER], "marker": "x+1234"[place % 6]}
    return {
        method: {"linewidth": 1.4, "markersize": 4.5, **style} for method, style in styles.items()
    }


def _size(narrow: bool) -> tuple[float, float]:
    return (NARROW, 4.2) if narrow else (WIDE, 3.6)


def _metric(result: Mapping[str, Any]) -> str:
    return str(result["recommendation"]["metric"])


def _kept(row: Candidate, metric: str) -> float:
    return float(row["metrics"][metric]["kept"])
