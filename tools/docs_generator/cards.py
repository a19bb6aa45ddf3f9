"""Cards of methods: what each is, learns from and takes, from what its class says of itself."""

import inspect
import re
from typing import Any

from docs_generator.markdown import code, table
from docs_generator.tables import first_sentence, learns_from, trains_by_gradient
from rankbits import methods

_COMMON = {"n_bits", "random_state", "verbose"}  # parameters that say nothing about a method
_SOURCE = re.compile(r"^\.\. \[\d+\] (.*(?:\n +\S.*)*)", re.MULTILINE)
_QUERIES = {"bits": "in bits", "real": "real-valued"}


def cards(names: str) -> str:
    """The cards of some methods, whose names are separated by spaces."""
    return "\n\n".join(card(name) for name in names.split())


def card(name: str) -> str:
    """A heading, what the method does, and a table of what there is to know before using it."""
    hasher = methods.get(name)
    cls = type(hasher)
    link = f"[{code(cls.__name__)}](reference/methods.md#rankbits.methods.{cls.__name__})"
    header = ["Class", link + (", needs torch" if trains_by_gradient(hasher) else "")]
    rows = [
        ["Learns from", learns_from(hasher)],
        ["Queries", " or ".join(_QUERIES[kind] for kind in hasher.query_kinds)],
        ["Parameters", ", ".join(code(text) for text in own_parameters(hasher))],
        ["Source", "; ".join(sources(cls))],
        ["Derived in", code(cls.__module__)],
    ]
    filled = [row for row in rows if row[1]]
    return "\n\n".join([f"### {name}", first_sentence(cls), table(header, filled)])


def own_parameters(hasher: Any) -> list[str]:
    """The parameters that the method does not share with others, with their defaults.

    >>> own_parameters(methods.get("itq"))
    ['n_iter=50']
    """
    shared = _COMMON
    if trains_by_gradient(hasher):
        from rankbits.methods.training.estimator import GradientHasher

        shared = _COMMON | set(inspect.signature(GradientHasher).parameters)
    parameters = inspect.signature(type(hasher)).parameters.values()
    return [f"{p.name}={p.default!r}" for p in parameters if p.name not in shared]


def sources(documented: Any) -> list[str]:
    """The references of a docstring, each in one line.

    >>> sources(type(methods.get("agh")))
    ['W. Liu, J. Wang, S. Kumar, S.-F. Chang, "Hashing with graphs", ICML 2011']
    """
    text = inspect.getdoc(documented) or ""
    return [" ".join(source.split()).removesuffix(".") for source in _SOURCE.findall(text)]
