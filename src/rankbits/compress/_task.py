"""The task: items, the queries that ask, what is relevant, and what had to be said about them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.compress._inputs import (
    Profile,
    digest,
    equal_items,
    hash_rows,
    open_vectors,
    profile_vectors,
    require_different,
    require_directions,
)
from rankbits.compress._truth import Relevance, answerable_queries, check_relevance
from rankbits.compress._words import counted
from rankbits.errors import InputError
from rankbits.histogram import VECTOR_METRICS

FEWEST_QUERIES = 20
MOST_QUERIES = 1000  # unless a number is given: more say little more
_FEWEST_ITEMS = 100
_MOST_RATIO = 1.5  # of the lengths of queries and items, beyond which it is told


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be compressed and how it is asked for.

    Attributes
    ----------
    items : ndarray of shape (N, d)
        Vectors of the items, perhaps mapped.
    profile : Profile
        Norms and hashes of the items.
    queries : ndarray of shape (n, d)
        Vectors of the queries.
    query_rows : ndarray of int64, shape (n,)
        The rows of the queries in the file they came from, or among the items.
    own : ndarray of int64, shape (n,)
        The item that is the query itself and does not count, -1 for none.
    relevance : Relevance
        Judgements or labels of these queries, or neither.
    similarity : {"cosine", "ip", "l2"}
        What the vectors are ranked by.
    asked_by : str
        "queries", or "held-out items" where no queries were given.
    notes : tuple of str
        What a reader of the result must know about the data.
    """

    items: np.ndarray
    profile: Profile
    queries: np.ndarray
    query_rows: np.ndarray
    own: np.ndarray
    relevance: Relevance
    similarity: str
    asked_by: str
    notes: tuple[str, ...]

    def of_queries(self, rows: np.ndarray) -> "Task":
        """The same task for some of its queries."""
        return replace(
            self,
            queries=self.queries[rows],
            query_rows=self.query_rows[rows],
            own=self.own[rows],
            relevance=self.relevance.of_queries(rows),
        )

    def training_rows(self, n_rows: int, seed: int) -> np.ndarray:
        """Rows of the items to learn from, ascending; no item that asks is among them."""
        allowed = np.ones(len(self.items), bool)
        allowed[self.own[self.own >= 0]] = False
        rows = np.flatnonzero(allowed)
        if len(rows) > n_rows:
            rows = np.random.default_rng((seed, 2)).choice(rows, n_rows, replace=False)
        return np.sort(rows)

    def digest(self) -> dict[str, Any]:
        """What tells this task from another; JSON can hold it."""
        judged, labels = self.relevance.judged, self.relevance.labels
        relevance = [judged] if judged is not None else list(labels or ())
        return {
            "items": digest(self.profile.hashes),
            "queries": digest(hash_rows(self.queries)),
            "own": digest(hash_rows(self.own[:, None])),
            "relevance": [digest(hash_rows(part.reshape(len(part), -1))) for part in relevance],
            "similarity": self.similarity,
        }


def prepare_task(
    items: Any,
    queries: Any,
    judged: Any,
    query_labels: Any,
    item_labels: Any,
    similarity: str,
    n_queries: int | None,
    seed: int,
    work: Path | None,
) -> Task:
    """Open and check everything; whatever is wrong is said before any work."""
    _check.choice("similarity", similarity, VECTOR_METRICS)
    rows = open_vectors("items", items, work)
    if len(rows) < _FEWEST_ITEMS:
        raise InputError(
            f"items must be at least {_FEWEST_ITEMS}, got {len(rows)}: so few need no codes"
        )
    asked = None if queries is None else open_vectors("queries", queries, work)
    if asked is not None and asked.shape[1] != rows.shape[1]:
        raise InputError(
            f"queries must have as many numbers as items, got {asked.shape[1]} and "
            f"{rows.shape[1]}; make both with the same model"
        )
    n_asked = None if asked is None else len(asked)
    relevance = check_relevance(judged, query_labels, item_labels, n_asked, len(rows))
    profile = profile_vectors("items", rows)
    require_different("items", profile)
    if similarity == "cosine":
        require_directions("items", rows, profile)
    if asked is None:
        return _items_ask(rows, profile, relevance, similarity, n_queries, seed)
    norms = profile_vectors("queries", asked).norms
    return _queries_ask(rows, profile, asked, norms, relevance, similarity, n_queries, seed)


