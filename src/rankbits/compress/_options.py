"""What the user of a compression chooses, checked before any work."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rankbits import _check
from rankbits.codes import MAX_BITS
from rankbits.compress._candidates import coders
from rankbits.compress._peers import require_faiss
from rankbits.compress._task import FEWEST_QUERIES
from rankbits.errors import InputError


@dataclass(frozen=True)
class Options:
    """The arguments that do not depend on the data, checked."""

    lengths: tuple[int, ...]
    keep: float
    methods: tuple[str, ...] | None
    pools: tuple[int, ...]
    has_peers: bool
    budget_seconds: float | None
    n_queries: int | None
    with_onnx: bool
    seed: int


def check_options(
    n_bytes: Any,
    keep: Any,
    methods: Any,
    pools: Any,
    peers: Any,
    budget: Any,
    n_queries: Any,
    onnx: Any,
    seed: Any,
) -> Options:
    """The options of `compress`; an InputError names the first that is wrong."""
    if not 0 < _check.number("keep", keep) <= 1:
        raise InputError(f"keep must be a share, above 0 and at most 1, got {keep}")
    options = Options(
        _lengths(n_bytes),
        float(keep),
        None if methods is None else tuple(coder.name for coder in coders(methods)),
        tuple(_check.whole("pools", pool, 1) for pool in pools),
        _check.flag("peers", peers),
        None if budget is None else 60 * _check.number("budget", budget, closed=False),
        None if n_queries is None else _check.whole("n_queries", n_queries, FEWEST_QUERIES),
        _check.flag("onnx", onnx),
        _check.whole("random_state", seed, 0),
    )
    if options.has_peers:
        require_faiss()
    return options


def _lengths(n_bytes: Iterable[int] | int) -> tuple[int, ...]:
    several = n_bytes if isinstance(n_bytes, Iterable) else (n_bytes,)
    lengths = sorted({_check.whole("n_bytes", length, 1, MAX_BITS // 8) for length in several})
    if not lengths:
        raise InputError("n_bytes must not be empty")
    return tuple(lengths)
