"""Binary codes: bits packed into bytes, how far apart they are, and the files that hold them.

- `BinaryCodes`: packed codes that do not change.
- `Queries`: queries as bits, as real-valued weights and as vectors.
- `check_sides`: whether codes are for queries or for items, if a model encodes them differently.
- `hamming_distances`, `smallest_distances`: every distance, for small blocks.
- `files`: the one codec of code files, .npy, .npz, .parquet and .safetensors.
"""

from rankbits.codes.binary_codes import BinaryCodes
from rankbits.codes.distances import (
    hamming_distances,
    require_same_bits,
    require_unchanged,
    smallest_distances,
)
from rankbits.codes.note import MAX_BITS
from rankbits.codes.queries import Queries
from rankbits.codes.sides import check_sides

__all__ = [
    "MAX_BITS",
    "BinaryCodes",
    "Queries",
    "check_sides",
    "hamming_distances",
    "require_same_bits",
    "require_unchanged",
    "smallest_distances",
]
