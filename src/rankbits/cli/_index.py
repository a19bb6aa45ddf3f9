"""`rankbits index`: a collection of codes in a folder is created, changed and searched.

Codes and ids come from files as in the other commands. A .npy of packed codes is mapped and added
block by block, so that it may be larger than memory.
"""

import os
import tempfile
import time
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from rankbits.cli import _index_files as files
from rankbits.cli._commands import Commands
from rankbits.cli._index_sql import sql
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._options import BITS, CODES, IDS, OUT, OVERWRITE, CodeForm
from rankbits.cli._output import print_json
from rankbits.cli._search import search
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_array, load_codes
from rankbits.index import Collection


class ShardBy(StrEnum):
    """How ids are shared out among shards."""

    hash = "hash"
    range = "range"


Folder = Annotated[str, typer.Argument(metavar="INDEX", help="Folder of the index.")]
Files = Annotated[
    list[str],
    typer.Argument(help="Codes: .npy, .npz, .parquet or .safetensors; several in order."),
]
FormOption = Annotated[CodeForm, CODES]
IdsOption = Annotated[str | None, IDS]

index = Commands(help="Make, change and search an index of codes.", no_args_is_help=True)


@index.command()
def build(
    codes: Files,
    out: Annotated[str, OUT, "Folder of the new index."],
    bits: Annotated[int | None, BITS] = None,
    form: FormOption = CodeForm.auto,
    ids: IdsOption = None,
    overwrite: Annotated[bool, OVERWRITE, "Replace the index in --out, in one step."] = False,
    shards: Annotated[
        int | None,
        typer.Option("--shards", min=1, help="Cut the index into shards, for search --cluster."),
    ] = None,
    shard_by: Annotated[
        ShardBy, typer.Option("--shard-by", help="With --shards: ids by hash, or by ranges.")
    ] = ShardBy.hash,
) -> None:
    """Build an index of CODES; until it is complete, what was in --out stays there."""
    started = time.monotonic()
    if shards is not None and overwrite:
        raise typer.BadParameter("--shards must come without --overwrite; give a new folder")
    with input_errors_exit_1():
        files.require_target(out, may_replace=overwrite)
        code_sets = [load_codes(path, bits, form) for path in codes]
        files.require_one_length(codes, code_sets)
        item_ids = files.ids_of(ids, code_sets)
        parent, name = os.path.split(os.path.abspath(out))
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=parent) as work:
            growing = os.path.join(work, "growing")
            with _fresh_index(growing, code_sets, item_ids, shards, shard_by) as fresh:
                files.add_in_blocks(fresh.add, code_sets, item_ids)
                fresh.compact()
                n_items = len(fresh)
            files.put_in_place(growing, out)
    _print(started, index=out, bits=code_sets[0].n_bits, added=n_items, items=n_items)


def _fresh_index(
    folder: str,
    code_sets: list[BinaryCodes],
    ids: np.ndarray | None,
    n_shards: int | None,
    by: str,
) -> Any:
    """An empty collection, or one in shards that hold as many of the ids each."""
    n_bits = code_sets[0].n_bits
    if n_shards is None:
        return Collection.create(folder, n_bits)
    from rankbits import distributed

    every_id = range(sum(map(len, code_sets))) if ids is None else ids
    bounds = distributed.even_bounds(every_id, n_shards) if by == "range" else None
    distributed.create_index(folder, n_bits, n_shards, by=by, bounds=bounds)
    return distributed.LocalShards(folder)


@index.command()
def add(
    folder: Folder,
    codes: Files,
    form: FormOption = CodeForm.auto,
    ids: IdsOption = None,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Replace codes whose ids exist already.")
    ] = False,
) -> None:
    """Add CODES to INDEX; codes that do not fit are refused before anything is added."""
    if upsert and ids is None:
        raise typer.BadParameter("--upsert needs --ids, which say what to replace")
    started = time.monotonic()
    with input_errors_exit_1(), Collection.open(folder, writable=True) as collection:
        code_sets = [load_codes(path, collection.n_bits, form) for path in codes]
        item_ids = files.ids_of(ids, code_sets)
        if not upsert:
            files.require_new(collection, item_ids)
        change = collection.upsert if upsert else collection.add
        files.add_in_blocks(change, code_sets, item_ids)
        n_added, n_items, n_bits = sum(map(len, code_sets)), len(collection), collection.n_bits
    _print(started, index=folder, bits=n_bits, added=n_added, items=n_items)


@index.command()
def remove(
    folder: Folder,
    ids: Annotated[str, IDS, "Ids of the items to remove."],
) -> None:
    """Remove items from INDEX; if one of them does not exist, nothing is removed."""
    started = time.monotonic()
    with input_errors_exit_1(), Collection.open(folder, writable=True) as collection:
        removed_ids = load_array(ids)
        collection.remove(removed_ids)
        n_items = len(collection)
    _print(started, index=folder, removed=len(removed_ids), items=n_items)


index.command()(search)


@index.command()
def info(folder: Folder) -> None:
    """Print how many items INDEX has, and in which files they are."""
    with input_errors_exit_1(), Collection.open(folder, verify=False) as collection:
        result = collection.info()
    print_json({"index": folder, **result})


@index.command()
def check(folder: Folder) -> None:
    """Read all of INDEX and compare it with its checksums; exit 1 and name what is damaged."""
    started = time.monotonic()
    with input_errors_exit_1(), Collection.open(folder, verify=False) as collection:
        result = collection.check()
    _print(started, index=folder, is_whole=True, **result)


index.command()(sql)


def _print(started: float, **result: Any) -> None:
    print_json({**result, "seconds": round(time.monotonic() - started, 3)})
