"""What the commands share: the options that name a run's files, and the run that they load.

A run is codes of queries, codes of a database in one or more shards, and what is relevant to whom:
labels of both sides, or judged pairs. Items are numbered through all shards, in the order given.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from rankbits import affinity
from rankbits.affinity import Affinity, Judgements, QrelsCounts, QrelsJudgements
from rankbits.cli._judgements import CodeFiles, id_files_of, load_judged_pairs
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_codes, load_labels
from rankbits.errors import InputError, RankbitsError


class CodeForm(StrEnum):
    """How a file holds codes."""

    auto = "auto"
    packed = "packed"
    bits = "bits"
    logits = "logits"


class EmptyPolicy(StrEnum):
    """How a query without any relevant item counts."""

    skip = "skip"
    zero = "zero"
    error = "error"


class OutputFormat(StrEnum):
    """How a result is printed."""

    json = "json"
    table = "table"


_FILES = ".npy, .npz, .parquet or .safetensors; FILE:KEY names one array of several"
QUERIES = typer.Option("--queries", help=f"Codes of the queries: {_FILES}.")
DATABASE = typer.Option("--database", help="Codes of the database; repeat it for each shard.")
QueriesOption = Annotated[str, QUERIES]
DatabaseOption = Annotated[list[str], DATABASE]
BitsOption = Annotated[
    int | None, typer.Option("--bits", min=1, help="Code length, if the file does not say it.")
]
FormOption = Annotated[
    CodeForm,
    typer.Option(
        "--codes",
        help="What the file holds: packed bytes, bits (0/1 or -1/+1), or logits, real values whose "
        "sign is the bit. auto recognizes packed bytes and bits.",
    ),
]
QueryLabelsOption = Annotated[
    str | None, typer.Option("--query-labels", help="Classes (1-D) or multi-hot tags (2-D).")
]
DatabaseLabelsOption = Annotated[
    list[str] | None,
    typer.Option("--database-labels", help="The same for each --database, in order."),
]
JudgementsOption = Annotated[
    str | None,
    typer.Option(
        "--judgements", help="Instead of labels: (query, item, level) rows, or a qrels file."
    ),
]
QueryIdsOption = Annotated[
    str | None,
    typer.Option(
        "--query-ids", help="Ids of the queries in the qrels file: .txt, .jsonl, .npy or .parquet."
    ),
]
DatabaseIdsOption = Annotated[
    list[str] | None,
    typer.Option("--database-ids", help="The same of the items; repeat for each --database."),
]
GradedOption = Annotated[
    bool, typer.Option("--graded", help="The level of two items is their number of shared tags.")
]
EmptyOption = Annotated[
    EmptyPolicy, typer.Option("--empty", help="How a query without relevant items counts.")
]
ExcludeSelfOption = Annotated[
    bool, typer.Option("--exclude-self", help="Query i is item i of the database: do not rank it.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Number of threads; default: all.")
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="How to print the result.")]


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

    def whole(self) -> tuple[BinaryCodes, Affinity]:
        """The database in one piece, for results that do not add over shards."""
        if len(self.shards) == 1:
            return self.shards[0]
        codes = BinaryCodes.concatenate([codes for codes, _ in self.shards])
        return codes, self.join_affinities()


def load_run(
    queries: str,
    database: Sequence[str],
    *,
    query_labels: str | None = None,
    database_labels: Sequence[str] | None = None,
    judgements: str | None = None,
    query_ids: str | None = None,
    database_ids: Sequence[str] | None = None,
    n_bits: int | None = None,
    form: str = "auto",
    graded: bool = False,
) -> Run:
    """Load a run from its files; files that do not fit together are an InputError."""
    relevance = _relevance(database, query_labels, database_labels, judgements)
    id_files = id_files_of(judgements, query_ids, database_ids, len(database))
    query_codes = load_codes(queries, n_bits, form)
    shards = [load_codes(path, n_bits, form) for path in database]
    for path, codes in zip(database, shards, strict=True):
        if codes.n_bits != query_codes.n_bits:
            raise InputError(
                f"--queries has {query_codes.n_bits} bits and {path} has {codes.n_bits}; "
                "encode both with the same model"
            )
    if isinstance(relevance, str):
        sizes = CodeFiles(queries, len(query_codes), database, [len(codes) for codes in shards])
        return _judged_run(query_codes, shards, load_judged_pairs(relevance, id_files, sizes))
    labels = _labels_in_step(relevance[0], queries, len(query_codes))
    shard_labels = [
        _labels_in_step(labels_path, path, len(codes))
        for labels_path, path, codes in zip(relevance[1], database, shards, strict=True)
    ]
    affinities = [_label_affinity(labels, part, graded) for part in shard_labels]
    return Run(
        query_codes,
        list(zip(shards, affinities, strict=True)),
        lambda: _label_affinity(labels, np.concatenate(shard_labels), graded),
    )


@dataclass(frozen=True)
class RelevanceFiles:
    """Files that say what is relevant to whom, for a database in one piece."""

    query_labels: str | None
    database_labels: Sequence[str] | None
    judgements: str | None
    query_ids: str | None
    database_ids: Sequence[str] | None
    graded: bool

    @property
    def are_given(self) -> bool:
        """Whether there are any."""
        return bool(self.query_labels or self.database_labels or self.judgements)

    def load(self, files: CodeFiles) -> tuple[Affinity, QrelsCounts | None]:
        """The affinity of the rows of two files, and what became of judgements by id."""
        relevance = _relevance(
            files.database, self.query_labels, self.database_labels, self.judgements
        )
        ids = id_files_of(self.judgements, self.query_ids, self.database_ids, 1)
        if isinstance(relevance, str):
            judged = load_judged_pairs(relevance, ids, files)
            return judged, judged.counts if isinstance(judged, QrelsJudgements) else None
        labels = _labels_in_step(relevance[0], files.queries, files.n_queries)
        item_labels = _labels_in_step(relevance[1][0], files.database[0], files.shard_sizes[0])
        return _label_affinity(labels, item_labels, self.graded), None


def _relevance(
    database: Sequence[str],
    query_labels: str | None,
    database_labels: Sequence[str] | None,
    judgements: str | None,
) -> str | tuple[str, Sequence[str]]:
    """The file of judgements, or the label files of both sides, of which each shard has one."""
    if query_labels is None and not database_labels and judgements is not None:
        return judgements
    if query_labels is None or not database_labels or judgements is not None:
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
    counts = judged.counts if isinstance(judged, QrelsJudgements) else None
    return Run(queries, parts, lambda: judged, counts)


def require_writable(path: str | None) -> None:
    """Refuse a file that cannot be written, before the work whose result it shall hold."""
    if path is None:
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(f"{path} must name a file in an existing folder that can be written")


@contextmanager
def input_errors_exit_1() -> Iterator[None]:
    """Bad input ends the command with one line on standard error, Ctrl-C quietly with 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (RankbitsError, OSError, MemoryError) as error:
        line = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {line}", file=sys.stderr)
        raise typer.Exit(1) from None


def named_values(option: str, words: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE words; a value that is not JSON is a string."""
    pairs: dict[str, Any] = {}
    for word in words or []:
        name, equals, text = word.partition("=")
        if not (name and equals) or name in pairs:
            raise typer.BadParameter(f"{option} must be NAME=VALUE, each name once, got {word!r}")
        try:
            pairs[name] = json.loads(text)
        except ValueError:
            pairs[name] = text
    return pairs
