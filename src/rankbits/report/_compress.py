"""The page of a compression: one sentence, the frontier, the table, and what stands behind it."""

from collections.abc import Mapping
from typing import Any

from rankbits._files import one_line
from rankbits.errors import InputError, RankbitsError
from rankbits.report._frontier import bytes_plot, frontier, pool_plot, time_plot
from rankbits.report._page import _both, _render

_FIGURES = {"bytes": bytes_plot, "time": time_plot, "pool": pool_plot}


def compress_page(result: Mapping[str, Any]) -> str:
    """The page of a compressed folder; every number on it is one of the result's.

    Parameters
    ----------
    result : dict
        The content of `result.json`, as `rankbits.compress` writes it. Anything else is refused.
    """
    try:
        return _draw(result)
    except RankbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - values of other kinds make any part of it fail
        raise InputError(
            "result must be the content of a result.json of rankbits compress, a part is missing "
            f"or of another kind: {one_line(error)[:200]}"
        ) from None


def _draw(result: Mapping[str, Any]) -> str:
    metric = result["recommendation"]["metric"]
    return _render(
        "compress.html.j2",
        result=result,
        chosen=result["recommendation"],
        metric=metric,
        metrics=list(result["reference"]["metrics"]),
        frontier=frontier(result["candidates"], metric),
        peers=_peer_words(result),
        figures={name: _both(plot, result, name=name) for name, plot in _FIGURES.items()},
    )


def _peer_words(result: Mapping[str, Any]) -> list[str]:
    """For each length, whether a peer keeps more than the best of ours, without re-ranking."""
    metric = result["recommendation"]["metric"]
    rows = [row for row in result["candidates"] if row["pool"] is None]
    sentences = []
    for length in sorted({row["bytes"] for row in rows if row["is_peer"]}):
        best = {}
        for is_peer in (False, True):
            of_side = [row for row in rows if row["bytes"] == length and row["is_peer"] == is_peer]
            if of_side:
                best[is_peer] = max(of_side, key=lambda row: row["metrics"][metric]["kept"])
        if len(best) < 2:
            continue
        ours, theirs = (best[is_peer]["metrics"][metric]["kept"] for is_peer in (False, True))
        verdict = "ours is ahead" if ours >= theirs else "the peer is ahead"
        sentences.append(
            f"{length} bytes: {best[False]['method']} keeps {ours:.1%}, {best[True]['method']} "
            f"{theirs:.1%} at {best[True]['bytes_with_model']:.0f} bytes an item with its model: "
            f"{verdict}."
        )
    return sentences
