"""The protocols: data, split rule, relevance, code lengths, metrics and the papers' numbers.

To add one, write an instance here; nothing else needs to know.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rankbits import _check
from rankbits.benchmark import _published as papers
from rankbits.benchmark._published import Published
from rankbits.benchmark._relevance import Near, RelevanceRule, SameClass, SharedTags
from rankbits.benchmark._splits import PerClass, Sizes, SplitRule, StandardParts

YARDSTICKS = ("lsh", "pcah", "itq", "sign")
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
            "published": [found.to_dict() for found in self.published],
        }


_PROTOCOLS = (
    Protocol(
        "cifar10-s1",
        "CIFAR-10, setting 1: 100 queries and 500 training rows a class",
        "cifar10",
        PerClass(queries=100, training=500),
        SameClass(),
        (12, 24, 32, 48),
        ("AP",),
        (*YARDSTICKS, "talr-ap"),
        (papers.CIFAR10_S1, papers.CIFAR10_LATER),
        note="drawn from all 60,000 rows; the database is all rows but the queries",
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
)


def protocols() -> tuple[Protocol, ...]:
    """All protocols.

    >>> [protocol.name for protocol in protocols()]
    ['cifar10-s1', 'cifar10-s2', 'corel5k-ap', 'corel5k-ndcg', 'distance-ndcg']
    """
    return _PROTOCOLS


def protocol(name: str | Protocol) -> Protocol:
    """A protocol by name; one that is made already comes back."""
    if isinstance(name, Protocol):
        return name
    known = {found.name: found for found in _PROTOCOLS}
    return known[_check.choice("protocol", name, tuple(known))]
