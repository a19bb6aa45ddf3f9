"""The digits of the demo as a folder that `rankbits serve` takes."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._folders import require_replaceable, write_folder_atomically
from rankbits._inventory import find_foreign, take_inventory
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import AddressOptions
from rankbits.cli._output import note
from rankbits.cli._serve import run_server
from rankbits.codes import BinaryCodes
from rankbits.datasets import Split
from rankbits.index import HammingIndex

_COLLECTION, _MODEL, _ITEMS, _VECTORS = "collection", "model", "items.jsonl", "vectors.npy"


def require_served(folder: Path) -> None:
    """Refuse a folder that `write_served` would not replace."""
    require_replaceable(folder, find_foreign)


def write_served(folder: Path, split: Split, hasher: Any, codes: BinaryCodes) -> str:
    """Write collection, model, table and vectors of items; returns the command to serve them."""
    from rankbits.report import picture

    with write_folder_atomically(folder, find_foreign) as place:
        hasher.save(place / _MODEL)
        index = HammingIndex(codes.n_bits)
        index.add(codes)
        index.save(place / _COLLECTION)
        np.save(place / _VECTORS, split.database_x)
        with open(place / _ITEMS, "w", encoding="utf-8") as file:
            for item, (x, y) in enumerate(zip(split.database_x, split.database_y, strict=True)):
                image = picture(x.reshape(8, 8) / 16)
                row = {"id": item, "label": str(y), "title": f"A handwritten {y}", "image": image}
                file.write(json.dumps(row) + "\n")
        take_inventory(place)
    note(f"wrote {folder}")
    places = {f"--{name}": folder / file for name, file in _options().items()}
    words = ["rankbits", "serve", str(folder / _COLLECTION)]
    return shlex.join(words + [word for pair in places.items() for word in map(str, pair)])


def serve_folder(folder: Path, address: AddressOptions) -> None:
    """Serve what `write_served` wrote, until Ctrl-C."""
    with input_errors_exit_1():
        from rankbits import service

        settings: dict[str, Any] = {name: folder / file for name, file in _options().items()}
        app = service.create_app(folder / _COLLECTION, **settings, hosts=address.hosts)
        run_server(app, address)


def _options() -> dict[str, str]:
    return {"model": _MODEL, "items": _ITEMS, "vectors": _VECTORS}
