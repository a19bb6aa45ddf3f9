"""Which engine searches a part, by the kind of the index."""

from rankbits.index import _mih
from rankbits.index._ivf import Ivf
from rankbits.index._part import Engine, Part, Scan
from rankbits.index._planner import Auto

KINDS = ("auto", "scan", "mih", "ivf")
_FEW = 2_000  # items: a part of so few is scanned, whatever the kind


def engine_of(kind: str, part: Part, n_threads: int, n_lists: int | None = None) -> Engine:
    """The engine of a part, made at first use."""
    if kind not in part.engines:
        part.engines[kind] = _made(kind, part, n_threads, n_lists)
    return part.engines[kind]


def _made(kind: str, part: Part, n_threads: int, n_lists: int | None) -> Engine:
    if kind == "scan" or len(part.segment) < _FEW:
        return Scan(part.segment)
    if kind == "mih":
        return _mih.build(part.segment, n_threads)
    if kind == "ivf":
        return Ivf(part.segment, n_threads, n_lists)
    return Auto(part.segment)
