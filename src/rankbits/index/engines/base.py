"""What an engine is: it searches one segment, in a way that has a name.

A new engine is one file with one class, and a line in `rankbits.index.engines`. The command line,
the documentation and `HammingNeighbors` read its name, its options and whether it is exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rankbits.errors import InputError
from rankbits.index.results import Ragged
from rankbits.index.store.segment import Segment

QUERIES_A_THREAD = 4  # of engines that look at few items: waking a thread for fewer does not pay
SEARCH_OPTION = {"is_for_search": True}  # metadata of an option that a single search may change


@dataclass(frozen=True)
class Options:
    """Options of an engine, checked when they are made; subclasses add fields with defaults.

    An option that building depends on is part of what an engine is cached by. One that only a
    search depends on has SEARCH_OPTION as the metadata of its field.
    """

    def changed(self, kind: str, options: Mapping[str, Any], *, in_search: bool = False) -> Self:
        """The same with some options replaced; an unknown one is an error."""
        if not options:
            return self
        known = [f.name for f in fields(self) if not in_search or f.metadata.get("is_for_search")]
        for name in options:
            if name not in known:
                where = "a search of kind" if in_search else "kind"
                takes = ", ".join(known) if known else "none"
                raise InputError(f"{where} {kind!r} has no option {name!r}; its options: {takes}")
        return replace(self, **options)

    @cached_property
    def build_key(self) -> tuple[Any, ...]:
        """The values that building depends on."""
        return tuple(
            getattr(self, f.name) for f in fields(self) if not f.metadata.get("is_for_search")
        )


class Request(NamedTuple):
    """What a search asks for: the k nearest (0: all) within a radius, with ties of the k-th or not.

    Attributes
    ----------
    k, radius, is_complete : as above
    n_threads : threads that the search may use
    options : of the engine's options_class
    """

    k: int
    radius: int
    is_complete: bool
    n_threads: int
    options: Any


class Engine(ABC):
    """Searches one segment.

    Attributes
    ----------
    name : the kind, as users write it
    is_exact : whether it returns the same as a scan
    summary : one sentence for help texts
    options_class : the class of its options
    """

    name: ClassVar[str]
    is_exact: ClassVar[bool] = True
    summary: ClassVar[str]
    options_class: ClassVar[type[Options]] = Options

    @abstractmethod
    def __init__(self, segment: Segment, options: Any, n_threads: int) -> None:
        """Build whatever a search needs; `n_threads` may be used for it."""

    @classmethod
    def bytes_needed(cls, segment: Segment, options: Any) -> int:
        """Memory, in bytes, that an engine will take in addition to the segment it searches.

        Parameters
        ----------
        segment : Segment
            Codes that the engine would search.
        options : Options
            Options that the engine would be built with, an instance of its `options_class`.

        Returns
        -------
        n_bytes : int
            Number of bytes; 0 unless a subclass overrides this method.
        """
        return 0

    @property
    def n_bytes(self) -> int:
        """Memory beyond the segment's that it takes now."""
        return 0

    @abstractmethod
    def search(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> Ragged:
        """Rows in place of ids, in order of (distance, row).

        Parameters
        ----------
        queries : packed codes
        allowed : words with a bit for each row that may be returned; no words if all may
        request : what to return
        """

    def tune(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> None:
        """Measure on such queries, if there is anything to choose."""
        self.search(queries, allowed, request)
