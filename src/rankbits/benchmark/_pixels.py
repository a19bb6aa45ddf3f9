"""Protocols from pixels: the settings of CIFAR-10, with networks that learn from the pictures."""

from rankbits.benchmark import _published as papers
from rankbits.benchmark._protocol import Protocol
from rankbits.benchmark._relevance import SameClass
from rankbits.benchmark._splits import LabelledPerClass, PerClass, StandardParts

_TUNED = {"talr-ap": {"encoder": "backbone", "fine_tune": "last:11", "image_size": 224}}
_FROM_SCRATCH = {"talr-ap": {"encoder": "resnet", "hidden": (64, 256, 256), "epochs": 16}}
_FILE = "name a file or folder of pictures as data, not of features"
PIXELS = (
    Protocol(
        "cifar10-s1-pixels",
        "CIFAR-10, setting 1, from pixels: tuned networks, 500 labeled pictures a class",
        "cifar10",
        PerClass(queries=100, training=500),
        SameClass(),
        (12, 24, 32, 48),
        ("AP",),
        ("talr-ap",),
        (papers.CIFAR10_S1,),
        defaults=_TUNED,
        note=f"the splits of cifar10-s1; {_FILE}",
    ),
    Protocol(
        "cifar10-s1-semi",
        "CIFAR-10, setting 1, semi-supervised: all pictures of the database, 500 labels a class",
        "cifar10",
        LabelledPerClass(queries=100, training=500),
        SameClass(),
        (12, 24, 32, 48),
        ("AP",),
        ("talr-ap",),
        defaults=_TUNED,
        note="queries, database and labels of cifar10-s1, but the fit sees all pictures of the "
        f"database, without labels where it has none: not to be compared with it; {_FILE}",
    ),
    Protocol(
        "cifar10-s2-pixels",
        "CIFAR-10, setting 2, from pixels: a residual network from scratch",
        "cifar10",
        StandardParts(),
        SameClass(),
        (16, 24, 32, 48),
        ("AP",),
        ("talr-ap",),
        (papers.CIFAR10_S2,),
        defaults=_FROM_SCRATCH,
        note=f"one split, whatever the seed; training rows are the database; {_FILE}",
    ),
)
