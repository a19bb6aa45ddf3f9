"""Benchmarks: protocols as data, and one function that runs methods under them.

    result = rankbits.benchmark.run("cifar10-s1", "data", ["itq", "talr-ap"], 32, seeds=3)
    result["summary"]           # mean and spread over the seeds
    result["protocol"]          # its rules, and what the papers report

A protocol is data, a split rule, a relevance rule, code lengths, metrics, and published values.
`register` adds one from outside.
"""

from rankbits.benchmark._protocols import Protocol, protocol, protocols, register
from rankbits.benchmark._published import Published
from rankbits.benchmark._relevance import Near, NestedClasses, SameClass, SameSuperclass, SharedTags
from rankbits.benchmark._run import run
from rankbits.benchmark._splits import PerClass, ProtocolSplit, Sizes, StandardParts

__all__ = [
    "Near",
    "NestedClasses",
    "PerClass",
    "Protocol",
    "ProtocolSplit",
    "Published",
    "SameClass",
    "SameSuperclass",
    "SharedTags",
    "Sizes",
    "StandardParts",
    "protocol",
    "protocols",
    "register",
    "run",
]
