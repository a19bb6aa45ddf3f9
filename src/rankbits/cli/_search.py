"""`rankbits search`: the items nearest to each query, in an index or in a compressed folder."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from rankbits.cli import _index_files as files
from rankbits.cli._inputs import input_errors_exit_1, named_values
from rankbits.cli._options import (
    BY,
    CLUSTER,
    CODES,
    MODEL,
    OUT,
    PARAM,
    THREADS,
    VERIFY,
    CodeForm,
    K,
    QueryKind,
)
from rankbits.cli._output import print_json
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_array
from rankbits.index import Collection, engines

_DEFAULT_K = 10
_RESULT = "result.json"  # of a folder that compress wrote

Kind = StrEnum("Kind", {name: name for name in engines.names()})  # type: ignore[misc]
_INEXACT = ", ".join(sorted(set(engines.names()) - set(engines.exact_names())))


class TieChoice(StrEnum):
    """Which items to return of those that are as far as the k-th."""

    id = "id"
    complete = "complete"


FolderArgument = Annotated[str, typer.Argument(help="An index, or a folder of rankbits compress.")]
QueriesArgument = Annotated[str, typer.Argument(help="Codes, or vectors for a model to encode.")]
RadiusOption = Annotated[
    int | None,
    typer.Option("--radius", min=0, help="Instead of -k: all items within this distance."),
]
TiesOption = Annotated[
    TieChoice, typer.Option("--ties", help="Items as far as the k-th: lowest ids, or all.")
]
AllowedOption = Annotated[
    str | None, typer.Option("--allowed", help="Ids that may be returned, or a mask.")
]
KindOption = Annotated[
    Kind, typer.Option("--kind", help=f"Kind of index; all but {_INEXACT} are exact.")
]
NamesOption = Annotated[
    str | None, typer.Option("--names", help="Text file whose line i, from 0, is the name of id i.")
]
ReplicasOption = Annotated[
    int, typer.Option("--replicas", min=1, help="With --cluster: processes for each shard.")
]


def search(
    folder: FolderArgument,
    queries: QueriesArgument,
    k: Annotated[int | None, K, f"Number of neighbors, default {_DEFAULT_K}."] = None,
    radius: RadiusOption = None,
    ties: TiesOption = TieChoice.id,
    allowed: AllowedOption = None,
    names: NamesOption = None,
    model: Annotated[str | None, MODEL, "Model of the items, which encodes QUERIES."] = None,
    by: Annotated[
        QueryKind | None, BY, "Queries are bits, or weights of bits, the default with --model."
    ] = None,
    form: Annotated[CodeForm, CODES] = CodeForm.auto,
    kind: KindOption = Kind("auto"),
    param: Annotated[list[str] | None, PARAM, "Parameter of the kind, as in n_probes=32."] = None,
    threads: Annotated[int | None, THREADS] = None,
    verify: Annotated[bool, VERIFY] = True,
    cluster: Annotated[str | None, CLUSTER] = None,
    replicas: ReplicasOption = 1,
    out: Annotated[str | None, OUT, "Write distances and ids to this .npz instead."] = None,
) -> None:
    """Print the items of FOLDER that are nearest to each query, in order of (distance, id).

    By weights, items come in order of (score, id), the largest score first. What rankbits compress
    wrote is searched as it recommends.
    """
    started = time.monotonic()
    if os.path.isfile(os.path.join(folder, _RESULT)):
        options: dict[str, Any] = {
            "--radius": radius is not None,
            "--ties": ties is TieChoice.complete,
            "--allowed": allowed,
            "--model": model,
            "--by": by,
            "--codes": form is not CodeForm.auto,
            "--kind": kind is not Kind("auto"),
            "--param": param,
            "--cluster": cluster,
        }
        _refuse_for_compressed(options, folder)
        result = _search_compressed(folder, queries, k or _DEFAULT_K, threads, names, out)
    else:
        by = by or (QueryKind.bits if model is None else QueryKind.weights)
        settings = _settings(k, radius, ties, by)
        opening = {"verify": verify, "kind": kind.value, "n_threads": threads}
        opening |= named_values("--param", param)
        with input_errors_exit_1():
            files.require_archive(out, queries, allowed, names)
            with _opened(folder, cluster, replicas, opening) as state:
                rows = files.queries_of(queries, model, by, form, state)
                answer = _answer(state, rows, by, allowed, settings)
                counts = {"queries": len(rows), "items": len(state)}
            column = "scores" if by is QueryKind.weights else "distances"
            lists = files.write_or_list(answer, out, names, column)
        result = {**counts, **settings, **lists}
    print_json({"index": folder, **result, "seconds": round(time.monotonic() - started, 3)})


def _answer(
    state: Any,
    rows: BinaryCodes | np.ndarray,
    by: QueryKind,
    allowed: str | None,
    settings: dict[str, Any],
) -> Any:
    """Distances or scores, and ids, of all queries."""
    call: Callable[..., Any] = state.within if "radius" in settings else state.search
    if by is QueryKind.weights:
        call = state.search_real
    permitted = None if allowed is None else load_array(allowed)
    return files.search_in_blocks(call, rows, allowed=permitted, **settings)


def _search_compressed(
    folder: str, queries: str, k: int, threads: int | None, names: str | None, out: str | None
) -> dict[str, Any]:
    """The same of a folder that compress wrote, as it recommends."""
    with input_errors_exit_1():
        from rankbits.compress import load

        files.require_archive(out, queries, names)
        compressed, rows = load(folder), load_array(queries)
        answer = compressed.search(rows, k, n_threads=threads)
        counts = {"queries": len(rows), "items": len(compressed.index), "k": k}
        return {**counts, **files.write_or_list(answer, out, names)}


def _refuse_for_compressed(options: dict[str, Any], folder: str) -> None:
    """A compressed folder is searched as it recommends; its index can be searched in any way."""
    for option, is_given in options.items():
        if is_given:
            raise typer.BadParameter(
                f"{option} is for an index, {folder} is searched as it recommends; its codes alone "
                f"are in {folder}/index"
            )


def _settings(k: int | None, radius: int | None, ties: TieChoice, by: QueryKind) -> dict[str, Any]:
    """What is asked of the index, as its functions take it and the command prints it."""
    has_ties = ties is TieChoice.complete
    if radius is not None and (k is not None or has_ties):
        raise typer.BadParameter(
            "--radius must come without -k and --ties: it finds everything within that distance"
        )
    if by is QueryKind.bits:
        return {"k": k or _DEFAULT_K, "ties": ties.value} if radius is None else {"radius": radius}
    if radius is not None or has_ties:
        raise typer.BadParameter(
            "--radius and --ties are about distances, weights have scores; give --by bits"
        )
    return {"k": k or _DEFAULT_K}


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
