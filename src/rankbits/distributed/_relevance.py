"""What is relevant to which query, where the items lie in shards: labels, tags or judgements.

The query side is sent once to every machine. Labels of items are read with their codes; judged
pairs go with the task that counts their items.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import affinity
from rankbits.affinity import Affinity, Judgements
from rankbits.datasets import load_judgements, load_labels
from rankbits.distributed._shards import describe_labels
from rankbits.errors import InputError


@dataclass(frozen=True, eq=False)
class ShardedRelevance:
    """Labels of the queries and how they count, or judged pairs of all items, sorted by item.

    Attributes
    ----------
    query_labels : ndarray or None
        Classes (queries,) or tags (queries, tags).
    graded : bool
        Whether the level of two sets of tags is how many they share.
    judged : ndarray of int64, shape (pairs, 3), or None
        Query, item and level; items are numbered through all shards.
    """

    query_labels: np.ndarray | None = None
    graded: bool = False
    judged: np.ndarray | None = None

    @property
    def labels_in_words(self) -> str | None:
        """What labels the shards must have."""
        return None if self.query_labels is None else describe_labels(self.query_labels)

    def require_fit(self, n_queries: int, n_items: int) -> None:
        """Refuse relevance of other queries, or judgements of items that are not there."""
        if self.query_labels is not None and len(self.query_labels) != n_queries:
            raise InputError(
                f"query_labels must be as many as queries, got {len(self.query_labels)} for "
                f"{n_queries}"
            )
        if self.judged is not None:
            affinity.judgements(self.judged, n_queries, n_items)

    def judged_between(self, start: int, stop: int) -> np.ndarray | None:
        """The judged pairs of items start..stop - 1, numbered from the first of them."""
        if self.judged is None:
            return None
        inside = slice(*np.searchsorted(self.judged[:, 1], (start, stop)))
        local: np.ndarray = self.judged[inside] - np.array([0, start, 0])
        return local

    def without_judgements(self) -> "ShardedRelevance":
        """What every machine needs: the query side alone."""
        return ShardedRelevance(self.query_labels, self.graded)

    def affinity(
        self, labels: np.ndarray | None, judged: np.ndarray | None, n_queries: int, n_items: int
    ) -> Affinity:
        """The affinity of all queries to some items, from their labels or judged pairs."""
        if judged is not None:
            return affinity.judgements(judged, n_queries, n_items)
        if labels is None:
            raise InputError("a shard must come with labels, it has none")
        if labels.ndim == 2:
            return affinity.tags(self.query_labels, labels, graded=self.graded)
        return affinity.classes(self.query_labels, labels)


def read_relevance(
    query_labels: Any, query_tags: Any, graded: bool, judgements: Any
) -> ShardedRelevance:
    """Exactly one of labels, tags and judgements, as an array or a file."""
    given = [value for value in (query_labels, query_tags, judgements) if value is not None]
    if len(given) != 1:
        raise InputError(
            "give one of query_labels with database_labels, query_tags with database_tags, and "
            f"judgements; got {len(given)} of them"
        )
    if judgements is not None:
        if graded:
            raise InputError("graded must come with tags, judgements have levels of their own")
        return ShardedRelevance(judged=_judged_rows(judgements))
    labels = query_labels if query_tags is None else query_tags
    array = load_labels(labels) if isinstance(labels, str | os.PathLike) else np.asarray(labels)
    if array.ndim != 2 and (graded or query_tags is not None):
        raise InputError(
            f"query_tags must be multi-hot, of shape (queries, tags), got shape {array.shape}"
        )
    if array.ndim not in (1, 2) or len(array) == 0:
        raise InputError(
            "query_labels must be classes of shape (queries,) or tags of shape (queries, tags), "
            f"got shape {array.shape}"
        )
    return ShardedRelevance(array, bool(graded))


def _judged_rows(judgements: Any) -> np.ndarray:
    """Judged pairs as int64 (query, item, level), sorted by item."""
    if isinstance(judgements, Judgements):
        rows = judgements.rows
    elif isinstance(judgements, str | os.PathLike):
        rows = load_judgements(judgements)
    else:
        rows = np.asarray(judgements)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise InputError(
            "judgements must be integers of shape (n, 3): query, item, level; got "
            f"{rows.dtype} of shape {rows.shape}"
        )
    return rows[np.argsort(rows[:, 1], kind="stable")].astype(np.int64)
