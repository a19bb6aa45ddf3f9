"""Folders of results, read back: runs that may stand beside each other, and cells of their tables.

Runs of one protocol can be compared if they have the same rules, the same data, the same split for
the same seed, and the same conventions for each metric. A folder where they differ is refused, with
the names of the two files.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankbits.benchmark._protocols import find_protocol
from rankbits.benchmark._store import FORMAT, settings_hash
from rankbits.errors import FileFormatError, InputError

_PARTS = ("settings", "split", "metrics", "seconds")


@dataclass(frozen=True)
class Score:
    """A value over the seeds of a cell.

    Attributes
    ----------
    mean : mean over the runs
    sd : sample standard deviation, None for one run
    n_runs : number of runs
    """

    mean: float
    sd: float | None
    n_runs: int


@dataclass(frozen=True, eq=False)
class StoredRun:
    """One result file.

    Attributes
    ----------
    file : its name in the folder
    result : its content
    """

    file: str
    result: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Whatever its numbers depend on."""
        settings: dict[str, Any] = self.result["settings"]
        return settings

    @property
    def protocol(self) -> str:
        """Name of its protocol."""
        return str(self.settings["protocol"]["name"])


@dataclass(frozen=True, eq=False)
class ResultCell:
    """The runs of one method at one code length under one protocol.

    Attributes
    ----------
    protocol, bits : of all its runs
    label : the method, and whatever sets these runs apart from the usual ones
    runs : result files, in order of their seeds
    """

    protocol: str
    label: str
    bits: int
    runs: tuple[StoredRun, ...]

    def score(self, metric: str) -> Score | None:
        """Mean and spread of a metric; None if a run does not have it."""
        if any(metric not in run.result["metrics"] for run in self.runs):
            return None
        return _score([run.result["metrics"][metric]["mean"] for run in self.runs])

    def code_use(self, name: str) -> Score | None:
        """Mean and spread of a number of `code_use`; None if a run does not have it."""
        if any("code_use" not in run.result for run in self.runs):
            return None
        return _score([run.result["code_use"][name] for run in self.runs])

    def fastest(self, name: str) -> float | None:
        """The shortest time of its runs, which a busy machine disturbs least."""
        values = [run.result["seconds"].get(name) for run in self.runs]
        known = [value for value in values if value is not None]
        return min(known, default=None)

    def seconds(self, name: str) -> Score | None:
        """Mean and spread of a time; None for codes that were made elsewhere."""
        if any(name not in run.result["seconds"] for run in self.runs):
            return None
        return _score([run.result["seconds"][name] for run in self.runs])


def _score(values: Sequence[float]) -> Score:
    numbers = np.array(values, np.float64)
    spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    return Score(float(numbers.mean()), spread, len(numbers))


@dataclass(frozen=True, eq=False)
class Results:
    """All runs of a folder, and the cells that they form.

    Attributes
    ----------
    runs : result files in order of their names
    """

    runs: tuple[StoredRun, ...]
    cells: tuple[ResultCell, ...] = field(init=False)
    _by_key: dict[tuple[str, str, int], ResultCell] = field(init=False)

    def __post_init__(self) -> None:
        _require_comparable(self.runs)
        object.__setattr__(self, "cells", tuple(_cells(self.runs)))
        by_key = {(cell.protocol, cell.label, cell.bits): cell for cell in self.cells}
        object.__setattr__(self, "_by_key", by_key)

    @property
    def protocols(self) -> tuple[str, ...]:
        """Names of the protocols that it has runs of, in order."""
        return tuple(dict.fromkeys(cell.protocol for cell in self.cells))

    def of(self, protocol: str) -> tuple[ResultCell, ...]:
        """The cells of one protocol."""
        return tuple(cell for cell in self.cells if cell.protocol == protocol)

    def find(self, protocol: str, label: str, bits: int) -> ResultCell | None:
        """One cell, or None."""
        return self._by_key.get((protocol, label, bits))


