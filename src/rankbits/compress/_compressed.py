"""A compressed folder, opened: its numbers, and a search as it recommends."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.compress._folder import read_result
from rankbits.compress._inputs import open_vectors
from rankbits.compress._searching import CodeSearch, plan_of
from rankbits.errors import InputError
from rankbits.index import HammingIndex, Matches, SearchPlan
from rankbits.methods.base import BaseHasher


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
    def plan(self) -> SearchPlan:
        """How the folder recommends to search."""
        chosen = self.recommendation
        return plan_of(chosen["query"], chosen["pool"], self.result["similarity"])

    @property
    def model(self) -> BaseHasher:
        """The fitted method that encodes items and queries."""
        return self._opened().hasher

    @property
    def index(self) -> HammingIndex:
        """The codes of all items; their ids are the rows of the items."""
        return self._opened().index

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        plan: SearchPlan | None = None,
        pool: int | None = None,
        **how: Any,
    ) -> Matches:
        """The k nearest items of each query, as recommended.

        Parameters
        ----------
        queries : array-like of shape (n, d)
            Vectors as those of the items.
        k : int, default=10
            Number of items.
        plan : SearchPlan or None, default=None
            How to search; None takes `plan`, which the folder recommends.
        pool : int or None, default=None
            How many items are re-ranked by their original vectors; None takes the number of the
            plan, and at least k.
        how : keyword arguments
            More arguments of `HammingIndex.search`, such as n_threads and allowed.

        Returns
        -------
        matches : Matches
            `distances, ids = ...`: by the original vectors where items are re-ranked, else by the
            codes. Ids are rows of the items.
        """
        search, plan = self._opened(), self.plan if plan is None else plan
        vectors = open_vectors("queries", queries)
        if vectors.shape[1] != self.result["data"]["width"]:
            raise InputError(
                f"queries must have {self.result['data']['width']} numbers as the items have, got "
                f"{vectors.shape[1]}"
            )
        k = min(_check.whole("k", k, 1), len(search.index))
        if pool is not None:
            pool = _check.whole("pool", pool, k)
            plan = plan if plan.rerank is None else plan.changed(pool=pool)
        return search.search(vectors, k, plan, **how)

    def __repr__(self) -> str:
        return f"Compressed({str(self.folder)!r}: {self.recommendation['sentence']})"

    def _opened(self) -> CodeSearch:
        """Model, index and vectors, opened once."""
        if self._search is None:
            from rankbits import methods

            self._search = CodeSearch(
                methods.load(self.folder / "model"),
                HammingIndex.load(self.folder / "index", kind="scan"),
                self.vectors,
            )
        return self._search

    @cached_property
    def vectors(self) -> np.ndarray | None:
        """The original vectors of the items, None where no file has them any more or ever had."""
        path = Path(self.result["vectors"] or self.folder / "vectors.npy")
        if self.plan.rerank is None and not path.exists():
            return None
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
