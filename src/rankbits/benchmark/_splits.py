"""Splits: which rows are queries, which the database, and on which of it a method may learn.

A rule says how many rows of which kind; a seed says which. Rows are shuffled before they are drawn,
since files are often sorted by class.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rankbits.datasets import Labelled
from rankbits.errors import InputError


@dataclass(frozen=True, eq=False)
class ProtocolSplit:
    """Rows of each role, ascending; training rows are rows of the database, no query is.

    Attributes
    ----------
    queries, database, training : ndarray of int64
    unlabelled : ndarray of int64
        Training rows whose labels a method does not see.
    kinds : mapping from a name to rows among the queries, whose metrics are also given apart
    """

    queries: np.ndarray
    database: np.ndarray
    training: np.ndarray
    unlabelled: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """SHA-256 of the roles and their rows as 64-bit little-endian numbers.

        Rows without labels count only where there are any: splits of before have none.
        """
        state = hashlib.sha256()
        roles = ("queries", "database", "training")
        for role in (*roles, "unlabelled") if len(self.unlabelled) else roles:
            rows = np.sort(getattr(self, role))
            state.update(f"{role} {len(rows)}\n".encode())
            state.update(rows.astype("<i8").tobytes())
        return state.hexdigest()


@dataclass(frozen=True)
class PerClass:
    """The same number of queries from each class; the rest is the database.

    Attributes
    ----------
    queries : number of queries of each class
    training : number of rows of each class, from the database, that a method may learn from
    """

    queries: int
    training: int

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """Draw from all rows, whatever their standard part."""
        order = np.random.default_rng(seed).permutation(len(data))
        queries, training = [], []
        for label in np.unique(data.y):
            rows = order[data.y[order] == label]
            if len(rows) < self.queries + self.training:
                raise InputError(
                    f"data must have at least {self.queries + self.training} rows of each class, "
                    f"class {label} has {len(rows)}"
                )
            queries.append(rows[: self.queries])
            training.append(rows[self.queries : self.queries + self.training])
        query_rows = np.sort(np.concatenate(queries))
        rest = np.setdiff1d(np.arange(len(data)), query_rows, assume_unique=True)
        return ProtocolSplit(query_rows, rest, np.sort(np.concatenate(training)))


@dataclass(frozen=True)
class LabelledPerClass(PerClass):
    """The same rows, but a method may learn from the whole database: these rows have labels.

    Attributes
    ----------
    queries : number of queries of each class
    training : number of rows of each class, from the database, whose labels a method may see
    """

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """Draw from all rows, whatever their standard part."""
        split = super().draw(data, seed)
        unlabelled = np.setdiff1d(split.database, split.training, assume_unique=True)
        return ProtocolSplit(split.queries, split.database, split.database, unlabelled)


@dataclass(frozen=True)
class PerTag:
    """So many queries and training rows for each tag; the rest is the database.

    A row is drawn once, for the first of its tags whose turn it is.

    Attributes
    ----------
    queries : number of queries drawn for each tag
    training : number of rows drawn for each tag, from the database, that a method may learn from
    """

    queries: int
    training: int

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """Draw from all rows, whatever their standard part."""
        if data.y.ndim != 2 or not data.y.shape[1]:
            raise InputError(f"data must have tags, shape (n, tags), got {data.y.shape}")
        order = np.random.default_rng(seed).permutation(len(data))
        is_free = np.ones(len(data), np.bool_)
        queries = self._drawn(data.y, order, is_free, self.queries)
        training = self._drawn(data.y, order, is_free, self.training)
        rest = np.setdiff1d(np.arange(len(data)), queries, assume_unique=True)
        return ProtocolSplit(queries, rest, training)

    def _drawn(
        self, tags: np.ndarray, order: np.ndarray, is_free: np.ndarray, n_rows: int
    ) -> np.ndarray:
        """Rows for each tag in turn; what is drawn is no longer free."""
        drawn = []
        for tag in range(tags.shape[1]):
            rows = order[(tags[order, tag] > 0) & is_free[order]][:n_rows]
            if len(rows) < n_rows:
                raise InputError(
                    f"data must have {self.queries} + {self.training} rows for each tag, tag {tag} "
                    f"has {int((tags[:, tag] > 0).sum())}, and some of them went to other tags"
                )
            is_free[rows] = False
            drawn.append(rows)
        return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class StandardQueries:
    """Test rows are queries, training rows the database; some rows of each class may be learned.

    Attributes
    ----------
    training : number of rows of each class, from the database, that a method may learn from
    """

    training: int

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """Queries and database are the same whatever the seed, which draws the training rows."""
        parts = StandardParts().draw(data, seed)
        order = np.random.default_rng(seed).permutation(parts.database)
        training = []
        for label in np.unique(data.y[parts.database]):
            rows = order[data.y[order] == label][: self.training]
            if len(rows) < self.training:
                raise InputError(
                    f"data must have {self.training} rows of each class in its training part, "
                    f"class {label} has {len(rows)}"
                )
            training.append(rows)
        return ProtocolSplit(parts.queries, parts.database, np.sort(np.concatenate(training)))


@dataclass(frozen=True)
class StandardParts:
    """The data set's own parts: test rows are queries, training rows are database and training."""

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """The same split whatever the seed."""
        queries, database = np.flatnonzero(data.is_test), np.flatnonzero(~data.is_test)
        if not len(queries) or not len(database):
            raise InputError(
                f"data must have a standard test part and a training part, got {len(queries)} and "
                f"{len(database)} rows"
            )
        return ProtocolSplit(queries, database, database)


