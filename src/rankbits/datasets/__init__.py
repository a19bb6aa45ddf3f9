"""Datasets: arrays, codes, labels and judgements out of files, and a small set to try things on.

Every reader takes `.npy` (memory-mapped), `.npz`, `.parquet` or `.safetensors`; where a file holds
several arrays, `key=` or `FILE:KEY` names one. Nothing is ever unpickled. A file that is truncated,
damaged or of another kind is a `FileFormatError` in one sentence.
"""

from rankbits.datasets._arrays import load_array
from rankbits.datasets._codes import load_codes
from rankbits.datasets._digits import Split, digits
from rankbits.datasets._labels import load_judgements, load_labels
from rankbits.datasets._parquet import load_columns

__all__ = [
    "Split",
    "digits",
    "load_array",
    "load_codes",
    "load_columns",
    "load_judgements",
    "load_labels",
]
