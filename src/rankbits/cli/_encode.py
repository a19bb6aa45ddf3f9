"""`rankbits encode`: rows in, codes out, however many rows there are."""

import os
import time
from typing import Annotated

import typer

from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._output import print_json, progress_bar
from rankbits.codes.files import ENDINGS
from rankbits.datasets._blocks import RowFile, open_rows
from rankbits.errors import InputError


def encode(
    model: Annotated[str, typer.Argument(help="Folder that rankbits fit wrote.")],
    rows: Annotated[
        list[str], typer.Argument(metavar="X...", help="Features; several files in order.")
    ],
    out: Annotated[str, typer.Option("--out", help="Codes: .npy, or .parquet.")],
) -> None:
    """Encode the rows of X with MODEL; a run that was cut off goes on where it stopped."""
    started = time.monotonic()
    with input_errors_exit_1():
        from rankbits import methods
        from rankbits.cli._stream import encode_files

        _require_target(out, rows)
        hasher = methods.load(model)
        fingerprint = methods.fingerprint(hasher)
        inputs = _opened(rows)
        with progress_bar("encoding") as progress:
            done = encode_files(hasher, fingerprint, inputs, out, progress)
    print_json(
        {
            "model": model,
            "fingerprint": fingerprint,
            "out": out,
            "bits": hasher.n_bits_,
            "items": done.n_rows,
            "resumed_from": done.n_resumed,
            "seconds": round(time.monotonic() - started, 3),
        }
    )


def _require_target(out: str, rows: list[str]) -> None:
    """Refuse a target that cannot be written, or that is an input."""
    require_writable(out)
    if os.path.splitext(out)[1] not in ENDINGS:
        raise InputError(f"--out must end in {', '.join(ENDINGS)}, got {out}")
    if os.path.exists(out) and any(os.path.exists(x) and os.path.samefile(out, x) for x in rows):
        raise InputError(f"--out must not be one of the inputs, got {out}")


def _opened(rows: list[str]) -> list[RowFile]:
    """The inputs, which must hold rows of one shape and at least one row."""
    inputs = [open_rows(path) for path in rows]
    for path, found in zip(rows, inputs, strict=True):
        if found.row_shape != inputs[0].row_shape:
            raise InputError(
                f"X must hold rows of one shape, {rows[0]} has {inputs[0].row_shape} and {path} "
                f"has {found.row_shape}"
            )
    if not any(found.n_rows for found in inputs):
        raise InputError(f"X must hold at least one row, {', '.join(rows)} has none")
    return inputs
