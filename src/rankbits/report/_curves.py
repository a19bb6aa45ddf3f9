"""The figures of learned codes: how training went, and how far relevant and irrelevant items lie.

Notation:
    d  Hamming distance, 0..b     r[d], i[d]  shares of the relevant and the irrelevant items at d
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankbits.errors import InputError
from rankbits.evaluation import Audit, TieSizes
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

History = Sequence[Mapping[str, Any]]  # one an epoch: epoch, loss, score or None


def returned_epoch(history: History) -> Mapping[str, Any]:
    """The epoch whose weights are kept: the first with the best score; without scores the last."""
    if not history:
        raise InputError("history must have at least one epoch, it has none")
    scored = [record for record in history if record["score"] is not None]
    return max(scored, key=lambda record: record["score"]) if scored else history[-1]


def training_plot(history: History, *, narrow: bool = False, name: str = "training") -> str:
    """1 - loss of the training batches by epoch, and the score of held-out rows if there is one.

    Parameters
    ----------
    history : the records of the epochs, as `hasher.history_` has them
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    returned = returned_epoch(history)
    scored = [record for record in history if record["score"] is not None]

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        epochs = [record["epoch"] for record in history]
        batches = [1 - record["loss"] for record in history]
        style = {"color": COLOURS["irrelevant"], "linewidth": 1.4}
        axes.plot(
            epochs, batches, **style, label="training batches, relaxed: 1 \N{MINUS SIGN} loss"
        )
        if scored:
            values = [record["score"] for record in scored]
            style = {"color": COLOURS["relevant"], "linewidth": 1.8}
            axes.plot([r["epoch"] for r in scored], values, **style, label="held out, binary codes")
            _mark(axes, returned["epoch"], returned["score"])
        axes.set_xlim(0, 1.02 * epochs[-1])
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel("epoch")
        axes.set_ylabel("average precision")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8, loc="lower right")

    size = (NARROW, 2.7) if narrow else (WIDE, 2.9)
    return draw(name, size, paint, _training_words(history, returned))


def _mark(axes: Any, epoch: int, score: float) -> None:
    """A dot on the kept epoch, its score below."""
    axes.plot(epoch, score, "o", color=COLOURS["ink"], markersize=5, label="weights kept")
    axes.annotate(
        f"{score:.3f}",
        (epoch, score),
        xytext=(0, -6),
        textcoords="offset points",
        ha="center",
        va="top",
        fontweight="bold",
    )


def _training_words(history: History, returned: Mapping[str, Any]) -> str:
    first, last = (1 - record["loss"] for record in (history[0], history[-1]))
    words = f"Average precision of training batches from {first:.3f} to {last:.3f}"
    if returned["score"] is None:
        return f"{words} after {len(history)} epochs."
    epoch, score = returned["epoch"], returned["score"]
    return f"{words}; of held-out rows {score:.3f} at epoch {epoch}, which is kept."


def distance_shares(ties: TieSizes) -> tuple[np.ndarray, np.ndarray]:
    """(r, i): shares of the relevant and of the irrelevant items by distance; each sums to 1.

    Where there are no irrelevant items, i is all zeros.
    """
    relevant, items = np.array(ties.relevant), np.array(ties.items)
    irrelevant = items - relevant
    r, i = (counts / max(counts.sum(), 1e-300) for counts in (relevant, irrelevant))
    return r, i


def overlap(ties: TieSizes) -> float:
    """Sum over d of min(r[d], i[d]): 0 if a distance tells relevance, 1 if it tells nothing.

    >>> overlap(TieSizes(items=(2.0, 4.0), relevant=(2.0, 2.0), tied_with=3.0))
    0.5
    """
    return float(np.minimum(*distance_shares(ties)).sum())


def distance_plot(audits: Sequence[Audit], *, narrow: bool = False, name: str = "distances") -> str:
    """One panel for each audit: how far from a query its relevant and irrelevant items lie.

    Parameters
    ----------
    audits : what `rankbits.evaluation.audit` returned for each set of codes
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    words = "; ".join(
        f"{plain(audit.name, 30)}: they overlap by {overlap(audit.ties):.3f}" for audit in audits
    )

    def paint(figure: Any) -> None:
        shape = (len(audits), 1) if narrow else (1, len(audits))
        panels = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
        for axes, audit in zip(panels.flat, audits, strict=True):
            _shares(axes, audit)
        for axes in panels[:, 0]:
            axes.set_ylabel("share of items")
        for axes in panels[-1]:
            axes.set_xlabel("Hamming distance from the query")
        panels.flat[0].legend(frameon=False, fontsize=8, loc="upper right")

    size = (NARROW, 1.7 * len(audits) + 0.4) if narrow else (WIDE, 2.6)
    return draw(name, size, paint, f"Distances of relevant and irrelevant items. {words}.")


def _shares(axes: Any, audit: Audit) -> None:
    """Two stepped areas over the distances 0..b."""
    relevant, irrelevant = distance_shares(audit.ties)
    edges = np.arange(len(relevant) + 1) - 0.5
    for shares, token, label in (
        (irrelevant, "irrelevant", "irrelevant"),
        (relevant, "relevant", "relevant"),
    ):
        colour = COLOURS[token]
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.35, linewidth=0, label=label)
        axes.stairs(shares, edges, color=colour, linewidth=1.3)
    axes.set_xlim(-0.5, len(relevant) - 0.5)
    title = f"{plain(audit.name, 20)}: overlap {overlap(audit.ties):.3f}"
    axes.set_title(title, fontsize=9, loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(nbins=4)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
