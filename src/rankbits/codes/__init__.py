"""Binary codes: bits packed into bytes, how far apart they are, and the files that hold them.

- `BinaryCodes`: packed codes that do not change.
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

__all__ = [
    "MAX_BITS",
    "BinaryCodes",
    "hamming_distances",
    "require_same_bits",
    "require_unchanged",
    "smallest_distances",
]
