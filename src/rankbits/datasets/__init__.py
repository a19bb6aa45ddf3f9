"""Datasets: arrays, codes, labels and judgements from files, and a small set to try things on.

Every reader takes `.npy` (memory-mapped), `.npz`, `.parquet` or `.safetensors`; where a file holds
several arrays, `key=` or `FILE:KEY` names one. A file that is truncated, damaged or of another kind
is a `FileFormatError` in one sentence. Nothing is ever unpickled but the batches of CIFAR, and
those only as plain data.

Public data sets have their own layouts: `load_features`, `load_cifar`, `load_cifar_mosaics`,
`load_images`, `load_imagenet`, `load_labelme`, `load_nuswide`, `load_nuswide_features`,
`load_tiny_gist`, and for vectors of texts `load_requests` and `load_collection`.
"""

from rankbits.datasets._arrays import load_array
from rankbits.datasets._cifar import is_cifar_folder, load_cifar
from rankbits.datasets._codes import load_codes
from rankbits.datasets._digits import Split, digits
from rankbits.datasets._features import Labelled, load_features
from rankbits.datasets._ids import load_ids
from rankbits.datasets._imagenet import load_imagenet
from rankbits.datasets._labelme import load_labelme, load_labelme_distances
from rankbits.datasets._labels import load_judgements, load_labels
from rankbits.datasets._mosaics import load_cifar_mosaics
from rankbits.datasets._nuswide import TaggedImages, load_nuswide
from rankbits.datasets._nuswide_features import load_nuswide_features, load_nuswide_tags
from rankbits.datasets._parquet import load_columns
from rankbits.datasets._texts import load_collection, load_requests
from rankbits.datasets._tiny_gist import load_tiny_gist
from rankbits.datasets.pictures import Pictures, load_images

__all__ = [
    "Labelled",
    "Pictures",
    "Split",
    "TaggedImages",
    "digits",
    "is_cifar_folder",
    "load_array",
    "load_cifar",
    "load_cifar_mosaics",
    "load_codes",
    "load_collection",
    "load_columns",
    "load_features",
    "load_ids",
    "load_imagenet",
    "load_images",
    "load_judgements",
    "load_labelme",
    "load_labelme_distances",
    "load_labels",
    "load_nuswide",
    "load_nuswide_features",
    "load_nuswide_tags",
    "load_requests",
    "load_tiny_gist",
]
