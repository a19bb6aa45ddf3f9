"""Engines: the ways to search a segment, by the name of their kind.

Each is one file that says its name, whether it is exact, its options, the memory it needs, and how
it searches. `register` adds one from outside.
"""

from rankbits import _check
from rankbits.index.engines.auto import Auto
from rankbits.index.engines.base import SEARCH_OPTION, Engine, Options, Request
from rankbits.index.engines.ivf import Ivf
from rankbits.index.engines.mih import Mih
from rankbits.index.engines.scan import Scan

__all__ = [
    "SEARCH_OPTION",
    "Engine",
    "Options",
    "Request",
    "exact_names",
    "get",
    "names",
    "register",
]

_ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Auto, Scan, Mih, Ivf)}


def names() -> tuple[str, ...]:
    """The kinds there are."""
    return tuple(_ENGINES)


def exact_names() -> tuple[str, ...]:
    """The kinds that return the same as a scan."""
    return tuple(name for name, engine in _ENGINES.items() if engine.is_exact)


def get(kind: str) -> type[Engine]:
    """The engine of a kind.

    Parameters
    ----------
    kind : str
        Name of the kind, one of `names()`. Any other is an InputError.

    Returns
    -------
    engine : type
        Subclass of `Engine`; nothing is built yet.
    """
    return _ENGINES[_check.choice("kind", kind, names())]


def register(engine: type[Engine]) -> type[Engine]:
    """Add an engine under its name; can be used as a decorator.

    Parameters
    ----------
    engine : type
        Subclass of `Engine`. It is added under its attribute `name`, and replaces an engine that
        has the same name.

    Returns
    -------
    engine : type
        The same class, as a decorator has to return it.
    """
    _ENGINES[engine.name] = engine
    return engine
