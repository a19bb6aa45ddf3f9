"""The commands that search a compressed folder, as text that can be copied."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def search_commands(result: Mapping[str, Any], folder: Path) -> str:
    """A README for the folder: what it holds, and how it is searched."""
    chosen = result["recommendation"]
    lines = [
        f"# {folder.name}",
        "",
        chosen["sentence"],
        "",
        "From Python:",
        "",
        "```python",
        "import numpy as np",
        "from rankbits.compress import load",
        "",
        f'compressed = load("{folder}")',
        'distances, ids = compressed.search(np.load("queries.npy"), k=10)',
        "```",
        "",
        "From the command line:",
        "",
        "```sh",
        *command_lines(result, folder),
        "```",
        "",
        "New items are encoded by the same model and added to the index:",
        "",
        "```sh",
        f"rankbits encode {folder}/model new_items.npy --out new_codes.npy",
        f"rankbits index add {folder}/index new_codes.npy",
        "```",
        "",
        "Have they drifted away from the model?",
        "",
        "```sh",
        f"rankbits compress-check {folder} new_items.npy new_queries.npy",
        "```",
        "",
    ]
    return "\n".join(lines)


def command_lines(result: Mapping[str, Any], folder: Path) -> list[str]:
    """The shell commands that answer queries: as recommended, and by the codes alone."""
    whole = f"rankbits search {folder} queries.npy -k 10 --out nearest.npz"
    if result["recommendation"]["query"] == "real":
        by_codes = [f"rankbits search {folder}/index queries.npy --model {folder}/model -k 10"]
    else:
        by_codes = [
            f"rankbits encode {folder}/model queries.npy --as queries --out query_codes.npy",
            f"rankbits search {folder}/index query_codes.npy -k 10",
        ]
    return [whole, "", "# by the codes alone, without re-ranking", *by_codes]