def load_results(folder: str | os.PathLike[str]) -> Results:
    """Read the result files of a folder, as `run` writes them with `out`.

    Files that are no results are passed over; a result that is damaged is refused.

    Parameters
    ----------
    folder : str or path-like
        The folder. What lies in its sub-folders is not read.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"folder must name a folder of results, there is no {path}")
    results = (_read(file) for file in sorted(path.glob("*.json")))
    return Results(tuple(_once([run for run in results if run is not None])))


def _read(file: Path) -> StoredRun | None:
    """The run of a file; None if the file is of another kind."""
    try:
        result = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise FileFormatError(
            f"{file} is not a readable result: it is cut off or damaged; delete it and run again"
        ) from None
    if not isinstance(result, dict) or "rankbits_bench" not in result:
        return None
    is_whole = all(isinstance(result.get(part), dict) for part in _PARTS)
    if result["rankbits_bench"] != FORMAT or not is_whole:
        raise FileFormatError(f"{file} is not a whole result of format {FORMAT}; run it again")
    if result.get("settings_hash") != settings_hash(result["settings"]):
        raise FileFormatError(f"{file} has settings that its settings_hash is not of; run it again")
    return StoredRun(file.name, result)


def _once(runs: list[StoredRun]) -> Iterator[StoredRun]:
    """Each run once: files of the same run with other metrics are joined if they agree."""
    by_run: dict[str, StoredRun] = {}
    for run in runs:
        key = settings_hash({k: v for k, v in run.settings.items() if k != "metrics"})
        other = by_run.get(key)
        by_run[key] = run if other is None else _joined(other, run)
    yield from by_run.values()


def _joined(one: StoredRun, other: StoredRun) -> StoredRun:
    first, second = one.result["metrics"], other.result["metrics"]
    for name in first.keys() & second.keys():
        if first[name]["mean"] != second[name]["mean"]:
            raise InputError(
                f"{one.file} and {other.file} are the same run and differ in {name}: "
                f"{first[name]['mean']} and {second[name]['mean']}; delete one of them"
            )
    return StoredRun(one.file, {**one.result, "metrics": {**second, **first}})


def _require_comparable(runs: Iterable[StoredRun]) -> None:
    """Refuse runs of one protocol that differ in what a comparison takes for granted."""
    seen: dict[tuple[str, ...], tuple[StoredRun, Any]] = {}
    for run in runs:
        for what, key, value in _taken_for_granted(run):
            first, other = seen.setdefault((run.protocol, what, *key), (run, value))
            if other != value:
                words = " ".join((what, *key))
                raise InputError(
                    f"{run.file} cannot stand beside {first.file}: both are of {run.protocol}, and "
                    f"they differ in the {words}: {_shown(value)} and {_shown(other)}; keep them "
                    "in separate folders"
                )


def _taken_for_granted(run: StoredRun) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """What it is, which one of it, and its value."""
    settings, result = run.settings, run.result
    yield "rules", (), settings["protocol"]
    yield "hash of the data", (), settings["data"]
    yield "hash of split", (str(settings["split_seed"]),), result["split"]["hash"]
    for name, row in result["metrics"].items():
        yield "conventions of", (name,), row.get("conventions")


def _shown(value: Any) -> str:
    text = value[:12] if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= 400 else text[:397] + "..."


def _cells(runs: Sequence[StoredRun]) -> Iterator[ResultCell]:
    """Cells by protocol, label and length, in order of these."""
    versions: dict[str, set[str]] = {}
    for run in runs:
        versions.setdefault(_without_version(run), set()).add(run.settings["version"])
    groups: dict[tuple[str, str, int], list[StoredRun]] = {}
    for run in runs:
        label = _label(run, has_versions=len(versions[_without_version(run)]) > 1)
        groups.setdefault((run.protocol, label, run.settings["bits"]), []).append(run)
    for (protocol, label, bits), group in sorted(groups.items(), key=lambda item: item[0]):
        group.sort(key=_seeds)
        for one, other in pairwise(group):
            if _seeds(one) == _seeds(other):
                raise InputError(
                    f"{one.file} and {other.file} are both of {label}, {bits} bits, split seed "
                    f"{_seeds(one)[0]} and seed {_seeds(one)[1]}; give one of them another name or "
                    "seed, or delete it"
                )
        yield ResultCell(protocol, label, bits, tuple(group))


def _seeds(run: StoredRun) -> tuple[int, int]:
    """What tells the runs of a cell apart."""
    return run.settings["split_seed"], run.settings["seed"]


def _without_version(run: StoredRun) -> str:
    """What two runs have in common that differ in nothing but the version and the metrics."""
    left_out = ("version", "metrics")
    return settings_hash({k: v for k, v in run.settings.items() if k not in left_out})


def _label(run: StoredRun, *, has_versions: bool) -> str:
    """The method, the parameters that the protocol does not give it, and the kind of queries."""
    settings = run.settings
    known = find_protocol(run.protocol)
    usual = dict(known.defaults.get(settings["method"], {})) if known else {}
    words = [
        f"{name}={json.dumps(value)}"
        for name, value in sorted(settings["params"].items())
        if name not in usual or json.dumps(usual[name]) != json.dumps(value)
    ]
    if settings.get("queries", "bits") != "bits":
        words.append(f"{settings['queries']} queries")
    if "codes" in settings:
        words.append("given codes")
    if has_versions:
        words.append(f"version {settings['version']}")
    return str(settings["method"]) + (f" ({', '.join(words)})" if words else "")
