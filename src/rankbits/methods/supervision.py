"""Supervision: what y says about which rows are relevant to which, as one object.

The rule for y:
    None                       each row's own ranking of the others by distance: its nearest rows;
                               of images, by the features that a backbone makes of them
    an object of affinity      levels over (X, X): dense, tags, neighbors, sparse judgements
    one dimension              class labels: integers or strings; relevant if equal
    two dimensions of 0 and 1  multi-hot: relevant if a tag is shared; graded, their number counts
A row is never relevant to itself.
"""

import hashlib
from typing import Any

import numpy as np

from rankbits import affinity
from rankbits.affinity import Affinity
from rankbits.errors import InputError
from rankbits.methods.labels import check_length, read_labels

RANKS, RANK_LEVELS = (10, 50, 200, 1000), (10, 5, 2, 1)  # of a row's own ranking, without y
RELEVANT_RANK = 10  # up to which rows are relevant where relevance has no levels
_BLOCK_CELLS = 1 << 22
_TABLE_CELLS = 1 << 27
_SAMPLE = 512
N_CHANCES = 9  # chances that an item is relevant are multiples of 1/8


class Supervision:
    """Levels between the rows of a training set, and its classes or tags if y had them.

    Attributes
    ----------
    affinity : Affinity
        Over all rows of X; `rows` says which of them this object is about.
    classes : ndarray of int64 or None
        Class numbers from 0.
    tags : ndarray of uint8 or None
        Multi-hot rows.
    """

    def __init__(
        self,
        kind: str,
        relation: Affinity,
        rows: np.ndarray,
        classes: np.ndarray | None = None,
        tags: np.ndarray | None = None,
    ) -> None:
        self.kind, self.affinity, self.rows = kind, relation, rows
        self.classes, self.tags = classes, tags
        self.values = relation.levels.astype(_narrowest(relation.levels))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: np.ndarray) -> "Supervision":
        """The same supervision of some of the rows."""
        classes = None if self.classes is None else self.classes[positions]
        tags = None if self.tags is None else self.tags[positions]
        return Supervision(self.kind, self.affinity, self.rows[positions], classes, tags)

    def levels(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Level of every pair of positions, shape (queries, items)."""
        positions = self.affinity.block(self.rows[queries], self.rows[items])
        levels: np.ndarray = self.values[positions]
        return levels

    def chances(self, queries: np.ndarray, items: np.ndarray) -> np.ndarray | None:
        """Chance that an item is relevant to a query, in steps of 1 / (N_CHANCES - 1), as uint8.

        None where relevance is certain: `levels` says all there is to say.
        """
        return None

    def has_contrast(self, rows: np.ndarray) -> bool:
        """Whether some pairs of these positions are more relevant than others."""
        levels = self.levels(rows, rows)[~np.eye(len(rows), dtype=bool)]
        return bool(levels.size) and bool(levels.min() != levels.max())

    def check_contrast(self) -> None:
        """Refuse supervision under which no ranking is better than another."""
        everything, has_positive, seen = np.arange(len(self)), False, set[int]()
        for queries in _blocks(everything):
            levels = self.levels(queries, everything).astype(np.int64)
            levels[np.arange(len(queries)), queries] = -1
            has_positive = has_positive or bool((levels > 0).any())
            seen |= set(np.unique(levels).tolist()) - {-1}
            if has_positive and len(seen) > 1:
                return
        if not has_positive:
            raise InputError("y must make some rows relevant to others, got no positives at all")
        raise InputError(
            "y must make some pairs of rows more relevant than others, got one level for all of "
            "them"
        )

    def redrawn(self, rng: np.random.Generator) -> "Supervision":
        """The supervision of the next epoch: itself, unless labels are drawn."""
        return self

    def tabulated(self) -> "Supervision":
        """The same, with levels that are costly to compute looked up in a table, if it is small."""
        cheap = (affinity.Classes, affinity.Tags, affinity.Judgements, affinity.Levels)
        if isinstance(self.affinity, cheap) or len(self) ** 2 > _TABLE_CELLS:
            return self
        everything = np.arange(len(self))
        blocks = [self.levels(queries, everything) for queries in _blocks(everything)]
        table = affinity.levels(np.concatenate(blocks))
        return Supervision(self.kind, table, everything, self.classes, self.tags)

    def positives(self, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (n + 1,) and items: those relevant to position i are items[offsets[i:i + 2]].

        With `most`, a query that has more is given a seeded sample of that many.
        """
        everything, rng = np.arange(len(self)), np.random.default_rng(0)
        counts, items = [0], [np.empty(0, np.int64)]
        for queries in _blocks(everything):
            levels = self.levels(queries, everything)
            levels[np.arange(len(queries)), queries] = 0
            for row in levels:
                relevant = np.flatnonzero(row)
                if most is not None and len(relevant) > most:
                    relevant = np.sort(rng.choice(relevant, most, replace=False))
                counts.append(len(relevant))
                items.append(relevant)
        return np.cumsum(counts), np.concatenate(items)

    def density(self) -> float:
        """Share of pairs that are relevant, on an even sample of the queries."""
        queries = even_sample(len(self))
        levels = self.levels(queries, np.arange(len(self)))
        levels[np.arange(len(queries)), queries] = 0
        return np.count_nonzero(levels) / max(levels.size - len(queries), 1)

    def notes(self) -> dict[str, Any]:
        """What a report should say about y."""
        notes: dict[str, Any] = {"y": self.kind, "levels": self.values.tolist()[:32]}
        if self.classes is not None:
            sizes = np.unique(self.classes, return_counts=True)[1]
            notes["classes"] = len(sizes)
            notes["classes_of_one"] = int((sizes == 1).sum())  # their items are negatives only
        return notes

    def digest(self) -> str:
        """A hash of everything the levels depend on."""
        state = hashlib.blake2b(self.kind.encode(), digest_size=16)
        for part in (self.rows, self.classes, self.tags, *_contents(self.affinity)):
            if part is not None:
                state.update(np.ascontiguousarray(part).tobytes())
        return state.hexdigest()


def supervise(X: np.ndarray, y: Any, *, graded: bool = False) -> Supervision:
    """The supervision that y gives the rows of X, or an error that says why there is none."""
    check_length(y, len(X))
    if y is None:
        supervision = _from_ranks(X, graded)
    elif isinstance(y, Affinity):
        supervision = Supervision("affinity", y, np.arange(len(X)))
    else:
        supervision = _from_labels(read_labels(y), graded)
    supervision.check_contrast()
    return supervision


def _from_labels(y: np.ndarray, graded: bool) -> Supervision:
    rows = np.arange(len(y))
    if y.ndim == 2:
        relation = affinity.tags(y, y, graded=graded)
        return Supervision("tags", relation, rows, tags=(y != 0).astype(np.uint8))
    names, ids, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if len(names) == 1:
        raise InputError(
            "y must have at least two classes, got one: with every item relevant to every other, "
            "all codes rank equally well"
        )
    if sizes.max() == 1:
        raise InputError(
            f"y must have a class with at least two members, got {len(names)} classes of one "
            "member each: no row is relevant to another"
        )
    return Supervision("classes", affinity.classes(ids, ids), rows, classes=ids)


def _from_ranks(X: np.ndarray, graded: bool) -> Supervision:
    if X.ndim != 2:
        raise InputError(
            "y must be given for images: distances between pixels say little about what they show; "
            "give y, or encoder='backbone', which compares images by its features"
        )
    if len(X) < 2:
        raise InputError(f"X must have at least two rows to rank, got n_samples = {len(X)}")
    if (X[0] == X).all():
        raise InputError("X must have rows that differ where y is None: all its rows are equal")
    return Supervision(
        "ranks", rank_by_distance(X, X, graded, exclude_self=True), np.arange(len(X))
    )


def rank_by_distance(
    queries: np.ndarray, items: np.ndarray, graded: bool, *, exclude_self: bool = False
) -> affinity.NearestRanks:
    """What the queries' own rankings by distance say: levels of four ranks, or the first ten.

    No rank has more than half of the items, so that some are left to be irrelevant. Where ranks
    coincide for that reason, the highest of their levels counts.
    """
    most = max(1, (len(items) - exclude_self) // 2)
    ranks, levels = (RANKS, RANK_LEVELS) if graded else ((RELEVANT_RANK,), (1,))
    level_of: dict[int, int] = {}
    for rank, level in zip(ranks, levels, strict=True):
        level_of.setdefault(min(rank, most), level)
    return affinity.nearest_ranks(
        queries,
        items,
        list(level_of),
        list(level_of.values()),
        metric="l2",
        exclude_self=exclude_self,
    )


def _contents(relation: Affinity) -> list[np.ndarray]:
    """The arrays of an affinity; of a kind unknown here, the levels of an even sample."""
    arrays = [value for value in vars(relation).values() if isinstance(value, np.ndarray)]
    if type(relation).__module__.startswith("rankbits.affinity"):
        return arrays
    rows = even_sample(relation.shape[0])
    return [relation.levels, relation.block(rows, np.arange(relation.shape[1]))]


def even_sample(n: int) -> np.ndarray:
    """Positions of at most 512 of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    step = max(1, _BLOCK_CELLS // max(len(rows), 1))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _narrowest(levels: np.ndarray) -> type[np.generic]:
    """The narrowest type that torch and the levels share."""
    top = int(levels[-1])
    return np.uint8 if top < 1 << 8 else np.int32 if top < 1 << 31 else np.int64
