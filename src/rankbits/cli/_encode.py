"""`rankbits encode`: rows in, codes out, however many rows there are."""

import os
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from rankbits.cli._cluster import rate_progress
from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._options import CLUSTER, OUT
from rankbits.cli._output import print_json, progress_bar
from rankbits.codes import BinaryCodes, sides
from rankbits.codes.files import ENDINGS
from rankbits.datasets.blocks import Rows, open_rows
from rankbits.datasets.names import load_names, names_path
from rankbits.datasets.pictures import PictureRows, list_pictures
from rankbits.errors import InputError


class Side(StrEnum):
    """What rows are encoded as."""

    ITEMS = sides.ITEMS
    QUERIES = sides.QUERIES


def encode(
    model: Annotated[str, typer.Argument(help="Folder that rankbits fit wrote.")],
    rows: Annotated[
        list[str],
        typer.Argument(
            metavar="X...", help="Features, or folders of pictures; several one after the other."
        ),
    ],
    out: Annotated[
        str, OUT, "File of codes: .npy, .npz, .parquet, .safetensors; on a cluster also a folder."
    ],
    side: Annotated[
        Side, typer.Option("--as", help="What the rows are; some models encode the two otherwise.")
    ] = Side.ITEMS,
    cluster: Annotated[str | None, CLUSTER] = None,
) -> None:
    """Encode the rows of X with MODEL; a run that was cut off continues where it stopped."""
    started = time.monotonic()
    if cluster is not None:
        with input_errors_exit_1():
            encoded = _encode_on_cluster(model, rows, out, side, cluster)
        print_json({**encoded, "seconds": round(time.monotonic() - started, 3)})
        return
    with input_errors_exit_1():
        from rankbits import methods
        from rankbits.cli._stream import encode_files

        _require_target(out, rows)
        hasher = methods.load(model)
        fingerprint = methods.fingerprint(hasher)
        inputs = _open_inputs(rows, hasher)
        names = _names_of(inputs)
        if names is not None:
            _require_names(out, names)
        with progress_bar("encoding") as progress:
            done = encode_files(hasher, fingerprint, inputs, out, side.value, names, progress)
    print_json(
        {
            "model": model,
            "fingerprint": fingerprint,
            "out": out,
            **({} if names is None else {"names": names_path(out)}),
            "as": side.value,
            "bits": hasher.n_bits_,
            "items": done.n_rows,
            "resumed_from": done.n_resumed,
            "seconds": round(time.monotonic() - started, 3),
        }
    )


def _encode_on_cluster(
    model: str, rows: list[str], out: str, side: Side, cluster: str
) -> dict[str, Any]:
    """Encode by tasks on a cluster; what the command prints."""
    from rankbits import distributed

    with rate_progress("encoding", "rows") as progress:
        encoding = distributed.encode(
            model, rows, out, side=side.value, cluster=cluster, progress=progress
        )
    return {
        "model": model,
        "fingerprint": encoding.model,
        "out": out,
        "files": list(encoding.files),
        "as": side.value,
        "bits": encoding.n_bits,
        "items": encoding.n_rows,
        "resumed_from": encoding.n_resumed,
        "cluster": cluster,
    }


def _require_target(out: str, rows: list[str]) -> None:
    """Refuse a target that cannot be written, or that is an input."""
    require_writable(out, *rows)
    if os.path.splitext(out)[1] not in ENDINGS:
        raise InputError(f"--out must end in {', '.join(ENDINGS)}, got {out}")


def _require_names(out: str, names: list[str]) -> None:
    """Refuse a text file in the place of the names, unless they are names of these rows or codes.

    The user has given no such name, so nobody expects that it is replaced.
    """
    path = names_path(out)
    if not os.path.lexists(path):
        return
    try:
        present = load_names(path)
        is_own = present == names or len(present) == len(BinaryCodes.load(out))
    except InputError:
        is_own = False
    if not is_own:
        raise InputError(
            f"{path} would be replaced by the names of the pictures, but it is not that of an "
            f"earlier {out}; move it away, or choose another name"
        )


def _open_inputs(paths: list[str], hasher: Any) -> list[Rows]:
    """The inputs, which must hold rows of one shape and at least one row."""
    inputs: list[Rows] = [
        _open_pictures(path, hasher) if os.path.isdir(path) else open_rows(path) for path in paths
    ]
    for path, rows in zip(paths, inputs, strict=True):
        if rows.row_shape != inputs[0].row_shape:
            raise InputError(
                f"X must hold rows of one shape, {paths[0]} has {inputs[0].row_shape} and {path} "
                f"has {rows.row_shape}"
            )
    if not any(rows.n_rows for rows in inputs):
        raise InputError(f"X must hold at least one row, {', '.join(paths)} has none")
    return inputs


def _open_pictures(path: str, hasher: Any) -> PictureRows:
    """The pictures of a folder in the size that the model was fitted on."""
    shape = hasher._row_shape()
    if len(shape) != 3 or shape[2] != 3:
        raise InputError(
            f"X must hold rows of shape {shape}, as the model was fitted on, and {path} is a "
            "folder; fit the model on a folder of pictures to encode one"
        )
    return list_pictures(path).rows(shape[:2])


def _names_of(inputs: Sequence[Rows]) -> list[str] | None:
    """File names of pictures, with their folders if there are several; None if rows have none."""
    folders = [rows.folder for rows in inputs if isinstance(rows, PictureRows)]
    if len(folders) != len(inputs):
        return None
    if len(folders) == 1:
        return list(folders[0].files)
    return [os.path.join(folder.path, name) for folder in folders for name in folder.files]
