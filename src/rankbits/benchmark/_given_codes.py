"""Codes that somebody else made, evaluated under a protocol.

A file of codes is an .npz:
    queries, database          packed codes, uint8 of shape (n, ceil(n_bits / 8))
    n_bits                     bits of a code
    query_rows, database_rows  the row of the data that each code is of
    split_hash                 SHA-256 of the split, as `write_split` gives it
    split_seed                 which split it is; optional, 0 if it is missing
    method                     what to call the codes; optional, the name of the file otherwise
    seed                       tells runs of one method apart; optional, 0 otherwise

Codes may stand in any order, their rows say which is which; a code that is missing, given twice or
of a row that is not in the split is refused.
"""

import hashlib
import os
import time
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._files import require_file, unreadable_files_refused, write_atomically
from rankbits.benchmark._plan import PlannedRun
from rankbits.benchmark._protocol import Protocol
from rankbits.benchmark._protocols import protocol
from rankbits.benchmark._run import Report, all_of, result_of, settings_of
from rankbits.benchmark._scores import checked_metrics, describe_code_use, scores
from rankbits.benchmark._sources import DataSource, load_source
from rankbits.benchmark._splits import ProtocolSplit
from rankbits.benchmark._store import ResultStore
from rankbits.codes import BinaryCodes
from rankbits.datasets import Labelled, load_array
from rankbits.errors import FileFormatError, InputError

PathLike = str | os.PathLike[str]
_NEEDED = ("queries", "database", "n_bits", "query_rows", "database_rows", "split_hash")
_OPTIONAL = ("split_seed", "method", "seed")


@dataclass(frozen=True, eq=False)
class GivenCodes:
    """The content of a file of codes."""

    file: str
    queries: BinaryCodes
    database: BinaryCodes
    query_rows: np.ndarray
    database_rows: np.ndarray
    split_hash: str
    split_seed: int
    method: str
    seed: int
    digest: str


