"""Judged pairs of a run: by row numbers, or by the ids of a qrels file."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import typer

from rankbits import affinity
from rankbits.affinity import Judgements, QrelsCounts, QrelsJudgements
from rankbits.cli._options import RelevanceOptions
from rankbits.cli._output import warn
from rankbits.datasets import load_ids, load_judgements
from rankbits.errors import InputError


@dataclass(frozen=True)
class CodeFiles:
    """Files of codes, and how many codes each holds."""

    queries: str
    n_queries: int
    database: Sequence[str]
    shard_sizes: Sequence[int]


def require_ids(relevance: RelevanceOptions, n_shards: int) -> None:
    """Refuse ids of one side, ids of some shards, and ids without judgements."""
    query_ids, database_ids = relevance.query_ids, relevance.database_ids
    if query_ids is None and not database_ids:
        return
    if query_ids is None or not database_ids or relevance.judgements is None:
        raise typer.BadParameter(
            "give --query-ids and --database-ids together, with the qrels file as --judgements"
        )
    if len(database_ids) != n_shards:
        raise typer.BadParameter(
            f"--database-ids must come once for each --database, got {len(database_ids)} for "
            f"{n_shards}"
        )


def load_judged_pairs(relevance: RelevanceOptions, codes: CodeFiles) -> Judgements:
    """The judgements of all queries and of the items of all shards, numbered in order."""
    path = str(relevance.judgements)
    if relevance.query_ids is None:
        return affinity.judgements(load_judgements(path), codes.n_queries, sum(codes.shard_sizes))
    query_ids = _ids_in_step(relevance.query_ids, codes.queries, codes.n_queries)
    shards = zip(relevance.database_ids or (), codes.database, codes.shard_sizes, strict=True)
    database_ids = np.concatenate([_ids_in_step(*shard) for shard in shards])
    judged = affinity.read_judgements(path, query_ids, database_ids)
    _warn_of_unknown_ids(path, judged)
    return judged


def counts_of(judged: Judgements) -> QrelsCounts | None:
    """What became of judgements by id; None for judgements by row numbers."""
    return judged.counts if isinstance(judged, QrelsJudgements) else None


def _ids_in_step(ids_path: str, codes_path: str, n_codes: int) -> np.ndarray:
    """The ids of a file as strings, one for each code."""
    ids = load_ids(ids_path)
    if len(ids) != n_codes:
        raise InputError(
            f"{ids_path} has {len(ids)} ids and {codes_path} has {n_codes} codes; "
            "ids and codes must go in step"
        )
    return np.array([str(value) for value in ids.tolist()], object)


def _warn_of_unknown_ids(path: str, judged: QrelsJudgements) -> None:
    counts = judged.counts
    if counts.n_used < counts.n_pairs:
        warn(
            f"{path}: {counts.n_used} of {counts.n_pairs} judged pairs are used; "
            f"{counts.n_unknown_queries} query ids and {counts.n_unknown_items} item ids "
            "are not among the given ids"
        )
