"""A compressed folder, opened: its numbers, and a search as it recommends."""

import os
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.compress._folder import read_result
from rankbits.compress._inputs import open_vectors
from rankbits.compress._searching import CodeSearch
from rankbits.errors import InputError
from rankbits.index import HammingIndex


class Compressed:
    """What `compress` has written, ready to be searched. Open it with `load`.

    Parameters
    ----------
    folder : str or path-like
        Folder that `compress` wrote.

    Attributes
    ----------
    folder : Path
        The folder.
    result : dict
        The content of its `result.json`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder, self.result = read_result(folder)
        self._search: CodeSearch | None = None

    @property
    def recommendation(self) -> dict[str, Any]:
        """The recommended candidate, whose codes the folder holds."""
        chosen: dict[str, Any] = self.result["recommendation"]
        return chosen

    @property
    def model(self) -> Any:
        """The fitted method that encodes items and queries."""
        return self._opened().hasher

    @property
    def index(self) -> HammingIndex:
        """The codes of all items; their ids are the rows of the items."""
        return self._opened().index

    def search(
        self, queries: Any, k: int = 10, *, pool: int | None = None, n_threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest items of each query, as recommended.

        Parameters
        ----------
        queries : array-like of shape (n, d)
            Vectors as those of the items.
        k : int, default=10
            Number of items.
        pool : int or None, default=None
            How many items are re-ranked by their original vectors; None takes the recommended
            number, and at least k.
        n_threads : int or None, default=None
            Number of threads; None takes all that this process may use.

        Returns
        -------
        distances : ndarray of float64, shape (n, k)
            By the original vectors where items are re-ranked, else by the codes. Smaller is
            nearer.
        ids : ndarray of int64, shape (n, k)
            Rows of the items, nearest first.
        """
        search, chosen = self._opened(), self.recommendation
        vectors = open_vectors("queries", queries)
        if vectors.shape[1] != self.result["data"]["width"]:
            raise InputError(
                f"queries must have {self.result['data']['width']} numbers as the items have, got "
                f"{vectors.shape[1]}"
            )
        k = min(_check.whole("k", k, 1), len(search.index))
        size = chosen["pool"] if pool is None else _check.whole("pool", pool, k)
        return search.search(vectors, k, chosen["query"], size, n_threads)

    def __repr__(self) -> str:
        return f"Compressed({str(self.folder)!r}: {self.recommendation['sentence']})"

    def _opened(self) -> CodeSearch:
        """Model, index and vectors, opened once."""
        if self._search is None:
            from rankbits import methods

            self._search = CodeSearch(
                methods.load(self.folder / "model"),
                HammingIndex.load(self.folder / "index", kind="scan"),
                self._vectors(),
                self.result["similarity"],
            )
        return self._search

    def _vectors(self) -> np.ndarray | None:
        """The original vectors, which only re-ranking needs."""
        if self.recommendation["pool"] is None:
            return None
        path = self.result["vectors"] or self.folder / "vectors.npy"
        vectors = open_vectors("items", path)
        expected = (self.result["data"]["items"], self.result["data"]["width"])
        if vectors.shape != expected:
            raise InputError(
                f"{path} must hold the items that were compressed, {expected[0]} of {expected[1]} "
                f"numbers, it holds {vectors.shape}"
            )
        return vectors


def load(folder: str | os.PathLike[str]) -> Compressed:
    """Open a compressed folder; nothing but its numbers is read before it is searched.

    Parameters
    ----------
    folder : str or path-like
        Folder that `compress` wrote.
    """
    return Compressed(folder)
