"""The scan: compares a query with every code."""

from typing import Any

import numpy as np

from rankbits import _native
from rankbits.index.engines.base import Engine, Request
from rankbits.index.results import Ragged
from rankbits.index.store.segment import Segment

_WORTH_A_THREAD = 1 << 22  # bytes compared, some 50 µs; a thread takes 5 to wake


class Scan(Engine):
    """Goes over all codes of a segment."""

    name = "scan"
    summary = "compares with every code"

    def __init__(self, segment: Segment, options: Any, n_threads: int) -> None:
        self._segment = segment

    def search(self, queries: np.ndarray, allowed: np.ndarray, request: Request) -> Ragged:
        """Exact, whatever is asked."""
        n_compared = len(queries) * self._segment.planes.nbytes
        answer = _native.scan(
            self._segment.planes,
            len(self._segment),
            self._segment.n_bits,
            allowed,
            queries,
            request.k,
            request.radius,
            request.is_complete,
            n_threads=min(request.n_threads, 1 + n_compared // _WORTH_A_THREAD),
        )
        return Ragged(*answer)
