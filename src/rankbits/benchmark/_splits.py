"""Splits: which rows are queries, which the database, and on which of it a method may learn.

A rule says how many rows of which kind; a seed says which. Rows are shuffled before they are drawn,
since files are often sorted by class.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from rankbits.datasets import Labelled
from rankbits.errors import InputError


@dataclass(frozen=True, eq=False)
class ProtocolSplit:
    """Rows of each role, ascending; training rows are rows of the database, no query is.

    Attributes
    ----------
    queries, database, training : ndarray of int64
    """

    queries: np.ndarray
    database: np.ndarray
    training: np.ndarray

    @property
    def hash(self) -> str:
        """SHA-256 of the roles and their rows as 64-bit little-endian numbers."""
        state = hashlib.sha256()
        for role in ("queries", "database", "training"):
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


SplitRule = PerClass | StandardParts | Sizes
