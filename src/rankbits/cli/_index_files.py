"""Files that `rankbits index` reads and writes: codes and ids, distances and ids.

Codes are added and queries are searched block by block, so a mapped file of codes is never in
memory as a whole.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._files import sync_folder, write_atomically
from rankbits._folders import require_movable
from rankbits.cli._inputs import require_writable
from rankbits.cli._output import progress_bar
from rankbits.codes import BinaryCodes
from rankbits.codes.note import require_same_model
from rankbits.datasets import load_array
from rankbits.datasets.names import load_names
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection, HammingIndex, disk, inputs
from rankbits.index.results import Matches, together

_BLOCK_CODES = 1 << 20  # added at a time
_BLOCK_QUERIES = 1 << 12


def require_target(out: str, *, may_replace: bool) -> None:
    """Refuse a folder that is not empty, unless it is an index that may be replaced."""
    parent = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(parent) or not os.access(parent, os.W_OK):
        raise InputError(f"--out must lie in an existing folder that can be written, got {out}")
    if os.path.exists(out) and not os.path.isdir(out):
        raise InputError(f"--out must be a folder, {out} is a file")
    content = sorted(os.listdir(out)) if os.path.isdir(out) else []
    if content and not may_replace:
        raise InputError(
            f"--out must be a new or empty folder, {out} holds {content[0]}; give --overwrite to "
            "replace its index"
        )
    if content:
        disk.require_target(Path(out))
    else:
        require_movable(Path(out))


def refuse_shards(folder: str) -> None:
    """Say what to do with an index in shards, which is no single collection."""
    if os.path.isfile(os.path.join(folder, "shards.json")):
        raise InputError(
            f"INDEX must be one collection, {folder} is cut into shards; search it with --cluster "
            "auto, change it with rankbits.distributed.index"
        )


def put_in_place(built: str, out: str) -> None:
    """Move a collection that was built elsewhere to `out`, in one step."""
    if os.path.isdir(out) and os.listdir(out):
        HammingIndex.load(built).save(out)
        return
    os.rename(built, os.path.realpath(out))
    sync_folder(Path(out).resolve().parent)


def require_one_length(paths: Sequence[str], code_sets: Sequence[BinaryCodes]) -> None:
    """Refuse files of codes of different lengths."""
    for path, codes in zip(paths, code_sets, strict=True):
        if codes.n_bits != code_sets[0].n_bits:
            raise InputError(
                f"CODES must have one length, {paths[0]} has {code_sets[0].n_bits} bits and {path} "
                f"has {codes.n_bits}"
            )


def ids_of(path: str | None, code_sets: Sequence[BinaryCodes]) -> np.ndarray | None:
    """Ids of all codes, each once."""
    if path is None:
        return None
    if os.path.splitext(path)[1] == ".txt":
        raise InputError(
            f"--ids must be a file of integers, got {path}; for names leave --ids out and give the "
            "file to rankbits index search as --names"
        )
    try:
        return inputs.ids_of(load_array(path), sum(map(len, code_sets)))
    except FileFormatError:
        raise
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def require_new(collection: Collection, ids: np.ndarray | None) -> None:
    """Refuse ids before the first of several blocks is added; a single block checks its own."""
    if ids is None or len(ids) <= _BLOCK_CODES:
        return
    exists = np.isin(ids, collection.ids)
    if exists.any():
        raise InputError(f"ids must be new, {ids[exists][0]} exists already; give --upsert")


def add_in_blocks(
    change: Callable[..., Any], code_sets: Sequence[BinaryCodes], ids: np.ndarray | None
) -> None:
    """Add or upsert all codes, a block at a time."""
    n_done, n = 0, sum(map(len, code_sets))
    with progress_bar("adding") as progress:
        for block in _blocks(code_sets):
            change(block, None if ids is None else ids[n_done : n_done + len(block)])
            n_done += len(block)
            if progress is not None:
                progress(n_done, n)


def _blocks(code_sets: Sequence[BinaryCodes]) -> Iterator[BinaryCodes]:
    """All codes in order; as one block if they are few, so that they are added together."""
    if sum(map(len, code_sets)) <= _BLOCK_CODES:
        yield BinaryCodes.concatenate(code_sets)
        return
    for codes in code_sets:
        for start in range(0, len(codes), _BLOCK_CODES):
            yield codes[start : start + _BLOCK_CODES]


def require_archive(out: str | None, *inputs: str | None) -> None:
    """Refuse a file for results that cannot be written, or is read, before the search."""
    require_writable(out, *inputs)
    if out is not None and not out.endswith(".npz"):
        raise InputError(f"--out must end in .npz, got {out}")


def require_model(hasher: Any, index: Any) -> None:
    """Refuse a model that did not encode the items of an index."""
    from rankbits import methods

    fingerprint = methods.fingerprint(hasher)
    require_same_model(fingerprint, index.model, "queries of --model", "codes of the index")


def search_in_blocks(search: Callable[[Any], Matches], rows: Any) -> Matches:
    """The answer of a search to all queries, block by block."""
    parts = []
    with progress_bar("searching") as progress:
        for start in range(0, max(1, len(rows)), _BLOCK_QUERIES):
            parts.append(search(rows[start : start + _BLOCK_QUERIES]))
            if progress is not None:
                progress(min(start + _BLOCK_QUERIES, len(rows)), len(rows))
    return together(parts)


def load_names_of(path: str, result: Matches) -> list[str]:
    """Names by id, for all ids of a result: those of a text file, one on each line."""
    names = load_names(path)
    largest = int(result.ids.max(initial=-1))
    if largest >= len(names):
        raise InputError(
            f"{path} must have a line for each id, it has {len(names)} lines and id {largest} was "
            "found; line i, from 0, names the item with id i"
        )
    return names


def write_or_list(result: Matches, out: str | None, names_path: str | None) -> dict[str, Any]:
    """Results in a .npz if `out` is given, else as lists; with names, if ids have them."""
    names = None if names_path is None else load_names_of(names_path, result)
    if out is None:
        return lists(result, names)
    arrays: dict[str, Any] = {"distances": result.distances, "ids": result.ids}
    if names is not None:
        arrays["names"] = np.array([*names, ""], np.str_)[result.ids]  # the last is that of id -1
    if result.offsets is not None:
        arrays["offsets"] = result.offsets
    with write_atomically(out) as file:
        np.savez(file, **arrays)
    return {"out": out}


def lists(result: Matches, names: Sequence[str] | None = None) -> dict[str, list[list[Any]]]:
    """Distances, ids and, if there are any, names of each query, without padding."""
    found = result.ragged()
    ends = list(pairwise(found.offsets.tolist()))
    result_lists: dict[str, list[list[Any]]] = {
        "distances": [found.distances[a:b].tolist() for a, b in ends],
        "ids": [found.ids[a:b].tolist() for a, b in ends],
    }
    if names is not None:
        result_lists["names"] = [[names[item] for item in ids] for ids in result_lists["ids"]]
    return result_lists
