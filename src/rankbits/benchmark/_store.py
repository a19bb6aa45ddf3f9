"""Results on disk: a file a run, named by its settings, written whole or not at all.

A run whose file is there with the same settings is not repeated: a long table can be stopped at any
moment and started again.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from rankbits._files import write_atomically
from rankbits.errors import InputError

FORMAT = 1
_PARTS = ("split", "metrics", "code_use", "seconds")  # of a whole result


def settings_hash(settings: dict[str, Any]) -> str:
    """SHA-256 of settings, whatever the order of their keys.

    >>> settings_hash({"a": 1, "b": (2, 3)}) == settings_hash({"b": [2, 3], "a": 1})
    True
    """
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


class ResultStore:
    """A folder of results, or none: then nothing is kept."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            if self.folder.exists() and not self.folder.is_dir():
                raise InputError(f"out must name a folder, {self.folder} is a file")
            self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a run with these very settings; None if there is none that can be read."""
        path = self._path(settings)
        if path is None or not path.is_file():
            return None
        try:
            result = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return None
        return result if _is_result(result, settings_hash(settings)) else None

    def put(self, settings: dict[str, Any], result: dict[str, Any]) -> None:
        """Write the result of a run."""
        path = self._path(settings)
        if path is not None:
            with write_atomically(path) as file:
                file.write(json.dumps(result, indent=2, allow_nan=False).encode() + b"\n")

    def _path(self, settings: dict[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        words = (
            settings["protocol"]["name"],
            settings["method"],
            f"{settings['bits']}b",
            f"split{settings['split_seed']}",
            f"seed{settings['seed']}",
            settings_hash(settings)[:12],
        )
        return self.folder / (re.sub(r"[^\w.-]", "_", "-".join(words)) + ".json")


def _is_result(result: Any, expected_hash: str) -> bool:
    """Whether this is a whole result of the run asked for."""
    return (
        isinstance(result, dict)
        and result.get("rankbits_bench") == FORMAT
        and result.get("settings_hash") == expected_hash
        and all(isinstance(result.get(key), dict) for key in _PARTS)
    )
