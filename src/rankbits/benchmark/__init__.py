"""Benchmarks: protocols as data, and one function that runs methods under them.

    result = rankbits.benchmark.run("cifar10-s1", "data", ["itq", "talr-ap"], 32, seeds=3)
    result["summary"]           # mean and spread over the seeds
    result["protocol"]          # its rules, and what the papers report

A protocol is data, a split rule, a relevance rule, code lengths, metrics, and published values.
`register` adds one from outside. `load_results` reads a folder of results back.
`write_split` and `evaluate_codes` are for codes that were made elsewhere.
"""

from rankbits.benchmark._given_codes import evaluate_codes, write_split
from rankbits.benchmark._protocol import Protocol
from rankbits.benchmark._protocols import find_protocol, protocol, protocols, register
from rankbits.benchmark._published import Published
from rankbits.benchmark._relevance import (
    Judged,
    Near,
    NestedClasses,
    SameClass,
    SameSuperclass,
    SharedTags,
)
from rankbits.benchmark._results import ResultCell, Results, Score, StoredRun, load_results
from rankbits.benchmark._run import run
from rankbits.benchmark._sources import has_data, require_data
from rankbits.benchmark._splits import (
    LabelledPerClass,
    NewClasses,
    PerClass,
    PerTag,
    ProtocolSplit,
    Sizes,
    SplitRule,
    StandardParts,
    StandardQueries,
)

__all__ = [
    "Judged",
    "LabelledPerClass",
    "Near",
    "NestedClasses",
    "NewClasses",
    "PerClass",
    "PerTag",
    "Protocol",
    "ProtocolSplit",
    "Published",
    "ResultCell",
    "Results",
    "SameClass",
    "SameSuperclass",
    "Score",
    "SharedTags",
    "Sizes",
    "SplitRule",
    "StandardParts",
    "StandardQueries",
    "StoredRun",
    "evaluate_codes",
    "find_protocol",
    "has_data",
    "load_results",
    "protocol",
    "protocols",
    "register",
    "require_data",
    "run",
    "write_split",
]
