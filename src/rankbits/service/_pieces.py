"""How much of a search is one piece: what takes some milliseconds, whatever the request asks for.

The numbers are bytes of codes that a thread compares in two to five milliseconds. Fewer would make
batches slower: a scan reads all codes, for 64 queries as for one.
"""

_COMPARED = {"bits": 1 << 29, "weights": 1 << 28, "counts": 1 << 24}
_LEAST = {"bits": 32, "weights": 32, "counts": 1}  # a scan of few queries waits for memory
_RESULTS = 10_000  # items that one piece returns
_CANDIDATES = 1 << 14  # items that one piece scores


def queries_at_once(kind: str, n_bytes: int, k: int = 1) -> int:
    """Queries of one piece: the kind of comparison, bytes of all codes, items of each query."""
    most = max(_LEAST[kind], _COMPARED[kind] // max(1, n_bytes))
    return max(1, min(most, _RESULTS // max(1, k)))


def candidates_at_once(pool: int) -> int:
    """Queries of one piece, of which each has so many candidates."""
    return max(1, _CANDIDATES // pool)
