"""Batches: which rows are ranked together in a step, and what a loss gets to see of them.

No row comes twice in a batch: it would be its own neighbor at distance 0.

A loss is a torch module with `forward(logits, batch) -> scalar`. Most losses compare: their logits
are those of the queries, and what the queries rank is in the batch. A `RowLoss` adds up over rows,
such as the distances to hash centers, and knows no pairs: where queries have a map of their own, it
is computed for the rows of either side, with the same centers. A loss that `reads_chances` has the
chance that an item is relevant, where labels are drawn, beside the level that was drawn.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from rankbits.methods.query_log import QueryLog
from rankbits.methods.supervision import Supervision
from rankbits.methods.training.inputs import Mixture

_POSITIVES_EACH = 3
_MOST_POSITIVES = 64  # of a query: memory stays O(n)

Sampler = Callable[[np.random.Generator], list[np.ndarray]]
LogSampler = Callable[[np.random.Generator], list["StepRows"]]


class StepRows(NamedTuple):
    """Positions of the queries and of the items of a step; one array if they are the same rows."""

    queries: np.ndarray
    items: np.ndarray

    @property
    def are_same(self) -> bool:
        """Whether every query is an item of its step."""
        return self.items is self.queries


@dataclass(frozen=True)
class Batch:
    """What a loss knows of a step beside the logits (M, b), whose order `rows` gives.

    The list that a query ranks is the batch itself or, if there is a gallery, its K rows.
    """

    rows: np.ndarray  # (M,) positions in the training set
    levels: Tensor  # (M, M) or (M, K) levels; the pair of a row with itself never counts
    alpha: float  # the slope of tanh(α f)
    classes: Tensor | None = None  # (M,) int64, if y is class labels
    tags: Tensor | None = None  # (M, L) of 0 and 1, if y is multi-hot
    gallery: Tensor | None = None  # (K, b) logits
    own: Tensor | None = None  # (M,) each query's own row of the gallery, -1 for none
    trains_gallery: bool = False  # whether the gallery has a gradient: it is encoded in this step
    has_real_queries: bool = False  # whether queries stay real-valued, and only items become bits
    item_rows: np.ndarray | None = None  # positions, classes and tags of the items of this step:
    item_classes: Tensor | None = None  # all of the gallery, or of a memory the part that is
    item_tags: Tensor | None = None  # encoded now
    chances: Tensor | None = None  # (M, M) or (M, K) uint8, if relevance is drawn: see Supervision
    mixture: Mixture | None = None  # with what the rows are mixed, if they are

    @property
    def query_alpha(self) -> float:
        """The slope of tanh(α f) for queries: 1 where they stay real-valued, else `alpha`."""
        return 1.0 if self.has_real_queries else self.alpha  # they are tanh of their logits

    def of_items(self) -> "Batch":
        """The batch of the items that are encoded in this step, for a loss that knows no pairs."""
        assert self.item_rows is not None  # noqa: S101
        return replace(
            self,
            rows=self.item_rows,
            classes=self.item_classes,
            tags=self.item_tags,
            has_real_queries=False,
        )


def build_sampler(name: str, supervision: Supervision, batch_size: int) -> Sampler:
    """The function that cuts an epoch into batches, given the epoch's generator."""
    n = len(supervision)
    if batch_size >= n:
        return lambda rng: [np.arange(n)]
    if name == "balanced":
        assert supervision.classes is not None  # noqa: S101
        members = _rows_by_class(supervision.classes)
        return lambda rng: draw_balanced(members, n, batch_size, rng)
    if name == "anchors":
        offsets, items = supervision.positives(_MOST_POSITIVES)
        return lambda rng: draw_anchored(offsets, items, batch_size, rng)
    return lambda rng: draw_plain(n, batch_size, rng)


