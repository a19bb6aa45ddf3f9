"""Encoding on a cluster: rows of many files become codes, and a job that was stopped goes on.

Parts go to a work folder beside the output, which vanishes with the end of the job. What is under
its final name is complete.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits.codes import BinaryCodes
from rankbits.codes.note import Note
from rankbits.codes.sides import ITEMS, QUERIES, SIDES
from rankbits.datasets.blocks import RowFile, open_rows
from rankbits.distributed._cluster import connect, n_cpus
from rankbits.distributed._encode_tasks import EncodeJob, encode_part, join_parts
from rankbits.distributed._jobs import ClusterTask, run_tasks
from rankbits.distributed._manifest import EncodingManifest, locked
from rankbits.distributed._output import Output
from rankbits.distributed._parts import InputPart, Target, plan_targets, rows_per_part
from rankbits.errors import InputError, RankbitsError

Progress = Callable[[int, int], None]
_N_BLOCKS = 4  # blocks of the method at a time, as `rankbits encode` takes them


@dataclass(frozen=True)
class Encoding:
    """What an encoding wrote.

    Attributes
    ----------
    files : tuple of str
        Files of codes, in the order of the inputs.
    n_rows : int
        Rows that they hold together.
    n_resumed : int
        How many of them an earlier run had left.
    n_bits : int
        Code length.
    model : str
        Fingerprint of the model.
    """

    files: tuple[str, ...]
    n_rows: int
    n_resumed: int
    n_bits: int
    model: str


def encode(
    model: Any,
    inputs: Any,
    out: str | os.PathLike[str],
    *,
    side: str = ITEMS,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Encoding:
    """Encode files of rows on a cluster: the same bits as `rankbits encode` on one machine.

    A job that was stopped, or whose machine was lost, goes on where it was if it is called again.

    Parameters
    ----------
    model : str, path-like or fitted method
        Folder of a saved model that every machine can read, or a fitted method, which is saved
        beside the output for the time of the job.
    inputs : path or list of paths
        Files of rows: .npy, .parquet, .npz or .safetensors, also FILE:KEY.
    out : str or path-like
        A file of codes (.npy, .npz, .parquet or .safetensors) for all rows in order; any other
        name is a folder, which gets one .npy for each input and `manifest.json`. It must be new,
        or what an earlier call of the same job has left.
    side : {"items", "queries"}, default="items"
        What the rows are encoded as.
    cluster : str or None, default=None
        The cluster, as in `connect`; None for the cores of this machine.
    progress : callable or None, default=None
        Called as progress(done, total) with numbers of rows.

    Returns
    -------
    encoding : Encoding
    """
    out = os.fspath(out)
    _check.choice("side", side, SIDES)
    output = Output(out)
    output.require_new()
    rows = _open_inputs(inputs)
    hasher, fingerprint = _fitted(model)
    _require_encodable(hasher, rows[0])
    if side == QUERIES:
        hasher.require_query_bits()
    step = _N_BLOCKS * hasher._block_rows(rows[0].row_shape)
    identities = [one.identity() for one in rows]
    run = {"model": fingerprint, "side": side, "step": step, "inputs": identities}
    manifest = EncodingManifest.resume(output.place, run)
    note = Note(int(hasher.n_bits_), fingerprint, side if hasher._has_query_map else None)
    with ExitStack() as stack:
        ray = stack.enter_context(connect(cluster))
        output.make_folders()
        stack.enter_context(locked(output.work, out))
        if manifest is None:
            manifest = EncodingManifest(output.place, run, rows_per_part(rows, step, n_cpus(ray)))
            manifest.write()
        folder = _model_folder(model, hasher, output.work)
        job = EncodeJob(folder, fingerprint, str(output.work.absolute()), note, side, step)
        targets = plan_targets(
            rows, out, is_folder=output.is_folder, step=step, n_rows=manifest.rows_per_part
        )
        n_resumed = _encode_parts(ray, job, rows, targets, manifest, progress)
        _join_targets(ray, job, targets, manifest)
        output.finish(manifest)
    n_rows = sum(target.n_rows for target in targets)
    paths = tuple(target.path for target in targets)
    return Encoding(paths, n_rows, n_resumed, int(hasher.n_bits_), fingerprint)


def _open_inputs(inputs: Any) -> list[RowFile]:
    """The files of rows, of one shape and with at least one row."""
    is_one = isinstance(inputs, str | os.PathLike)
    paths = [os.fspath(path) for path in ([inputs] if is_one else inputs)]
    if not paths:
        raise InputError("inputs must name at least one file, got none")
    for path in paths:
        if os.path.isdir(path):
            raise InputError(
                f"inputs must be files of rows, {path} is a folder; pictures are encoded without "
                "a cluster, by rankbits encode"
            )
    rows = [open_rows(os.path.abspath(path)) for path in paths]
    for one in rows:
        if one.row_shape != rows[0].row_shape:
            raise InputError(
                f"inputs must hold rows of one shape, {rows[0].path} has {rows[0].row_shape} and "
                f"{one.path} has {one.row_shape}"
            )
    if not any(one.n_rows for one in rows):
        raise InputError(f"inputs must hold at least one row, {', '.join(paths)} has none")
    return rows


def _fitted(model: Any) -> tuple[Any, str]:
    """The fitted method, and its fingerprint, which every worker compares with its own."""
    from rankbits import methods

    hasher = methods.load(model) if isinstance(model, str | os.PathLike) else model
    fingerprint = methods.fingerprint(hasher)
    if fingerprint is None:
        raise InputError(
            "model must be one that can be saved, since workers load it; got "
            f"{type(hasher).__name__}"
        )
    return hasher, fingerprint


def _require_encodable(hasher: Any, rows: RowFile) -> None:
    """Refuse rows that the model cannot read, by the first of them."""
    try:
        hasher.encode(next(iter(rows.blocks(0, 1))))
    except StopIteration:
        return
    except RankbitsError as error:
        raise InputError(f"{rows.path}: {error}") from None


def _model_folder(model: Any, hasher: Any, work: Path) -> str:
    """Where workers find the model."""
    if isinstance(model, str | os.PathLike):
        return os.path.abspath(model)
    folder = work.absolute() / "model"
    hasher.save(folder)
    return str(folder)


def _encode_parts(
    ray: Any,
    job: EncodeJob,
    rows: Sequence[RowFile],
    targets: Sequence[Target],
    manifest: EncodingManifest,
    progress: Progress | None,
) -> int:
    """Encode what is missing; returns how many rows were there already."""
    done = {target.path for target in targets if _is_written(target, manifest)}
    parts = [part for target in targets if target.path not in done for part in target.parts]
    missing = [part for part in parts if not _is_whole(job, part, manifest)]
    n_rows = sum(target.n_rows for target in targets)
    n_done = n_resumed = n_rows - sum(part.n_rows for part in missing)
    if progress is not None:
        progress(n_done, n_rows)

    def take(task: ClusterTask, value: Any) -> None:
        nonlocal n_done
        manifest.parts[task.arguments[2].name] = ray.get(value)
        manifest.keep_up()
        n_done += task.size
        if progress is not None:
            progress(n_done, n_rows)

    tasks = [
        ClusterTask(rows[part.input].path, (job, rows[part.input], part), part.n_rows)
        for part in missing
    ]
    try:
        run_tasks(ray, encode_part, tasks, take)
    finally:
        manifest.write()
    return n_resumed


def _is_written(target: Target, manifest: EncodingManifest) -> bool:
    """Whether an earlier run has finished a file."""
    return os.path.basename(target.path) in manifest.outputs and os.path.exists(target.path)


def _is_whole(job: EncodeJob, part: InputPart, manifest: EncodingManifest) -> bool:
    """Whether an earlier run has written a part, and it is still there."""
    if part.name not in manifest.parts:
        return False
    try:
        codes = BinaryCodes.load(os.path.join(job.work, part.name))
    except RankbitsError:
        return False
    return (len(codes), codes.model) == (part.n_rows, job.fingerprint)


def _join_targets(
    ray: Any, job: EncodeJob, targets: Sequence[Target], manifest: EncodingManifest
) -> None:
    """Write the files whose parts are complete."""

    def take(task: ClusterTask, value: Any) -> None:
        target = task.arguments[1]
        outcome = {"rows": target.n_rows, "crc32": ray.get(value)}
        manifest.outputs[os.path.basename(target.path)] = outcome
        manifest.keep_up()

    missing = [target for target in targets if not _is_written(target, manifest)]
    tasks = []
    for target in missing:
        path = os.path.abspath(target.path)
        checksums = {part.name: manifest.parts[part.name] for part in target.parts}
        tasks.append(ClusterTask(path, (job, Target(path, target.parts), checksums), target.n_rows))
    run_tasks(ray, join_parts, tasks, take)
