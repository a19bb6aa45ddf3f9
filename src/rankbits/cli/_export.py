"""`rankbits export`: writes a model as one ONNX file."""

import time
from typing import Annotated

import typer

from rankbits.cli._inputs import input_errors_exit_1, require_writable
from rankbits.cli._options import OUT
from rankbits.cli._output import print_json, warn
from rankbits.errors import InputError


def export(
    model: Annotated[str, typer.Argument(help="Folder that rankbits fit wrote.")],
    out: Annotated[str, OUT, "File to write, ending in .onnx."],
) -> None:
    """Write MODEL as an ONNX file that turns float32 rows into logits and packed codes."""
    started = time.monotonic()
    with input_errors_exit_1():
        from rankbits import methods

        require_writable(out)
        if not out.endswith(".onnx"):
            raise InputError(f"--out must end in .onnx, got {out}")
        hasher = methods.load(model)
        n_compared = methods.export_onnx(hasher, out)
    if n_compared == 0:
        warn("onnxruntime is not installed, so the exported bits were not compared with ours")
    print_json(
        {
            "model": model,
            "out": out,
            "bits": hasher.n_bits_,
            "rows_compared": n_compared,
            "seconds": round(time.monotonic() - started, 3),
        }
    )
