"""Queries in every form that a search can ask for: bits, real-valued weights, original vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes.binary_codes import BinaryCodes
from rankbits.errors import InputError

_FORMS = ("bits", "weights", "vectors")


@dataclass(frozen=True, eq=False)
class Queries:
    """The same queries in one or more forms; `hasher.as_queries(X)` makes all that a model has.

    Attributes
    ----------
    bits : BinaryCodes or None
        Codes, which are compared by Hamming distance.
    weights : ndarray of shape (n, n_bits) or (n, 16 * ceil(n_bits / 4)), or None
        Real-valued queries: how much each bit matters, and its sign. Or 16 numbers for every four
        bits, the one of their value being added.
    vectors : ndarray of shape (n, d) or None
        The original vectors, which re-ranking compares.
    correction : ndarray of shape (3, 256) or None
        How the factors of an item correct its score by weights; see `HammingIndex.search_real`.

    >>> queries = Queries(weights=np.array([[0.5, -2.0], [1.0, 1.0]]))
    >>> len(queries), queries[:1].weights.tolist()
    (2, [[0.5, -2.0]])
    """

    bits: BinaryCodes | None = None
    weights: np.ndarray | None = None
    vectors: np.ndarray | None = None
    correction: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("weights", "vectors"):
            values = getattr(self, name)
            if values is not None and not isinstance(values, np.ndarray):
                object.__setattr__(self, name, _check.array(name, values))
        sizes = {name: len(values) for name, values in self._forms().items()}
        if len(set(sizes.values())) != 1:
            words = ", ".join(f"{n} as {name}" for name, n in sizes.items()) or "none"
            raise InputError(f"queries must be the same in all of their forms, got {words}")

    def __len__(self) -> int:
        return len(next(iter(self._forms().values())))

    def __getitem__(self, rows: Any) -> "Queries":
        """Some of them, by a slice or by their numbers."""
        forms = {name: values[rows] for name, values in self._forms().items()}
        return Queries(**forms, correction=self.correction)

    def _forms(self) -> dict[str, Any]:
        return {name: values for name in _FORMS if (values := getattr(self, name)) is not None}


def queries_of(queries: Any, n_bits: int) -> Queries:
    """Queries as they are, or codes as queries: BinaryCodes or packed bytes."""
    if isinstance(queries, Queries):
        return queries
    if isinstance(queries, BinaryCodes):
        return Queries(queries)
    return Queries(BinaryCodes(_check.array("codes", queries), n_bits))
