"""Search in Hamming space: exact, ordered by (distance, id), over collections that change.

- `HammingIndex`: the k nearest, every item of the k-th tie, everything within a radius.
- `Collection`: the same on disk, changed by one process while many search it.
- `TablesIndex`: the same for items that have a code in each of several tables.
- `Matches`: what every search returns; `SearchPlan`: how to search, as `compress` recommends it.
- `weighted_bits`, `asymmetric`, `vectors`: a finer distance to put the nearest items in order.
- `HammingNeighbors`: scikit-learn's interface to neighbors, imported at first use.
- `engines`: the kinds of search, and how to add one.
- `interop`: to and from faiss, usearch, NumPy, Parquet, LanceDB and PostgreSQL.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankbits.index.hamming import HammingIndex
from rankbits.index.plan import SearchPlan
from rankbits.index.reranking.base import Candidates, Rerank
from rankbits.index.reranking.bits import asymmetric, weighted_bits
from rankbits.index.reranking.vectors import vectors
from rankbits.index.results import Matches
from rankbits.index.tables import TablesIndex

if TYPE_CHECKING:
    from rankbits.index import interop as interop
    from rankbits.index.collection import Collection
    from rankbits.index.neighbors import HammingNeighbors

__all__ = [
    "Candidates",
    "Collection",
    "HammingIndex",
    "HammingNeighbors",
    "Matches",
    "Rerank",
    "SearchPlan",
    "TablesIndex",
    "asymmetric",
    "vectors",
    "weighted_bits",
]


_LAZY = {"Collection": "collection", "HammingNeighbors": "neighbors"}


def __getattr__(name: str) -> Any:
    """Import only now what brings SQLite or scikit-learn along."""
    if name in _LAZY:
        return getattr(import_module(f"rankbits.index.{_LAZY[name]}"), name)
    if name == "interop":
        return import_module("rankbits.index.interop")
    raise AttributeError(f"module 'rankbits.index' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is there already, and what comes at first use."""
    return sorted({*globals(), *__all__, "interop"})
