"""An engine without a line of native code: what a new file in `engines` has to say, and no more."""

import numpy as np

from rankbits.index.engines import Engine
from rankbits.index.results import Ragged
from rankbits.index.store.words import mask_of


class PlainEngine(Engine):
    """Compares bytes with NumPy and sorts with Python."""

    name = "plain"
    summary = "compares with every code, slowly"

    def __init__(self, segment, options, n_threads):
        self._segment = segment

    def search(self, queries, allowed, request):
        n = len(self._segment)
        is_allowed = mask_of(allowed, n) if len(allowed) else np.ones(n, bool)
        rows = np.flatnonzero(is_allowed).tolist()
        codes = self._segment.codes().packed
        offsets, pairs = [0], []
        for query in queries:
            distances = np.bitwise_count(codes ^ query).sum(axis=1).tolist()
            ranked = sorted((distances[row], row) for row in rows)
            ranked = [pair for pair in ranked if pair[0] <= request.radius]
            if request.k and len(ranked) > request.k:
                last = ranked[request.k - 1][0] if request.is_complete else -1
                tied = [pair for pair in ranked[request.k :] if pair[0] == last]
                ranked = ranked[: request.k] + tied
            pairs += ranked
            offsets.append(len(pairs))
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return Ragged(np.array(offsets, np.int64), table[:, 0].astype(np.int32), table[:, 1].copy())
