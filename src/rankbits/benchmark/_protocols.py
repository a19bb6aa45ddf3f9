"""The protocols: data, split rule, relevance, code lengths, metrics and the papers' numbers.

To add one, write an instance here; nothing else needs to know. `register` adds one from outside.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rankbits import _check
from rankbits.benchmark import _published as papers
from rankbits.benchmark._published import Published
from rankbits.benchmark._relevance import (
    Near,
    NestedClasses,
    RelevanceRule,
    SameClass,
    SameSuperclass,
    SharedTags,
)
from rankbits.benchmark._splits import PerClass, Sizes, SplitRule, StandardParts
from rankbits.errors import InputError

YARDSTICKS = ("lsh", "pcah", "itq", "sign")
_UNSUPERVISED = ("pca-rr", "sh", "sklsh", "klsh", "agh", "sph", "density", "wtah", "cmh")
_LEARNED = (  # from classes; the order of docs/methods.md
    "talr-ap",
    "rsh",
    "lwh",
    "fasthash",
    "machash",
    "structhash",
    "dsh",
    "dsh-dispersed",
    "mihash",
    "dpsh",
    "dtsh",
    "hashnet",
    "csq",
    "orthohash",
    "dpn",
    "greedyhash",
)
_CLASSICAL = ("ksh", "sdh", "ssh", "bre", "mlh")
_DISPERSION = {name: {"posterior": 0, "epochs": 30} for name in ("dsh", "dsh-dispersed")}
_CURVES = tuple(f"{name}@{k}" for k in (100, 1000, 2000, 5000, 10000, 20000) for name in "PR")
_LINEAR = {"talr-ap": {"encoder": "linear"}, "talr-ndcg": {"encoder": "linear"}}


@dataclass(frozen=True)
class Protocol:
    """An experiment that anybody can repeat: everything but the method and the seed.

    Attributes
    ----------
    name, title : what to call it
    data : start of the name of its data file
    split : which rows are queries, database and training
    relevance : which rows are relevant to which
    bits, metrics, methods : what is run unless others are asked for; metrics are always measured
    defaults : parameters of a method under this protocol, by method
    published : tables of papers
    note : what a reader of its numbers must know
    """

    name: str
    title: str
    data: str
    split: SplitRule
    relevance: RelevanceRule
    bits: tuple[int, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...]
    published: tuple[Published, ...] = ()
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    def rules(self) -> dict[str, Any]:
        """Whatever a result depends on, ready for JSON."""
        return {
            "name": self.name,
            "data": self.data,
            "split": {"rule": type(self.split).__name__, **asdict(self.split)},
            "relevance": {"rule": type(self.relevance).__name__, **asdict(self.relevance)},
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            **self.rules(),
            "title": self.title,
            "bits": list(self.bits),
            "metrics": list(self.metrics),
            "methods": list(self.methods),
            "defaults": {name: dict(params) for name, params in self.defaults.items()},
            "note": self.note,
            "published": [result.to_dict() for result in self.published],
        }


_PROTOCOLS = (
    Protocol(
        "cifar10-s1",
        "CIFAR-10, setting 1: 100 queries and 500 training rows a class",
        "cifar10",
        PerClass(queries=100, training=500),
        SameClass(),
        (12, 24, 32, 48),
        ("AP", "AP.worst", "AP.best", "P@r2"),
        (*YARDSTICKS, *_UNSUPERVISED, *_LEARNED, *_CLASSICAL),
        (papers.CIFAR10_S1, papers.CIFAR10_LATER),
        note="drawn from all 60,000 rows; the database is all rows but the queries; all methods "
        "at all lengths take most of an hour",
    ),
    Protocol(
        "cifar10-s2",
        "CIFAR-10, setting 2: the standard test part searches the training part",
        "cifar10",
        StandardParts(),
        SameClass(),
        (16, 24, 32, 48),
        ("AP",),
        (*YARDSTICKS, "talr-ap"),
        (papers.CIFAR10_S2,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "corel5k-ap",
        "Corel5k: relevant if a tag is shared",
        "corel5k",
        StandardParts(),
        SharedTags(),
        (12, 24, 32, 48),
        ("AP",),
        (*YARDSTICKS, "talr-ap"),
        (papers.NUSWIDE_AP,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "corel5k-ndcg",
        "Corel5k: the level is the number of shared tags",
        "corel5k",
        StandardParts(),
        SharedTags(graded=True),
        (16, 32, 48, 64),
        ("nDCG",),
        (*YARDSTICKS, "talr-ap", "talr-ndcg"),
        (papers.NUSWIDE_NDCG,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "distance-ndcg",
        "CIFAR-10 features without labels: levels by distance",
        "cifar10",
        Sizes(queries=2000, database=20000, training=5000),
        Near(shares=(0.05, 0.01, 0.002, 0.001), levels=(1, 2, 5, 10)),
        (16, 32, 48, 64),
        ("nDCG", "nDCG(8-bit)", "nDCG(released)"),
        (*YARDSTICKS, "talr-ndcg"),
        (papers.LABELME,),
        _LINEAR,
        note="stands for LabelMe's setting; encoders are linear; labels are not used",
    ),
    Protocol(
        "rsh-cifar100",
        "CIFAR-100: level 2 for the same class, 1 for the same superclass; 1,100 labelled rows",
        "cifar100",
        Sizes(queries=1000, database=59000, training=1100),
        NestedClasses(),
        (8, 12, 16, 24, 32),
        ("nDCG(rsh)", "nDCG", "ACG@r3"),
        (*YARDSTICKS, "sh", "cmh", "wtah", "rsh"),
        note="drawn from all 60,000 rows; the paper's curves (ICCV 2013, Fig. 2) have no numbers",
    ),
    Protocol(
        "mlgap-cifar10",
        "CIFAR-10, standard parts: how good the near codes are, and how evenly used",
        "cifar10",
        StandardParts(),
        SameClass(),
        (12, 24),
        ("AP", "LGAP@r2"),
        ("lsh", "dsh", "dsh-dispersed"),
        (papers.MLGAP_CIFAR10, papers.MLGAP_CIFAR10_AP),
        _DISPERSION,
        note="one split, whatever the seed; bits read the rows, for 30 epochs",
    ),
    Protocol(
        "mlgap-cifar100",
        "CIFAR-100, standard parts: learned from classes in superclasses, judged by superclass",
        "cifar100",
        StandardParts(),
        SameSuperclass(),
        (12, 24),
        ("AP", "LGAP@r2"),
        ("lsh", "dsh", "dsh-dispersed"),
        (papers.MLGAP_CIFAR100, papers.MLGAP_CIFAR100_AP),
        _DISPERSION,
        note="one split, whatever the seed; levels of training are 2, 1, 0; 30 epochs",
    ),
    Protocol(
        "lwh-cifar10",
        "CIFAR-10, lists: 2,000 queries, 1,000 labelled training rows",
        "cifar10",
        Sizes(queries=2000, database=58000, training=1000),
        SameClass(),
        (8, 16, 24, 32, 48),
        ("AP", "P@r2", *_CURVES),
        (*YARDSTICKS, "sh", "klsh", "agh", "lwh"),
        note="drawn from all 60,000 rows; lwh takes 300 training rows as queries; the paper gives "
        "methods without labels 3,000 training rows",
    ),
)


_BY_NAME = {protocol.name: protocol for protocol in _PROTOCOLS}


def protocols() -> tuple[Protocol, ...]:
    """All protocols.

    >>> {"cifar10-s1", "mlgap-cifar100"} <= {protocol.name for protocol in protocols()}
    True
    """
    return tuple(_BY_NAME.values())


def protocol(name: str | Protocol) -> Protocol:
    """A protocol by name.

    Parameters
    ----------
    name : one of the names of `protocols`, or a `Protocol`, which is returned as it is
    """
    if isinstance(name, Protocol):
        return name
    return _BY_NAME[_check.choice("protocol", name, tuple(_BY_NAME))]


def register(protocol: Protocol) -> Protocol:
    """Add a protocol, so that `run` and the command line know its name.

    Parameters
    ----------
    protocol : Protocol
        Its name must be new.
    """
    if _BY_NAME.get(protocol.name, protocol) is not protocol:
        raise InputError(f"protocol {protocol.name!r} is registered already; choose another name")
    _BY_NAME[protocol.name] = protocol
    return protocol
