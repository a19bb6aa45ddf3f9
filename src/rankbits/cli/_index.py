"""`rankbits index`: a collection of codes in a folder is created, changed and searched.

Codes and ids come from files as in the other commands. A .npy of packed codes is mapped and added
block by block, so that it may be larger than memory.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from rankbits.cli import _index_files as files
from rankbits.cli._cluster import ClusterOption
from rankbits.cli._commands import Commands
from rankbits.cli._inputs import (
    BitsOption,
    CodeForm,
    FormOption,
    ThreadsOption,
    input_errors_exit_1,
)
from rankbits.cli._output import print_json
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_array, load_codes
from rankbits.index import Collection, engines

_DEFAULT_K = 10


Kind = StrEnum("Kind", {name: name for name in engines.names()})  # type: ignore[misc]
_KINDS = "; ".join(f"{name} {engines.get(name).summary}" for name in engines.names())
_INEXACT = ", ".join(sorted(set(engines.names()) - set(engines.exact_names())))


class TieChoice(StrEnum):
    """Which items to return of those that are as far as the k-th."""

    id = "id"
    complete = "complete"


class ShardBy(StrEnum):
    """How ids are shared out among shards."""

    hash = "hash"
    range = "range"


Folder = Annotated[str, typer.Argument(metavar="INDEX", help="Folder of the index.")]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="CODES...", help="Codes: .npy, .npz, .parquet or .safetensors; several in order."
    ),
]
IdsOption = Annotated[
    str | None,
    typer.Option(
        "--ids", help="Integer ids of the codes; default: the numbers after the largest id."
    ),
]

index = Commands(help="Make, change and search an index of codes.", no_args_is_help=True)


@index.command()
def build(
    codes: Files,
    out: Annotated[str, typer.Option("--out", help="Folder of the new index.")],
    bits: BitsOption = None,
    form: FormOption = CodeForm.auto,
    ids: IdsOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the index in --out, in one step.")
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option("--shards", min=1, help="Cut the index into shards, for search --cluster."),
    ] = None,
    by: Annotated[
        ShardBy, typer.Option("--by", help="With --shards: ids by hash, or by ranges.")
    ] = ShardBy.hash,
) -> None:
    """Build an index of CODES; until it is complete, what was in --out stays there."""
    started = time.monotonic()
    if shards is not None and replace:
        raise typer.BadParameter("--shards must come without --replace; give a new folder")
    with input_errors_exit_1():
        files.require_target(out, may_replace=replace)
        code_sets = [load_codes(path, bits, form) for path in codes]
        files.require_one_length(codes, code_sets)
        item_ids = files.ids_of(ids, code_sets)
        parent, name = os.path.split(os.path.abspath(out))
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=parent) as work:
            growing = os.path.join(work, "growing")
            with _fresh_index(growing, code_sets, item_ids, shards, by) as fresh:
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
    ids: Annotated[str, typer.Option("--ids", help="Ids of the items to remove.")],
) -> None:
    """Remove items from INDEX; if one of them does not exist, nothing is removed."""
    started = time.monotonic()
    with input_errors_exit_1(), Collection.open(folder, writable=True) as collection:
        removed_ids = load_array(ids)
        collection.remove(removed_ids)
        n_items = len(collection)
    _print(started, index=folder, removed=len(removed_ids), items=n_items)


QueriesArgument = Annotated[
    str | None,
    typer.Argument(metavar="[QUERIES]", help="Codes of the queries, or --model and --vectors."),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="Folder of the model that encoded the items."),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        help="Instead of QUERIES: features of the queries, which MODEL turns into weights of "
        "bits; items come in order of (score, id), the largest score first.",
    ),
]
KOption = Annotated[
    int | None,
    typer.Option("-k", "--k", min=1, help=f"Number of neighbors, default {_DEFAULT_K}."),
]
RadiusOption = Annotated[
    int | None,
    typer.Option("--radius", min=0, help="Instead of -k: all items within this distance."),
]
TiesOption = Annotated[
    TieChoice, typer.Option("--ties", help="Items as far as the k-th: lowest ids only, or all.")
]
AllowedOption = Annotated[
    str | None, typer.Option("--allowed", help="Ids that may be returned, or a mask.")
]
KindOption = Annotated[
    Kind, typer.Option("--kind", help=f"{_KINDS}. All but {_INEXACT} are exact.")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option("--option", help="Option of the kind as NAME=VALUE, such as n_probes=32."),
]
VerifyOption = Annotated[
    bool, typer.Option("--verify/--no-verify", help="Compare the files with their checksums.")
]
NamesOption = Annotated[
    str | None,
    typer.Option("--names", help="Text file whose line i, from 0, is the name of id i."),
]
OutOption = Annotated[
    str | None, typer.Option("--out", help="Write distances and ids to this .npz instead.")
]


ReplicasOption = Annotated[
    int, typer.Option("--replicas", min=1, help="With --cluster: processes for each shard.")
]


@index.command()
def search(
    folder: Folder,
    queries: QueriesArgument = None,
    model: ModelOption = None,
    vectors: VectorsOption = None,
    k: KOption = None,
    radius: RadiusOption = None,
    ties: TiesOption = TieChoice.id,
    allowed: AllowedOption = None,
    form: FormOption = CodeForm.auto,
    kind: KindOption = Kind("auto"),
    option: EngineOption = None,
    threads: ThreadsOption = None,
    verify: VerifyOption = True,
    names: NamesOption = None,
    out: OutOption = None,
    cluster: ClusterOption = None,
    replicas: ReplicasOption = 1,
) -> None:
    """Print the items of INDEX that are nearest to each query, in order of (distance, id)."""
    if radius is not None and (k is not None or ties is TieChoice.complete):
        raise typer.BadParameter(
            "--radius must come without -k and --ties: it finds everything within that distance"
        )
    _require_one_kind_of_queries(queries, model, vectors, radius, ties)
    settings: dict[str, Any] = {"radius": radius}
    if radius is None:
        settings = {"k": k or _DEFAULT_K} | ({} if queries is None else {"ties": ties.value})
    started = time.monotonic()
    with input_errors_exit_1():
        files.require_archive(out, queries, vectors, allowed, names)
        options = files.options_of(option or [])
        opening = {"verify": verify, "kind": kind.value, "n_threads": threads, **options}
        with _opened(folder, cluster, replicas, opening) as state:
            rows: BinaryCodes | np.ndarray
            call: Callable[..., Any] = state.search if radius is None else state.within
            if queries is None:
                call, rows = state.search_real, files.weights_of(model, vectors, state)
            else:
                rows = load_codes(queries, state.n_bits, form)
            permitted = None if allowed is None else load_array(allowed)
            answer = files.search_in_blocks(call, rows, allowed=permitted, **settings)
            n_items = len(state)
        names_of_ids = None if names is None else files.load_names_of(names, answer)
        column = "scores" if queries is None else "distances"
        files.write_archive(answer, out, names_of_ids, column)
    result = files.lists(answer, names_of_ids, column) if out is None else {"out": out}
    _print(started, index=folder, queries=len(rows), items=n_items, **settings, **result)


@contextmanager
def _opened(
    folder: str, cluster: str | None, replicas: int, opening: dict[str, Any]
) -> Iterator[Any]:
    """An index to search: one state for all blocks of queries, or the shards on a cluster."""
    if cluster is not None:
        from rankbits import distributed

        with distributed.index(folder, cluster=cluster, replicas=replicas, **opening) as shards:
            yield shards
        return
    files.refuse_shards(folder)
    with Collection.open(folder, **opening) as collection:
        state = collection.index()
    yield state


def _require_one_kind_of_queries(
    queries: str | None,
    model: str | None,
    vectors: str | None,
    radius: int | None,
    ties: TieChoice,
) -> None:
    """Codes, or a model and vectors, which have no distances."""
    if (model is None) != (vectors is None) or (queries is None) == (vectors is None):
        raise typer.BadParameter("give QUERIES, or --model and --vectors together instead")
    if vectors is not None and (radius is not None or ties is TieChoice.complete):
        raise typer.BadParameter(
            "--vectors must come without --radius and --ties, which are about distances"
        )


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


def _print(started: float, **result: Any) -> None:
    print_json({**result, "seconds": round(time.monotonic() - started, 3)})
