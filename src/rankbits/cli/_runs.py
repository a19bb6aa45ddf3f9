"""A run, as the commands read it from its files.

A run is codes of queries, codes of a database in one or more shards, and what is relevant to whom:
labels of both sides, or judged pairs. Items are numbered through all shards, in the order given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import typer

from rankbits import affinity
from rankbits.affinity import Affinity, Judgements, QrelsCounts
from rankbits.cli._judgements import CodeFiles, counts_of, load_judged_pairs, require_ids
from rankbits.cli._options import CodeOptions, GradedRelevance, RelevanceOptions
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_codes, load_labels
from rankbits.errors import InputError


@dataclass(frozen=True, eq=False)
class Run:
    """Codes of queries and of the shards of a database, each shard with its affinity."""

    queries: BinaryCodes
    shards: list[tuple[BinaryCodes, Affinity]]
    join_affinities: Callable[[], Affinity]  # the affinity of the shards as one database
    qrels_counts: QrelsCounts | None = None  # of judgements by id

    @property
    def n_items(self) -> int:
        """Items in all shards."""
        return sum(len(codes) for codes, _ in self.shards)

    def join_shards(self) -> tuple[BinaryCodes, Affinity]:
        """The database in one piece, for results that do not add over shards."""
        if len(self.shards) == 1:
            return self.shards[0]
        codes = BinaryCodes.concatenate([codes for codes, _ in self.shards])
        return codes, self.join_affinities()


def load_relevance(
    relevance: GradedRelevance, files: CodeFiles
) -> tuple[Affinity, QrelsCounts | None]:
    """The affinity of a database in one piece, and what became of judgements by id."""
    paths = label_paths(relevance, files.database)
    if paths is None:
        judged = load_judged_pairs(relevance, files)
        return judged, counts_of(judged)
    labels = _labels_in_step(paths[0], files.queries, files.n_queries)
    item_labels = _labels_in_step(paths[1][0], files.database[0], files.shard_sizes[0])
    return _label_affinity(labels, item_labels, relevance.graded), None


def load_run(files: CodeOptions, relevance: GradedRelevance) -> Run:
    """Load a run from its files; files that do not fit together are an InputError."""
    if files.queries is None or not files.database:
        raise typer.BadParameter("give --queries and --database")
    paths = label_paths(relevance, files.database)
    queries, shards = _load_codes(files, files.queries, files.database)
    if paths is None:
        lengths = [len(codes) for codes in shards]
        sizes = CodeFiles(files.queries, len(queries), files.database, lengths)
        return _judged_run(queries, shards, load_judged_pairs(relevance, sizes))
    labels = _labels_in_step(paths[0], files.queries, len(queries))
    shard_labels = [
        _labels_in_step(labels_path, path, len(codes))
        for labels_path, path, codes in zip(paths[1], files.database, shards, strict=True)
    ]
    affinities = [_label_affinity(labels, part, relevance.graded) for part in shard_labels]
    return Run(
        queries,
        list(zip(shards, affinities, strict=True)),
        lambda: _label_affinity(labels, np.concatenate(shard_labels), relevance.graded),
    )


def _load_codes(
    files: CodeOptions, queries: str, database: Sequence[str]
) -> tuple[BinaryCodes, list[BinaryCodes]]:
    """Codes of the queries and of each shard, all of one length."""
    query_codes = load_codes(queries, files.bits, files.codes)
    shards = [load_codes(path, files.bits, files.codes) for path in database]
    for path, codes in zip(database, shards, strict=True):
        if codes.n_bits != query_codes.n_bits:
            raise InputError(
                f"--queries has {query_codes.n_bits} bits and {path} has {codes.n_bits}; "
                "encode both with the same model"
            )
    return query_codes, shards


def label_paths(
    files: RelevanceOptions, database: Sequence[str]
) -> tuple[str, Sequence[str]] | None:
    """The label files of both sides, one for each shard; None if there are judgements instead."""
    require_ids(files, len(database))
    query_labels, database_labels = files.query_labels, files.database_labels
    if query_labels is None and not database_labels and files.judgements is not None:
        return None
    if query_labels is None or not database_labels or files.judgements is not None:
        raise typer.BadParameter(
            "give both --query-labels and --database-labels, or --judgements instead of them"
        )
    if len(database_labels) != len(database):
        raise typer.BadParameter(
            f"--database-labels must be given once for each --database, got {len(database_labels)} "
            f"for {len(database)}"
        )
    return query_labels, database_labels


def _labels_in_step(labels_path: str, codes_path: str, n_codes: int) -> np.ndarray:
    labels = load_labels(labels_path)
    if len(labels) != n_codes:
        raise InputError(
            f"{labels_path} has {len(labels)} labels and {codes_path} has {n_codes} codes; "
            "there must be one label per code"
        )
    return labels


def _label_affinity(
    query_labels: np.ndarray, database_labels: np.ndarray, graded: bool
) -> Affinity:
    """Classes for 1-D labels, tags for 2-D ones."""
    if query_labels.ndim != database_labels.ndim:
        raise InputError(
            f"query labels have shape {query_labels.shape} and database labels "
            f"{database_labels.shape}; both must be classes (1-D) or both multi-hot (2-D)"
        )
    if query_labels.ndim == 2:
        return affinity.tags(query_labels, database_labels, graded=graded)
    if graded:
        raise InputError("--graded needs multi-hot labels (2-D), got classes (1-D)")
    return affinity.classes(query_labels, database_labels)


def _judged_run(queries: BinaryCodes, shards: list[BinaryCodes], judged: Judgements) -> Run:
    """Each shard gets the judged pairs of its own items, numbered from its first."""
    parts: list[tuple[BinaryCodes, Affinity]] = []
    rows, start = judged.rows, 0
    for codes in shards:
        own = rows[(rows[:, 1] >= start) & (rows[:, 1] < start + len(codes))]
        local = own - np.array([0, start, 0])
        parts.append((codes, affinity.judgements(local, len(queries), len(codes))))
        start += len(codes)
    return Run(queries, parts, lambda: judged, counts_of(judged))
