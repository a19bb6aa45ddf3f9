"""Running exhibits: the runs that their tables need, each once, those that are there skipped.

A run is a result file of `rankbits.benchmark`. Whatever is stopped goes on where it stopped.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits._inventory import write_own
from rankbits.benchmark import has_data, require_data
from rankbits.benchmark import run as run_protocol
from rankbits.errors import InputError
from rankbits.papers._exhibit import Exhibit, Part
from rankbits.papers._quick import data_of

FORMAT = 1
DEFAULT_SEEDS = 3


@dataclass(frozen=True)
class Progress:
    """How far a plan is.

    Attributes
    ----------
    done, total : runs
    seconds_left : estimate for the rest, None as long as nothing was measured
    result : of the run that ended
    is_old : whether it was there already
    """

    done: int
    total: int
    seconds_left: float | None
    result: dict[str, Any]
    is_old: bool


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class RunBatch:
    """Runs of one part that are made in one call."""

    part: Part
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    seeds: int

    def runs(self) -> Iterator[tuple[str, str, int, int]]:
        """What tells each run from the others."""
        for method in self.methods:
            for bits in self.bits:
                for seed in range(self.seeds):
                    yield self.part.protocol, self.part.label(method), bits, seed


@dataclass
class _Clock:
    """Seconds of the runs that were seen, by method, and which runs are left."""

    left: list[tuple[str, str, int, int]]
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def note(self, key: tuple[str, str, int, int], method: str, seconds: float) -> None:
        self.left = [other for other in self.left if other != key]
        self.seconds.setdefault(method, []).append(seconds)

    def estimate(self) -> float | None:
        """Each run that is left takes as long as others of its method, or as the mean of all."""
        everything = [value for values in self.seconds.values() for value in values]
        if not everything:
            return None
        usual = sum(everything) / len(everything)
        total = 0.0
        for _, label, _, _ in self.left:
            values = self.seconds.get(label.partition(" ")[0])
            total += sum(values) / len(values) if values else usual
        return total


def run(
    chosen: Iterable[Exhibit],
    out: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
    seeds: int | None = None,
    n_threads: int | None = None,
    report: Report | None = None,
    skip: Callable[[str], None] | None = None,
) -> None:
    """Make the result files of exhibits in a folder; those that are there are not made again.

    Parameters
    ----------
    chosen : exhibits
    out : folder for a file a run
    data : folder with the data; not needed if `quick`
    quick : whether to run small versions on embedded data
    methods, bits : only these; default: the paper's
    seeds : number of seeds; default: 3, or 1 if `quick`
    n_threads : of evaluation, of linear algebra, and of a method that has it
    report : called after each run
    skip : called with a sentence for each part whose data is missing; None makes that an error
    """
    exhibits = list(chosen)
    n_seeds = _check.whole("seeds", seeds or (1 if quick else DEFAULT_SEEDS), 1)
    folder = Path(out)
    batches = list(_batches(exhibits, quick, methods, bits, n_seeds))
    if not quick:
        batches = [batch for batch in batches if _has_data(batch, data, skip)]
    _write_exact(exhibits, folder)
    keys = list(dict.fromkeys(key for batch in batches for key in batch.runs()))
    clock, total = _Clock(keys), len(keys)

    def seen(batch: RunBatch, result: dict[str, Any], is_old: bool) -> None:
        settings = result["settings"]
        label = batch.part.label(settings["method"])
        key = (batch.part.protocol, label, settings["bits"], settings["seed"])
        clock.note(key, settings["method"], sum(result["seconds"].values()))
        if report is not None:
            report(Progress(total - len(clock.left), total, clock.estimate(), result, is_old))

    for batch in batches:
        run_protocol(
            batch.part.protocol,
            data_of(batch.part.rules) if quick else _check_data(data),
            batch.methods,
            batch.bits,
            seeds=batch.seeds,
            params=dict(batch.part.params),
            out=folder,
            n_threads=n_threads,
            report=lambda result, is_old, batch=batch: seen(batch, result, is_old),  # type: ignore[misc]
        )


def _check_data(data: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    if data is None:
        raise InputError("data must name the folder with the data, or give quick instead")
    return data


def _batches(
    chosen: Sequence[Exhibit],
    quick: bool,
    methods: Sequence[str] | None,
    bits: Sequence[int] | None,
    n_seeds: int,
) -> Iterator[RunBatch]:
    """The work of each part; parts that need the same runs come once."""
    seen: set[Any] = set()
    known = {method for exhibit in chosen for part in exhibit.parts for method in part.methods}
    for method in methods or ():
        _check.choice("method", method, tuple(sorted(known)))
    for exhibit in chosen:
        for part in exhibit.planned(quick):
            names = tuple(name for name in part.methods if methods is None or name in methods)
            batch = RunBatch(part, names, tuple(bits or part.bits), n_seeds)
            runs = frozenset(batch.runs())
            if names and not runs <= seen:
                seen |= runs
                yield batch


def _has_data(
    batch: RunBatch, data: str | os.PathLike[str] | None, skip: Callable[[str], None] | None
) -> bool:
    """Whether the data of a part is there; if not, that is said, or an error."""
    folder = _check_data(data)
    if has_data(batch.part.rules.data, folder):
        return True
    if batch.part.is_optional:
        return False
    if skip is None:
        require_data(batch.part.rules.data, folder)
    else:
        skip(
            f"{batch.part.protocol} is left out: no {batch.part.rules.files} in {os.fspath(folder)}"
        )
    return False


def exact_file(folder: Path, name: str) -> Path:
    """Where the numbers of an exhibit without runs are kept."""
    return folder / f"exact-{name}.json"


def _write_exact(chosen: Sequence[Exhibit], folder: Path) -> None:
    from rankbits import __version__

    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in chosen:
        if exhibit.exact is not None:
            content = {
                "rankbits_papers": FORMAT,
                "id": exhibit.id,
                "version": __version__,
                "values": exhibit.exact(),
            }
            name = exact_file(folder, exhibit.id).name
            write_own(folder, {name: json.dumps(content, indent=2).encode() + b"\n"})
