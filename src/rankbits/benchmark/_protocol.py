"""What a protocol is: everything about an experiment but the method and the seed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rankbits.benchmark._layouts import layout_of
from rankbits.benchmark._published import Published
from rankbits.benchmark._relevance import RelevanceRule
from rankbits.benchmark._splits import SplitRule


@dataclass(frozen=True)
class Protocol:
    """An experiment that anybody can repeat: everything but the method and the seed.

    Attributes
    ----------
    name, title : what to call it
    data : name of the data set, which is the start of the name of its file of features
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

    @property
    def files(self) -> str:
        """What to look for in a folder of data."""
        return layout_of(self.data).files

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
