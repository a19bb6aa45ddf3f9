"""Search in Hamming space: exact, ordered by (distance, id), over collections that change.

- `HammingIndex`: the k nearest, every item of the k-th tie, everything within a radius.
- `Collection`: the same on disk, changed by one process while many search it.
- `TablesIndex`: the same for items that have a code in each of several tables.
- `weighted_bits`, `asymmetric`, `vectors`: a finer score to put the nearest items in order.
"""

from rankbits.index._collection import Collection
from rankbits.index._hamming import HammingIndex
from rankbits.index._rescore import Candidates, Rescore, asymmetric, weighted_bits
from rankbits.index._results import Ragged
from rankbits.index._tables import TablesIndex
from rankbits.index._vectors import vectors

__all__ = [
    "Candidates",
    "Collection",
    "HammingIndex",
    "Ragged",
    "Rescore",
    "TablesIndex",
    "asymmetric",
    "vectors",
    "weighted_bits",
]
