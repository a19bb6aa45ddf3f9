"""Supervision: whatever says which rows are relevant to which, turned into one object.

The rule for y:
    None                       distances between the rows of X, cut into levels by their quantiles
    an object of affinity      levels over (X, X): dense, tags, neighbours, sparse judgements
    one dimension              class labels: integers or strings; relevant if equal
    two dimensions of 0 and 1  multi-hot: relevant if a tag is shared; graded, their number counts
A row is never relevant to itself.
"""

import hashlib
from typing import Any

import numpy as np

from rankbits import _check, affinity
from rankbits.affinity import Affinity
from rankbits.errors import InputError

SHARES = (0.05, 0.01, 0.002, 0.001)  # of the training distances, He et al., CVPR 2018
SHARE_LEVELS = (1, 2, 5, 10)
_BLOCK_CELLS = 1 << 22
_TABLE_CELLS = 1 << 27
_SAMPLE = 512


class Supervision:
    """Levels between the rows of a training set, and its classes or tags if y had them.

    Attributes
    ----------
    affinity : Affinity
        Over all rows of X; `rows` says which of them this object speaks of.
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
        found: np.ndarray = self.values[self.affinity.block(self.rows[queries], self.rows[items])]
        return found

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

        With `most`, a seeded sample of so many for a query that has more.
        """
        everything, rng = np.arange(len(self)), np.random.default_rng(0)
        counts, items = [0], [np.empty(0, np.int64)]
        for queries in _blocks(everything):
            levels = self.levels(queries, everything)
            levels[np.arange(len(queries)), queries] = 0
            for row in levels:
                found = np.flatnonzero(row)
                if most is not None and len(found) > most:
                    found = np.sort(rng.choice(found, most, replace=False))
                counts.append(len(found))
                items.append(found)
        return np.cumsum(counts), np.concatenate(items)

    def density(self) -> float:
        """Share of pairs that are relevant, on an even sample of the queries."""
        queries = _even_sample(len(self))
        levels = self.levels(queries, np.arange(len(self)))
        levels[np.arange(len(queries)), queries] = 0
        return np.count_nonzero(levels) / max(levels.size - len(queries), 1)

    def notes(self) -> dict[str, Any]:
        """What a report should say about y."""
        told: dict[str, Any] = {"y": self.kind, "levels": self.values.tolist()[:32]}
        if self.classes is not None:
            sizes = np.unique(self.classes, return_counts=True)[1]
            told["classes"] = len(sizes)
            told["classes_of_one"] = int((sizes == 1).sum())  # their items are negatives only
        return told

    def digest(self) -> str:
        """A hash of everything the levels depend on."""
        state = hashlib.blake2b(self.kind.encode(), digest_size=16)
        for part in (self.rows, self.classes, self.tags, *_contents(self.affinity)):
            if part is not None:
                state.update(np.ascontiguousarray(part).tobytes())
        return state.hexdigest()


def supervise(X: np.ndarray, y: Any, *, graded: bool = False) -> Supervision:
    """The supervision that y gives the rows of X, or one sentence on why it gives none."""
    n = len(X)
    if y is None:
        found = _by_distance(X)
    elif isinstance(y, Affinity):
        if y.shape != (n, n):
            raise InputError(f"y must be an affinity of shape {(n, n)} over (X, X), got {y.shape}")
        found = Supervision("affinity", y, np.arange(n))
    else:
        found = _by_labels(n, _check.array("y", y), graded)
    check_contrast(found)
    return found


def _by_labels(n: int, y: np.ndarray, graded: bool) -> Supervision:
    if y.ndim not in (1, 2):
        raise InputError(
            "y must be class labels of shape (n,), multi-hot of shape (n, L) or an affinity, got "
            f"{_check.describe(y)}"
        )
    if len(y) != n:
        raise InputError(f"y must have one label a row of X: {n} rows, {len(y)} labels")
    if y.ndim == 2:
        relation = affinity.tags(y, y, graded=graded)
        return Supervision("tags", relation, np.arange(n), tags=(y != 0).astype(np.uint8))
    labels = _class_labels(y)
    names, ids, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) == 1:
        raise InputError(
            "y must have at least two classes, got one: with every item relevant to every other, "
            "any codes rank equally well"
        )
    if sizes.max() == 1:
        raise InputError(
            f"y must have a class with two members, got {len(names)} classes of one: nothing is "
            "relevant to anything"
        )
    return Supervision("classes", affinity.classes(ids, ids), np.arange(n), classes=ids)


def _class_labels(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise InputError("y must be class labels, got NaN or infinity among them")
        if not (y == np.round(y)).all():
            raise InputError(f"y must be class labels: integers or strings, got {y.dtype} values")
        y = y.astype(np.int64)
    for kind, dtype in ((str, np.str_), (int | np.integer, np.int64)):
        if y.dtype == object and all(isinstance(label, kind) for label in y):
            y = y.astype(dtype)
    if y.dtype.kind not in "biuUS":
        raise InputError(f"y must be class labels: integers or strings, got {_check.describe(y)}")
    return y


def _by_distance(X: np.ndarray) -> Supervision:
    """Levels 1, 2, 5, 10 for the nearest 5, 1, 0.2 and 0.1 % of training pairs.

    Thresholds that coincide, as they do on few rows, keep the highest of their levels.
    """
    if X.ndim != 2:
        raise InputError("y must be given for images: distances between pixels say little")
    if len(X) < 2:
        raise InputError(f"X must have at least two rows to rank, got n_samples = {len(X)}")
    cuts = affinity.distance_quantiles(X, SHARES)
    kept: dict[float, int] = {}
    for cut, level in zip(cuts.tolist(), SHARE_LEVELS, strict=True):
        kept[cut] = max(level, kept.get(cut, 0))
    kept = {cut: level for cut, level in kept.items() if cut > 0}
    if not kept:
        raise InputError(
            "X must have rows that differ: without y, at least 5 % of its pairs are equal"
        )
    relation = affinity.neighbours(X, X, list(kept), list(kept.values()))
    return Supervision("distances", relation, np.arange(len(X)))


def check_contrast(found: Supervision) -> None:
    """Refuse supervision under which no ranking is better than another."""
    everything, has_positive, seen = np.arange(len(found)), False, set[int]()
    for queries in _blocks(everything):
        levels = found.levels(queries, everything).astype(np.int64)
        levels[np.arange(len(queries)), queries] = -1
        has_positive = has_positive or bool((levels > 0).any())
        seen |= set(np.unique(levels).tolist()) - {-1}
        if has_positive and len(seen) > 1:
            return
    if not has_positive:
        raise InputError("y must make some pair of rows relevant, got no positives at all")
    raise InputError(
        "y must make some pairs of rows more relevant than others, got one level for all of them"
    )


def _contents(relation: Affinity) -> list[np.ndarray]:
    """The arrays of an affinity; of a kind unknown here, the levels of an even sample."""
    arrays = [value for value in vars(relation).values() if isinstance(value, np.ndarray)]
    if type(relation).__module__.startswith("rankbits.affinity"):
        return arrays
    rows = _even_sample(relation.shape[0])
    return [relation.levels, relation.block(rows, np.arange(relation.shape[1]))]


def _even_sample(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    step = max(1, _BLOCK_CELLS // max(len(rows), 1))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _narrowest(levels: np.ndarray) -> type[np.generic]:
    """The narrowest type that torch and the levels share."""
    top = int(levels[-1])
    return np.uint8 if top < 1 << 8 else np.int32 if top < 1 << 31 else np.int64
