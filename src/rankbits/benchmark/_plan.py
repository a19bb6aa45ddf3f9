"""The plan of a benchmark: every run with its method, code length, seeds and parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankbits import _check
from rankbits.benchmark._protocol import Protocol
from rankbits.codes import MAX_BITS
from rankbits.errors import InputError


@dataclass(frozen=True)
class PlannedRun:
    """One run: a method of one code length on one split, with one seed."""

    method: str
    bits: int
    split_seed: int
    seed: int
    params: Mapping[str, Any]


def plan_runs(
    chosen: Protocol,
    methods: Iterable[str] | str | None,
    bits: Iterable[int] | int | None,
    seeds: int,
    split_seeds: Iterable[int] | None,
    params: dict[str, Any],
) -> list[PlannedRun]:
    """All runs, by method and code length; whatever is wrong with one is said before any work."""
    several = chosen.bits if bits is None else bits if isinstance(bits, Iterable) else (bits,)
    lengths = [_check.whole("bits", length, 1, MAX_BITS) for length in several]
    method_names = (
        [methods]
        if isinstance(methods, str)
        else list(chosen.methods if methods is None else methods)
    )
    of_method = {method: _params(chosen, method, method_names, params) for method in method_names}
    if not lengths or not method_names:
        raise InputError("methods and bits must not be empty; leave them out for the protocol's")
    for method, method_params in of_method.items():
        create_method(PlannedRun(method, lengths[0], 0, 0, method_params), None)
    n_seeds = _check.whole("seeds", seeds, 1)
    pairs = [(seed, seed) for seed in range(n_seeds)]
    if split_seeds is not None:
        splits = [_check.whole("split_seeds", seed, 0) for seed in split_seeds]
        pairs = [(split, seed) for split in dict.fromkeys(splits) for seed in range(n_seeds)]
    return [
        PlannedRun(method, length, split, seed, of_method[method])
        for method in dict.fromkeys(method_names)
        for length in dict.fromkeys(lengths)
        for split, seed in pairs
    ]


def _params(
    chosen: Protocol, method: str, method_names: list[str], params: dict[str, Any]
) -> dict[str, Any]:
    """Parameters of one method: the protocol's, those for all methods, those for this one."""
    values = dict(chosen.defaults.get(method, {}))
    own: dict[str, Any] = {}
    for key, value in params.items():
        owner, dot, name = key.rpartition(".")
        if dot and owner not in method_names:
            raise InputError(f"params must be of a method that is run, {key!r} is of {owner!r}")
        if not dot:
            values[name] = value
        elif owner == method:
            own[name] = value
    for name in ("n_bits", "random_state"):
        if name in values or name in own:
            raise InputError(f"params must not have {name}: bits and seeds say it")
    return {**values, **own}


def create_method(planned: PlannedRun, n_threads: int | None) -> Any:
    """The method of a run, not yet fitted."""
    from rankbits.methods import get

    hasher = get(planned.method, **planned.params)
    known = hasher.get_params(deep=False)
    hasher.set_params(n_bits=planned.bits)
    if "random_state" in known:
        hasher.set_params(random_state=planned.seed)
    if n_threads is not None and "n_threads" in known and "n_threads" not in planned.params:
        hasher.set_params(n_threads=n_threads)
    return hasher
