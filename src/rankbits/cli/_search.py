"""`rankbits search`: the items nearest to each query, in an index or in a compressed folder."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from rankbits._open import is_compressed
from rankbits.cli import _index_files as files
from rankbits.cli._inputs import input_errors_exit_1, named_values
from rankbits.cli._options import (
    BY,
    CLUSTER,
    CODES,
    MODEL,
    OUT,
    PARAM,
    POOL,
    SIMILARITY,
    THREADS,
    VERIFY,
    CodeForm,
    K,
    QueryKind,
    Similarity,
)
from rankbits.cli._output import print_json
from rankbits.codes import BinaryCodes, Queries
from rankbits.datasets import load_array, load_codes
from rankbits.index import Collection, SearchPlan, engines
from rankbits.index.door import Door
from rankbits.index.plan import NO_RERANK

_DEFAULT_K = 10

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
    typer.Option("--radius", min=0, help="Only items within this distance; all without -k."),
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


RerankOption = Annotated[
    str | None,
    typer.Option("--rerank", help="Vectors of the items, by which a pool is re-ranked, or none."),
]


@dataclass(frozen=True, eq=False)
class _Opened:
    """What is searched: codes, what encodes queries for them, and how it goes.

    Attributes
    ----------
    door : an index, a collection or shards
    hasher : the model of the items, None for queries that are encoded
    plan : what it does unless an option says otherwise
    vectors : the original vectors of the items, or None
    """

    door: Any
    hasher: Any = None
    plan: SearchPlan = field(default_factory=SearchPlan)
    vectors: Any = None


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
    rerank: RerankOption = None,
    pool: Annotated[int | None, POOL] = None,
    similarity: Annotated[Similarity | None, SIMILARITY] = None,
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

    What rankbits compress wrote is searched by its plan, where no option says otherwise.
    """
    started, asked = time.monotonic(), _settings(k, radius, ties, by)
    opening = {"verify": verify, "kind": kind.value, "n_threads": threads}
    opening |= named_values("--param", param)
    with input_errors_exit_1():
        files.require_archive(out, queries, allowed, names)
        with _opened(folder, cluster, replicas, model, opening) as opened:
            plan = opened.plan
            if radius is not None or ties is TieChoice.complete:
                plan = plan.for_ties()
            reranking = rerank if rerank in (None, NO_RERANK) else "vectors"
            plan = plan.changed(by=by, rerank=reranking, pool=pool, similarity=similarity)
            rows, encode = _rows(queries, opened, plan, form)
            settings = {
                "allowed": None if allowed is None else load_array(allowed),
                **plan.settings(k or _DEFAULT_K, _vectors_of(opened, rerank)),
            }

            def look(block: Any) -> Any:
                return opened.door.search(
                    encode(block), asked.get("k"), ties.value, within=radius, **settings
                )

            answer = files.search_in_blocks(look, rows)
            counts = {"queries": len(rows), "items": len(opened.door), "plan": plan.sentence}
            lists = files.write_or_list(answer, out, names)
    result = {"index": folder, **counts, **asked, **lists}
    print_json({**result, "seconds": round(time.monotonic() - started, 3)})


def _settings(
    k: int | None, radius: int | None, ties: TieChoice, by: QueryKind | None
) -> dict[str, Any]:
    """How many items are asked for, as the command prints it."""
    has_ties = ties is TieChoice.complete
    if by is QueryKind.weights and (radius is not None or has_ties):
        raise typer.BadParameter("--radius and --ties are about bits; give --by bits")
    settings: dict[str, Any] = {} if radius is None else {"radius": radius}
    if radius is None or k is not None:
        settings |= {"k": k or _DEFAULT_K, "ties": ties.value}
    elif has_ties:
        raise typer.BadParameter("--ties must come with -k: a radius alone has all ties")
    return settings


def _vectors_of(opened: _Opened, rerank: str | None) -> Any:
    """The vectors of a file that is named, or those of a compression."""
    return opened.vectors if rerank in (None, NO_RERANK) else rerank


def _rows(
    path: str, opened: _Opened, plan: SearchPlan, form: str
) -> tuple[BinaryCodes | np.ndarray, Callable[[Any], Queries]]:
    """Rows of a file, and what makes queries of some of them."""
    if opened.hasher is not None:
        return load_array(path), opened.hasher.as_queries
    if plan.by == QueryKind.bits:
        return load_codes(path, opened.door.n_bits, form), Queries
    return load_array(path), lambda weights: Queries(weights=weights)


@contextmanager
def _opened(
    folder: str, cluster: str | None, replicas: int, model: str | None, opening: dict[str, Any]
) -> Iterator[_Opened]:
    """What a folder holds: an index, or a compression with its model, its plan and its vectors."""
    if is_compressed(folder):
        from rankbits.compress import load

        compressed = load(folder)
        with _door(os.path.join(folder, "index"), cluster, replicas, opening) as door:
            hasher = compressed.model if model is None else _model(model, door)
            yield _Opened(door, hasher, compressed.plan, compressed.vectors)
        return
    with _door(folder, cluster, replicas, opening) as door:
        hasher = None if model is None else _model(model, door)
        yield _Opened(door, hasher, SearchPlan("bits" if model is None else "weights"))


def _model(folder: str, door: Door) -> Any:
    """The model that encoded the items."""
    from rankbits import methods  # models take long to import, and codes need none

    hasher = methods.load(folder)
    files.require_model(hasher, door)
    return hasher


@contextmanager
def _door(
    folder: str, cluster: str | None, replicas: int, opening: dict[str, Any]
) -> Iterator[Any]:
    if cluster is not None:
        from rankbits import distributed

        with distributed.index(folder, cluster=cluster, replicas=replicas, **opening) as shards:
            yield shards
        return
    files.refuse_shards(folder)
    with Collection.open(folder, **opening) as collection:
        state = collection.index()
    yield state
