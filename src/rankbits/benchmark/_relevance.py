"""What is relevant to whom, by a protocol's rule: an affinity to evaluate with, a y to learn from.

Learning sees training rows only; thresholds on distances come from training rows too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankbits import affinity
from rankbits._check import describe
from rankbits.affinity import Affinity
from rankbits.benchmark._splits import ProtocolSplit
from rankbits.datasets import Labelled
from rankbits.errors import InputError
from rankbits.methods.labels import UNLABELLED

_TABLE_CELLS = 1 << 27
_BLOCK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class RetrievalTask:
    """What a method is given, and what its codes are judged by.

    Attributes
    ----------
    training_x : rows to learn from
    training_y : classes, multi-hot tags, an affinity over (training_x, training_x), or None
    query_x, database_x : rows to encode
    affinity : over (query_x, database_x)
    kinds : mapping from a name to places among the queries, whose metrics are also given apart
    is_labelled : which rows to learn from have a label, where others are -1 in training_y
    """

    training_x: np.ndarray
    training_y: Any
    query_x: np.ndarray
    database_x: np.ndarray
    affinity: Affinity
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)
    is_labelled: np.ndarray | None = None


@dataclass(frozen=True)
class SameClass:
    """Level 1 for the same class; rows whose labels are not to be seen have -1 in y."""

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        _require_labels(data, 1, "classes, shape (n,)")
        of_queries, of_database = data.y[split.queries], data.y[split.database]
        relation, y = affinity.classes(of_queries, of_database), data.y[split.training]
        if not len(split.unlabelled):
            return _task(data, split, y, relation)
        is_labelled = ~np.isin(split.training, split.unlabelled)
        y = np.where(is_labelled, y.astype(np.int64), UNLABELLED)
        return replace(_task(data, split, y, relation), is_labelled=is_labelled)


@dataclass(frozen=True)
class SharedTags:
    """Level 1 for a shared tag; graded, the number of shared tags.

    Attributes
    ----------
    graded : whether the level is the number of shared tags
    """

    graded: bool = False

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        _require_labels(data, 2, "multi-hot tags, shape (n, tags)")
        of_queries, of_database = data.y[split.queries], data.y[split.database]
        relation = affinity.tags(of_queries, of_database, graded=self.graded)
        return _task(data, split, data.y[split.training], relation)


@dataclass(frozen=True)
class Near:
    """Levels by L2 distance: thresholds are these quantiles of the distances in training.

    Attributes
    ----------
    shares : the share of the training pairs within each threshold
    levels : the level of a pair within each threshold
    """

    shares: tuple[float, ...]
    levels: tuple[int, ...]

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        if data.x.ndim != 2:
            raise InputError(f"data must have features, shape (n, d), got {describe(data.x)}")
        x, of_queries, of_database = (
            data.x[rows] for rows in (split.training, split.queries, split.database)
        )
        cuts = affinity.distance_quantiles(x, self.shares)
        learned = affinity.neighbours(x, x, cuts, self.levels)
        judged = affinity.neighbours(of_queries, of_database, cuts, self.levels)
        return _task(data, split, learned, _tabulated(judged))


@dataclass(frozen=True)
class NestedClasses:
    """Level 2 for the same class, 1 for the same superclass; y to learn from has both as tags."""

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        return SharedTags(graded=True).task(replace(data, y=_class_and_superclass(data)), split)


@dataclass(frozen=True)
class SameSuperclass:
    """Level 1 for the same superclass; y to learn from has levels 2, 1, 0: class, superclass."""

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        tags = _class_and_superclass(data)[split.training]
        assert data.coarse is not None  # noqa: S101
        upper = data.coarse[data.y]
        judged = affinity.classes(upper[split.queries], upper[split.database])
        return _task(data, split, affinity.tags(tags, tags, graded=True), judged)


@dataclass(frozen=True)
class Judged:
    """Levels that people gave to items for a query; there is nothing to learn from but the rows."""

    def task(self, data: Labelled, split: ProtocolSplit) -> RetrievalTask:
        """What a method learns from and is judged by, on the rows of a split."""
        if data.judgements is None:
            raise InputError("data must have judgements of items for queries, it has none")
        place_of_query, place_of_item = (
            _places(rows, len(data)) for rows in (split.queries, split.database)
        )
        queries, items = (data.judgements[:, side] for side in (0, 1))
        pairs = np.stack(
            [place_of_query[queries], place_of_item[items], data.judgements[:, 2]], axis=1
        )
        used = pairs[(pairs[:, :2] >= 0).all(axis=1)]
        judged = affinity.judgements(used, len(split.queries), len(split.database))
        return _task(data, split, None, judged)


RelevanceRule = SameClass | SameSuperclass | SharedTags | NestedClasses | Near | Judged


def _places(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Where each row stands among these; -1 for a row that is none of them."""
    places = np.full(n_rows, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


def _class_and_superclass(data: Labelled) -> np.ndarray:
    """Class and superclass as two tags of a row: the number that two rows share is the level."""
    _require_labels(data, 1, "classes, shape (n,)")
    if data.coarse is None:
        raise InputError("data must have the superclass of each class, it has no coarse")
    labels = (data.y, data.coarse[data.y])
    tags = [np.eye(one.max() + 1, dtype=np.uint8)[one] for one in labels]
    return np.concatenate(tags, axis=1)


def _task(data: Labelled, split: ProtocolSplit, y: Any, relation: Affinity) -> RetrievalTask:
    kinds = {
        name: np.flatnonzero(np.isin(split.queries, rows)) for name, rows in split.kinds.items()
    }
    return RetrievalTask(
        data.x[split.training], y, data.x[split.queries], data.x[split.database], relation, kinds
    )


def _tabulated(relation: Affinity) -> Affinity:
    """The same levels looked up in a table, if it is small: every run of a split asks for them."""
    if relation.shape[0] * relation.shape[1] > _TABLE_CELLS:
        return relation
    step = max(1, _BLOCK_CELLS // relation.shape[1])
    values = relation.levels.astype(np.min_scalar_type(int(relation.levels[-1])))
    blocks = [
        values[relation.indices(slice(start, start + step), slice(None))]
        for start in range(0, relation.shape[0], step)
    ]
    return affinity.levels(np.concatenate(blocks))


def _require_labels(data: Labelled, n_dimensions: int, description: str) -> None:
    if data.y.ndim != n_dimensions:
        raise InputError(f"data must have {description}, got labels of shape {data.y.shape}")
