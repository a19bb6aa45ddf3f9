"""What a server grants one request, and how many at once."""

from dataclasses import dataclass, fields
from typing import Any

from rankbits import _check


@dataclass(frozen=True)
class Limits:
    """Bounds of requests; what exceeds one is refused with a status that says which.

    Attributes
    ----------
    body_bytes : int, default=16 MiB
        Size of a request's body, more is status 413; and of the fields that an answer holds, more
        is status 422.
    batch : int, default=1024
        Queries of a search, rows to encode, or items to upsert. More is status 422.
    k : int, default=1000
        The k of a search. More is status 422.
    results : int, default=200,000
        Items that one answer may hold for all of its queries, and numbers of its histograms. More
        is status 422.
    candidates : int, default=2,000,000
        Items that a search with `rerank` may compare again: queries times `pool`. More is status
        422.
    comparisons : int, default=2,000,000,000
        Queries times items of the collection, where a radius, complete ties or a histogram mean
        that items are counted first. More is status 422.
    allowed : int, default=1,000,000
        Ids of `allowed`. More is status 422.
    seconds : int, default=30
        Time of a request, from its first byte to its answer. A body that takes longer to arrive is
        status 408, an answer that takes longer is 503.
    requests : int, default=256
        Requests at once. More is status 429.
    memory : int, default=1 GiB
        Bytes that large requests may take together, as estimated by their bodies and answers. Those
        that find too little wait, and get status 503 when their time is over or too many wait.
    pixels : int, default=40,000,000
        Pixels of the pictures of a request, and of a picture that is made smaller. More is 422.
    characters : int, default=10,000
        Length of a text. More is status 422.
    connections : int, default=1000
        Connections at once, fewer where the limit of open files leaves less room. When there are
        more, the one that has waited longest for its client is closed.
    header_bytes : int, default=64 KiB
        Size of a request's line and headers together. More is status 431.
    header_seconds : int, default=10
        Time from the first byte of a request to the end of its headers, and of a new connection to
        its first request. More is status 408.
    idle_seconds : int, default=10
        How long a client may pause: between two requests, within a body (status 408), and while it
        takes an answer.
    """

    body_bytes: int = 1 << 24
    batch: int = 1024
    k: int = 1000
    results: int = 200_000
    candidates: int = 2_000_000
    comparisons: int = 2_000_000_000
    allowed: int = 1_000_000
    seconds: int = 30
    requests: int = 256
    memory: int = 1 << 30
    pixels: int = 40_000_000
    characters: int = 10_000
    connections: int = 1000
    header_bytes: int = 1 << 16
    header_seconds: int = 10
    idle_seconds: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            _check.whole(field.name, getattr(self, field.name), 1, 1 << 40)

    def to_dict(self) -> dict[str, Any]:
        """All bounds by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
