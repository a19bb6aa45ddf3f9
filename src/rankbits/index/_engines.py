"""Which engine searches a part, by the kind of the index."""

from rankbits.index._part import Engine, Part, Scan

KINDS = ("auto", "scan", "mih", "ivf")


def engine_of(kind: str, part: Part) -> Engine:
    """The engine of a part, made at first use."""
    if kind not in part.engines:
        part.engines[kind] = Scan(part.segment)
    return part.engines[kind]
