"""The digits of the demo as a folder that `rankbits serve` takes."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import write_atomically
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._output import note
from rankbits.cli._serve import run_server
from rankbits.codes import BinaryCodes
from rankbits.datasets import Split
from rankbits.index import HammingIndex

_COLLECTION, _MODEL, _ITEMS, _VECTORS = "collection", "model", "items.jsonl", "vectors.npy"


def write_served(folder: Path, split: Split, hasher: Any, codes: BinaryCodes) -> str:
    """Write collection, model, table and vectors of items; returns the command to serve them."""
    from rankbits.report import picture

    folder.mkdir(exist_ok=True)
    hasher.save(folder / _MODEL)
    index = HammingIndex(codes.n_bits)
    index.add(codes)
    index.save(folder / _COLLECTION)
    with write_atomically(folder / _VECTORS) as file:
        np.save(file, split.database_x)
    with write_atomically(folder / _ITEMS) as file:
        for item, (x, y) in enumerate(zip(split.database_x, split.database_y, strict=True)):
            image = picture(x.reshape(8, 8) / 16)
            row = {"id": item, "label": str(y), "title": f"A handwritten {y}", "image": image}
            file.write(json.dumps(row).encode() + b"\n")
    note(f"wrote {folder}")
    places = {f"--{name}": folder / file for name, file in _options().items()}
    words = ["rankbits", "serve", str(folder / _COLLECTION)]
    return shlex.join(words + [word for pair in places.items() for word in map(str, pair)])


def serve_folder(folder: Path, port: int) -> None:
    """Serve what `write_served` wrote, until Ctrl-C."""
    with input_errors_exit_1():
        from rankbits import service

        settings: dict[str, Any] = {name: folder / file for name, file in _options().items()}
        run_server(service.create_app(folder / _COLLECTION, **settings), "127.0.0.1", port)


def _options() -> dict[str, str]:
    return {"model": _MODEL, "items": _ITEMS, "vectors": _VECTORS}
