"""Search in Hamming space: exact, ordered by (distance, id), over collections that change.

- `HammingIndex`: the k nearest, every item of the k-th tie, everything within a radius.
"""

from rankbits.index._hamming import HammingIndex
from rankbits.index._results import Ragged

__all__ = ["HammingIndex", "Ragged"]