def write_split(
    protocol_name: str | Protocol, data: PathLike | Labelled, path: PathLike, *, split_seed: int = 0
) -> str:
    """Write which rows are queries, database and training, and return the hash of the split.

    Parameters
    ----------
    protocol_name : name of a protocol, or a `Protocol`
    data : folder or file with its data, or the rows themselves
    path : the .npz file to write: query_rows, database_rows, training_rows, split_hash, split_seed;
        and unlabelled_rows, if there are training rows whose labels may not be seen
    split_seed : which split
    """
    chosen = protocol(protocol_name)
    seed = _check.whole("split_seed", split_seed, 0)
    split = chosen.split.draw(load_source(chosen.data, data).data, seed)
    arrays = {
        "query_rows": split.queries,
        "database_rows": split.database,
        "training_rows": split.training,
        "split_hash": np.array(split.hash),
        "split_seed": np.array(seed),
    }
    if len(split.unlabelled):
        arrays["unlabelled_rows"] = split.unlabelled
    with write_atomically(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
    return split.hash


def evaluate_codes(
    protocol_name: str | Protocol,
    data: PathLike | Labelled,
    files: Iterable[PathLike],
    *,
    metrics: Iterable[str] = (),
    out: PathLike | None = None,
    n_threads: int | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Evaluate codes that were made elsewhere; the result is as that of `run`.

    Parameters
    ----------
    protocol_name : name of a protocol, or a `Protocol`
    data : folder or file with its data, or the rows themselves
    files : .npz files of codes; docs/leaderboard.md says what they hold
    metrics : more names for `rankbits.evaluate`, beside those of the protocol
    out : folder for a file a run
    n_threads : int or None, of the evaluation
    report : called after each file with its result and whether it was read from `out`
    """
    chosen = protocol(protocol_name)
    names = checked_metrics((*chosen.metrics, *metrics))
    given = [load_given_codes(file) for file in files]
    if not given:
        raise InputError("files must name at least one file of codes")
    _require_distinct(given)
    store, source = ResultStore(out), load_source(chosen.data, data)
    runs = []
    for codes in given:
        planned = PlannedRun(codes.method, codes.database.n_bits, codes.split_seed, codes.seed, {})
        settings = {**settings_of(chosen, source, planned, names), "codes": codes.digest}
        split = _require_split(codes, chosen, source)
        result = store.get(settings)
        is_old = result is not None
        if result is None:
            measured = _measured(chosen, source, codes, split, names, n_threads)
            result = result_of(settings, split, measured, n_threads)
            store.put(settings, result)
        runs.append(result)
        if report is not None:
            report(result, is_old)
    return all_of(chosen, source, runs)


def _require_distinct(given: Iterable[GivenCodes]) -> None:
    """Refuse files that would be one run: a mean over them would say nothing about seeds."""
    seen: dict[tuple[str, int, int, int], GivenCodes] = {}
    for codes in given:
        key = (codes.method, codes.database.n_bits, codes.split_seed, codes.seed)
        first = seen.setdefault(key, codes)
        if first is not codes:
            raise InputError(
                f"{first.file} and {codes.file} are both of {codes.method}, split seed "
                f"{codes.split_seed} and seed {codes.seed}; give one of them another method or seed"
            )


def _require_split(codes: GivenCodes, chosen: Protocol, source: DataSource) -> ProtocolSplit:
    """The split that the codes say they are of; the protocol must draw the same one."""
    split = chosen.split.draw(source.data, codes.split_seed)
    if split.hash != codes.split_hash:
        raise InputError(
            f"{codes.file} is of another split: its split_hash begins {codes.split_hash[:12]}, "
            f"{chosen.name} with split seed {codes.split_seed} has {split.hash[:12]} on this data; "
            "write the split again and encode its rows"
        )
    for role, rows, given in (
        ("query_rows", split.queries, codes.query_rows),
        ("database_rows", split.database, codes.database_rows),
    ):
        if not np.array_equal(np.sort(given), rows):
            missing = np.setdiff1d(rows, given)
            foreign = np.setdiff1d(given, rows)
            raise InputError(
                f"{codes.file} must have one code for each row of the split in {role}: "
                f"{len(missing)} rows are missing, {len(foreign)} are not in the split, and "
                f"{len(given) - len(np.unique(given))} stand twice"
            )
    return split


def _measured(
    chosen: Protocol,
    source: DataSource,
    codes: GivenCodes,
    split: ProtocolSplit,
    names: tuple[str, ...],
    n_threads: int | None,
) -> dict[str, Any]:
    task = chosen.relevance.task(source.data, split)
    queries, database = (
        BinaryCodes(side[np.argsort(rows)].packed, side.n_bits)
        for side, rows in (
            (codes.queries, codes.query_rows),
            (codes.database, codes.database_rows),
        )
    )
    started = time.perf_counter()
    metrics = scores(queries, database, task.affinity, names, n_threads, task.kinds)
    return {
        "metrics": metrics,
        "code_use": describe_code_use(database),
        "seconds": {"evaluate": round(time.perf_counter() - started, 4)},
        "method_report": None,
    }


def load_given_codes(path: PathLike) -> GivenCodes:
    """Read a file of codes; whatever is missing or of another shape is named."""
    file = require_file(path, "a file of codes")
    with unreadable_files_refused(file, ".npz"), zipfile.ZipFile(file) as stored:
        members = {name.removesuffix(".npy") for name in stored.namelist()}
    missing = [key for key in _NEEDED if key not in members]
    if missing:
        raise FileFormatError(f"{file} must hold {', '.join(_NEEDED)}; it has no {missing[0]}")
    arrays = {key: load_array(file, key) for key in (*_NEEDED, *_OPTIONAL) if key in members}
    scalars = {key: _scalar(file, key, arrays.get(key)) for key in ("n_bits", "split_seed", "seed")}
    queries, database = (
        _codes(file, key, arrays[key], scalars["n_bits"]) for key in ("queries", "database")
    )
    rows = {
        key: _rows(file, key, arrays[f"{key}_rows"], side)
        for key, side in (("query", queries), ("database", database))
    }
    return GivenCodes(
        file,
        queries,
        database,
        rows["query"],
        rows["database"],
        str(arrays["split_hash"]),
        scalars["split_seed"],
        str(arrays.get("method", "")) or Path(file).stem,
        scalars["seed"],
        hashlib.sha256(Path(file).read_bytes()).hexdigest(),
    )


def _codes(file: str, key: str, packed: np.ndarray, n_bits: int) -> BinaryCodes:
    try:
        return BinaryCodes(packed, n_bits)
    except InputError as error:
        raise FileFormatError(f"{file}, {key}: {error}") from None


def _scalar(file: str, key: str, array: np.ndarray | None) -> int:
    if array is None:
        return 0
    if array.shape != () or array.dtype.kind not in "iu" or array < 0:
        raise FileFormatError(
            f"{file} must have {key} as one whole number from 0, got {_check.describe(array)}"
        )
    return int(array)


def _rows(file: str, key: str, rows: np.ndarray, codes: BinaryCodes) -> np.ndarray:
    if rows.shape != (len(codes),) or rows.dtype.kind not in "iu":
        raise FileFormatError(
            f"{file} must have {key}_rows as one row number for each of its {len(codes)} codes, "
            f"got {_check.describe(rows)}"
        )
    return rows.astype(np.int64)
