"""The folder that a run leaves: everything that a search needs, complete or absent.

model/        the method that encodes items and queries
codes.npy     the codes of all items
index/        the same codes, ready to be searched
model.onnx    the model for other runtimes, where torch and onnx are installed
vectors.npy   the original vectors, if they did not come from a .npy file and are re-ranked
result.json   all numbers
index.html    the same on a page, where the extra `report` is installed
README.md     the commands that search it
.rankbits.json  the names and checksums of all of these

Only what the last of them names, and as it was written, is ever replaced.
"""

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._folders import (
    FindForeign,
    present_folder,
    remove_own,
    require_replaceable,
    write_folder_atomically,
)
from rankbits._inventory import find_foreign, take_inventory
from rankbits._json import as_json, seal
from rankbits.compress._commands import search_commands
from rankbits.compress._record import FORMAT, VERSION, parse_result
from rankbits.compress._searching import CodeSearch
from rankbits.errors import FileFormatError, InputError, RankbitsError

RESULT = "result.json"
_COLLECTION = re.compile(  # names that files of a collection have, which changes may have added
    r"index/(?:collection\.sqlite(?:-wal|-shm|-journal)?|writer\.lock|segments/[1-9][0-9]*\.seg)"
)
_WORK = re.compile(  # files of a work folder, and what a kill leaves of them
    r"(?:[^/]*-)?[0-9a-f]{12}\.(?:json|npy|model/model\.(?:json|safetensors))"
    r"|\..*[0-9a-f]{12}\.(?:json|npy)\.[0-9a-f]{8}"
    r"|\..*[0-9a-f]{12}\.model\.(?:[0-9a-f]{8}\.part|old)/.*"
)


def require_target(
    out: str | os.PathLike[str], sources: Iterable[Any] = (), *, overwrite: bool = False
) -> Path:
    """The folder to write: new, empty or an earlier result, and with none of the sources in it."""
    target = Path(out).resolve()
    require_replaceable(target, foreign_finder(overwrite=overwrite))
    for source in sources:
        path = getattr(source, "filename", source)  # of a mapped array
        if not isinstance(path, str | os.PathLike):
            continue
        place = Path(path).resolve()
        if place == target or target in place.parents:
            raise InputError(
                f"out must not hold what is read, {place} lies in {target}, which is replaced; "
                "choose another folder"
            )
    return target


def foreign_finder(*, overwrite: bool) -> FindForeign:
    """What tells an earlier result from anything else; to overwrite, its files may have changed."""

    def find(folder: Path) -> str | None:
        foreign = find_foreign(folder, changing=_COLLECTION)
        changed = None if overwrite or foreign else find_foreign(folder)
        if changed is not None:
            changed += "; overwrite=True (--overwrite) replaces changed files of a result too"
        return foreign or changed

    return find


def read_result(folder: str | os.PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """Where a folder lies, and its numbers."""
    path = present_folder(folder)
    if not path.is_dir():
        raise InputError(f"folder must be one that rankbits compress wrote, there is no {folder}")
    try:
        data = (path / RESULT).read_bytes()
    except OSError:
        raise FileFormatError(
            f"{folder} is not a folder that rankbits compress wrote: it has no {RESULT}"
        ) from None
    return path, parse_result(data, str(path / RESULT))


def write_folder(
    target: Path,
    result: Mapping[str, Any],
    search: CodeSearch,
    vectors: np.ndarray | None,
    *,
    with_onnx: bool,
    overwrite: bool,
) -> None:
    """Write everything aside and put it in place.

    `vectors` are written too, unless they are None because a file of the user's has them.
    """
    with write_folder_atomically(target, foreign_finder(overwrite=overwrite)) as folder:
        search.hasher.save(folder / "model")
        search.index.codes().save(folder / "codes.npy")
        search.index.save(folder / "index")
        if vectors is not None:
            np.save(folder / "vectors.npy", vectors)
        name = _export(search.hasher, folder / "model.onnx") if with_onnx else None
        final = as_json({**result, "onnx": name})
        (folder / RESULT).write_bytes(seal(FORMAT, VERSION, final))
        page = _page(final)
        if page is not None:
            (folder / "index.html").write_text(page, encoding="utf-8")
        (folder / "README.md").write_text(search_commands(final, target), encoding="utf-8")
        take_inventory(folder)


def remove_work(work: Path) -> None:
    """Remove the work folder of a run that is complete, but nothing that is not of the run."""
    remove_own(work, _WORK)


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
