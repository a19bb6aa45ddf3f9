"""Engines that were built, by segment, kind and options.

A segment never changes, so an engine of it serves every state that has the segment.
"""

import threading
from collections.abc import Iterable
from typing import Any

from rankbits.index import engines
from rankbits.index.engines.base import Engine, Options
from rankbits.index.store.segment import Segment

FEW = 2_000  # items: a segment of so few is scanned, whatever the kind
_NO_OPTIONS = Options()


class EngineCache:
    """The engines of the segments of one index."""

    def __init__(self) -> None:
        self._engines: dict[Segment, dict[tuple[Any, ...], Engine]] = {}
        self._lock = threading.RLock()

    def engine(self, segment: Segment, kind: str, options: Options, n_threads: int) -> Engine:
        """The engine of a segment, built at first use."""
        if len(segment) < FEW:
            kind, options = "scan", _NO_OPTIONS
        key = (kind, *options.build_key)
        engine = self._engines.get(segment, {}).get(key)
        if engine is not None:
            return engine
        with self._lock:
            built = self._engines.setdefault(segment, {})
            if key not in built:
                built[key] = engines.get(kind)(segment, options, n_threads)
            return built[key]

    def retain(self, segments: Iterable[Segment]) -> None:
        """Forget the engines of all other segments."""
        with self._lock:
            alive = set(segments)
            self._engines = {s: built for s, built in self._engines.items() if s in alive}

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: nothing, since engines can be built again."""
        return {}

    def __setstate__(self, content: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]

    @property
    def n_bytes(self) -> int:
        """Memory of all engines."""
        with self._lock:
            return sum(e.n_bytes for built in self._engines.values() for e in built.values())