def _items_ask(
    items: np.ndarray,
    profile: Profile,
    relevance: Relevance,
    similarity: str,
    n_queries: int | None,
    seed: int,
) -> Task:
    """A sample of the items asks; an item does not rank itself, and nothing is learned from it."""
    n = min(n_queries or MOST_QUERIES, max(FEWEST_QUERIES, len(items) // 10))
    candidates = np.flatnonzero(profile.norms > 0)
    rows = np.sort(np.random.default_rng((seed, 0)).permutation(candidates)[:n])
    task = Task(
        items,
        profile,
        np.asarray(items[rows]),
        rows,
        rows,
        relevance.of_queries(rows),
        similarity,
        "held-out items",
        (
            f"no queries were given, so {len(rows)} items ask for the others; real queries often "
            "lie farther from the items, and lose more",
            *_item_notes(profile),
        ),
    )
    return _answerable(task)


def _queries_ask(
    items: np.ndarray,
    profile: Profile,
    queries: np.ndarray,
    query_norms: np.ndarray,
    relevance: Relevance,
    similarity: str,
    n_queries: int | None,
    seed: int,
) -> Task:
    notes = [*_item_notes(profile), *_length_notes(query_norms, profile.norms, similarity)]
    is_judged = relevance.kind == "judgements"
    asked = np.asarray(queries)
    rows = np.arange(len(queries))
    if similarity != "l2" and not query_norms.all():
        rows = np.flatnonzero(query_norms)
        notes.append(
            counted(len(queries) - len(rows), "query is zero", "queries are zero")
            + ", which ranks no item above another; left out"
        )
    if not is_judged:
        n_rows = len(rows)
        rows = np.sort(rows[np.unique(hash_rows(asked[rows]), return_index=True)[1]])
        if len(rows) < n_rows:
            some = counted(n_rows - len(rows), "query is a copy", "queries are copies")
            notes.append(f"{some} of others; each is asked once")
    own = np.full(len(queries), -1)
    copies = equal_items(asked, items, profile.hashes)
    n_copies = int((copies[rows] >= 0).sum())
    if n_copies:
        some = counted(n_copies, "query is equal", "queries are equal")
        how = "is ranked as judged" if is_judged else "is left out of the ranking"
        notes.append(f"{some} to an item, which {how}")
        own = own if is_judged else copies
    task = Task(
        items, profile, asked, np.arange(len(asked)), own, relevance, similarity, "queries",
        tuple(notes),
    )  # fmt: skip
    task = _answerable(task.of_queries(rows))
    most = n_queries or MOST_QUERIES
    if len(task.queries) > most:
        chosen = np.sort(np.random.default_rng((seed, 0)).permutation(len(task.queries))[:most])
        note = f"{most} of {len(task.queries)} queries ask, drawn at random"
        task = replace(task.of_queries(chosen), notes=(*task.notes, note))
    return task


def _answerable(task: Task) -> Task:
    """Without the queries to which nothing is relevant, which no ranking could answer."""
    rows = answerable_queries(task.relevance, len(task.queries), task.own)
    if len(rows) < FEWEST_QUERIES:
        raise InputError(
            f"queries must be at least {FEWEST_QUERIES} that differ and have something relevant, "
            f"got {len(rows)}: fewer say nothing about others; give more, or leave queries out "
            "and items will ask"
        )
    n_empty = len(task.queries) - len(rows)
    if not n_empty:
        return task
    some = counted(n_empty, "query has", "queries have")
    note = f"{some} nothing relevant; left out"
    return replace(task.of_queries(rows), notes=(*task.notes, note))


def _item_notes(profile: Profile) -> tuple[str, ...]:
    notes = []
    if profile.n_zero:
        some = counted(profile.n_zero, "item is zero", "items are zero")
        notes.append(f"{some}, without a direction; where such a vector ranks means nothing")
    return tuple(notes)


def _length_notes(queries: np.ndarray, items: np.ndarray, similarity: str) -> tuple[str, ...]:
    """A cosine does not see lengths, but methods that center items move longer queries less."""
    ratio = float(np.median(queries[queries > 0]) / np.median(items[items > 0]))
    if similarity != "cosine" or 1 / _MOST_RATIO < ratio < _MOST_RATIO:
        return ()
    return (
        f"queries are {ratio:.2g} times as long as items in the median: most codes are made for "
        "vectors of one length and lose more than they have to; scale queries and items alike",
    )