@dataclass(frozen=True)
class Sizes:
    """Rows drawn at random, whatever their class; those that are not drawn are not used.

    Attributes
    ----------
    queries : number of queries
    database : number of rows of the database
    training : number of rows of the database that a method may learn from
    """

    queries: int
    database: int
    training: int

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """Draw from all rows, whatever their standard part."""
        n_needed = self.queries + self.database
        if len(data) < n_needed:
            raise InputError(f"data must have at least {n_needed} rows, got {len(data)}")
        order = np.random.default_rng(seed).permutation(len(data))[:n_needed]
        database = order[self.queries :]
        return ProtocolSplit(
            np.sort(order[: self.queries]), np.sort(database), np.sort(database[: self.training])
        )


@dataclass(frozen=True)
class NewClasses:
    """Some classes are known by labeled rows, the others are new; queries ask for both.

    Attributes
    ----------
    known : number of known classes
    training : number of rows of known classes, from the database, that are labeled
    queries : number of test rows of known classes that ask, and of new classes
    sees_items : whether a method may learn from all of the database, most of it without labels
    """

    known: int
    training: int
    queries: int
    sees_items: bool = False

    def draw(self, data: Labelled, seed: int) -> ProtocolSplit:
        """The database is the standard training part; the seed draws classes, queries, labels."""
        parts, rng = StandardParts().draw(data, seed), np.random.default_rng(seed)
        labels = np.unique(data.y)
        if data.y.ndim != 1 or len(labels) <= self.known:
            raise InputError(
                f"data must have classes, more than the {self.known} that are known, got labels of "
                f"shape {data.y.shape} with {len(labels)} values"
            )
        known, new = np.split(rng.permutation(labels), [self.known])
        kinds = {
            f"{name} classes": np.sort(
                _draw_of_classes(data, parts.queries, classes, self.queries, rng)
            )
            for name, classes in (("new", new), ("known", known))
        }
        queries = np.sort(np.concatenate(list(kinds.values())))
        labelled = np.sort(_draw_of_classes(data, parts.database, known, self.training, rng))
        if not self.sees_items:
            return ProtocolSplit(queries, parts.database, labelled, kinds=kinds)
        unlabelled = np.setdiff1d(parts.database, labelled, assume_unique=True)
        return ProtocolSplit(queries, parts.database, parts.database, unlabelled, kinds)


def _draw_of_classes(
    data: Labelled,
    rows: np.ndarray,
    classes: np.ndarray,
    n_rows: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """So many of the rows that are of these classes."""
    drawn = rng.permutation(rows[np.isin(data.y[rows], classes)])[:n_rows]
    if len(drawn) < n_rows:
        raise InputError(
            f"data must have {n_rows} rows of {len(classes)} classes in a part, got {len(drawn)}"
        )
    return drawn


SplitRule = (
    PerClass | LabelledPerClass | PerTag | StandardParts | StandardQueries | Sizes | NewClasses
)