def build_log_sampler(name: str, log: QueryLog, batch_size: int) -> LogSampler:
    """The same for logged queries: a quarter as many of them as items in a step.

    "plain" draws the items at random; "anchors" takes some that are relevant to the queries first.
    """
    n_queries, n_items = queries_of_step(batch_size), min(batch_size, log.n_items)
    if name == "plain":
        offsets, items = np.zeros(len(log) + 1, np.int64), np.empty(0, np.int64)
        queries = np.arange(len(log))
    else:
        offsets, items = log.positives(_MOST_POSITIVES)
        queries = np.flatnonzero(np.diff(offsets))

    def sample(rng: np.random.Generator) -> list[StepRows]:
        order, steps = rng.permutation(queries), []
        for chosen in np.array_split(order, -(-len(order) // n_queries)):
            positives = _draw_positives(chosen, offsets, items, rng)
            steps.append(StepRows(chosen, _fill(positives, log.n_items, n_items, rng)))
        return steps

    return sample


def queries_of_step(batch_size: int) -> int:
    """Logged queries of a step of so many items: a quarter of them."""
    return max(1, batch_size // 4)


def draw_plain(n: int, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Every row once, in nearly equal batches of at most `batch_size`."""
    return np.array_split(rng.permutation(n), -(-n // batch_size))


def draw_balanced(
    members: list[np.ndarray], n: int, batch_size: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """As many rows of each class as fit; if classes are too many, as many classes with two rows.

    A class smaller than its quota gives all its rows; one larger is gone through in random order.
    """
    quota = max(2, batch_size // len(members))
    n_classes = min(len(members), batch_size // quota)
    decks = [_Deck(rows, rng) for rows in members]
    turns = _Deck(np.arange(len(members)), rng)
    batches = []
    for _ in range(-(-n // batch_size)):
        drawn = [decks[c].draw(quota) for c in turns.draw(n_classes)]
        batches.append(np.concatenate(drawn))
    return batches


def draw_anchored(
    offsets: np.ndarray, items: np.ndarray, batch_size: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Queries with some of their positives, filled up with random rows.

    Every query that has a positive is an anchor once an epoch. A quarter of a batch are anchors.
    """
    n = len(offsets) - 1
    n_each = max(1, batch_size // (1 + _POSITIVES_EACH))
    anchors = rng.permutation(np.flatnonzero(np.diff(offsets)))
    batches = []
    for start in range(0, len(anchors), n_each):
        chosen = anchors[start : start + n_each]
        rows = np.concatenate([chosen, _draw_positives(chosen, offsets, items, rng)])
        batches.append(_fill(rows, n, batch_size, rng))
    return batches


def _draw_positives(
    queries: np.ndarray, offsets: np.ndarray, items: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """At most three items that are relevant to each query, in the order of the queries."""
    drawn = [np.empty(0, np.int64)]
    for query in queries:
        positives = items[offsets[query] : offsets[query + 1]]
        drawn.append(rng.permutation(positives)[:_POSITIVES_EACH])
    return np.concatenate(drawn)


class _Deck:
    """Rows dealt in random order; shuffled again when too few are left for a draw."""

    def __init__(self, rows: np.ndarray, rng: np.random.Generator) -> None:
        self.rows, self.rng = rows, rng
        self.left = np.empty(0, rows.dtype)

    def draw(self, n: int) -> np.ndarray:
        """At most n different rows."""
        if len(self.left) < n:
            again = self.rng.permutation(np.setdiff1d(self.rows, self.left))
            self.left = np.concatenate([self.left, again])
        drawn, self.left = self.left[:n], self.left[n:]
        return drawn


def _fill(rows: np.ndarray, n: int, batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """The rows without repeats, in their order, then random others up to the batch size."""
    _, first = np.unique(rows, return_index=True)
    distinct = rows[np.sort(first)][:batch_size]
    others = np.setdiff1d(np.arange(n), distinct)
    return np.concatenate([distinct, rng.permutation(others)[: batch_size - len(distinct)]])


def _rows_by_class(classes: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)


class RowLoss(nn.Module):
    """Base of the losses that add up over rows."""


class ChanceLoss(nn.Module):
    """Base of the losses that may read `Batch.chances`."""

    reads_chances: bool


def reads_chances(loss: nn.Module) -> bool:
    """Whether the loss needs chances: they take time to look up."""
    return isinstance(loss, ChanceLoss) and loss.reads_chances


def compute_loss(loss: nn.Module, logits: Tensor, items: Tensor | None, batch: Batch) -> Tensor:
    """The loss of a step; `items` are logits of the items, if these are not the queries'."""
    value: Tensor = loss(logits, batch)
    if items is None or not isinstance(loss, RowLoss):
        return value
    of_items: Tensor = loss(items, batch.of_items())
    return (value + of_items) / 2
