"""The folder that a run leaves: everything that a search needs, complete or absent.

model/        the method that encodes items and queries
codes.npy     the codes of all items
index/        the same codes, ready to be searched
model.onnx    the model for other runtimes, where torch and onnx are installed
vectors.npy   the original vectors, if they did not come from a .npy file and are re-ranked
result.json   all numbers
index.html    the same on a page, where the extra `report` is installed
README.md     the commands that search it
"""

import json
import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import sync_file
from rankbits._folders import require_replaceable, write_folder_atomically
from rankbits._json import as_json
from rankbits.compress._commands import search_commands
from rankbits.compress._searching import CodeSearch
from rankbits.errors import FileFormatError, InputError, RankbitsError

FORMAT = 1
RESULT = "result.json"


def is_compressed(folder: Path) -> bool:
    """Whether a folder is one that a run has left."""
    try:
        return "rankbits_compress" in json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def require_target(out: str | os.PathLike[str]) -> Path:
    """The folder to write, which must be new, empty or an earlier result."""
    require_replaceable(out, is_compressed)
    return Path(out).resolve()


def read_result(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The numbers of a folder."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"folder must be one that rankbits compress wrote, there is no {folder}")
    if not is_compressed(path):
        raise FileFormatError(f"{folder} is not a folder that rankbits compress wrote")
    result: dict[str, Any] = json.loads((path / RESULT).read_bytes())
    if result["rankbits_compress"] != FORMAT:
        raise FileFormatError(
            f"{folder} has the format {result['rankbits_compress']}, this rankbits reads {FORMAT}"
        )
    return result


def write_folder(
    target: Path,
    result: Mapping[str, Any],
    search: CodeSearch,
    vectors: np.ndarray | None,
    *,
    with_onnx: bool,
) -> None:
    """Write everything aside and put it in place.

    `vectors` are written too, unless they are None because a file of the user's has them.
    """
    with write_folder_atomically(target, is_compressed) as folder:
        search.hasher.save(folder / "model")
        search.index.codes().save(folder / "codes.npy")
        search.index.save(folder / "index")
        if vectors is not None:
            np.save(folder / "vectors.npy", vectors)
        name = _export(search.hasher, folder / "model.onnx") if with_onnx else None
        final = as_json({**result, "onnx": name})
        (folder / RESULT).write_text(json.dumps(final, indent=1, allow_nan=False) + "\n")
        page = _page(final)
        if page is not None:
            (folder / "index.html").write_text(page)
        (folder / "README.md").write_text(search_commands(final, target))
        for file in folder.rglob("*"):
            if file.is_file():
                sync_file(file)


def remove_work(work: Path) -> None:
    """Remove the work folder of a run that is complete."""
    shutil.rmtree(work, ignore_errors=True)


def _export(hasher: Any, path: Path) -> str | None:
    """The name of the ONNX file, or None where it cannot be made here."""
    from rankbits import methods

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            methods.export_onnx(hasher, path)
    except (RankbitsError, ImportError):
        return None
    return path.name


def _page(result: dict[str, Any]) -> str | None:
    """The page, or None without the extra that draws it."""
    from rankbits.errors import MissingExtraError
    from rankbits.report import compress_page

    try:
        return compress_page(result)
    except MissingExtraError:
        return None
