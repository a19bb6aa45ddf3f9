"""Runs of `rankbits evaluate` other than two sets of codes: vectors, weights, lists of results."""

from dataclasses import dataclass

import numpy as np
import typer

from rankbits.affinity import Affinity, QrelsCounts, qrels_pairs, read_judgements
from rankbits.cli._inputs import only
from rankbits.cli._judgements import CodeFiles
from rankbits.cli._options import CodeOptions, GradedRelevance
from rankbits.cli._output import warn
from rankbits.cli._runs import load_relevance
from rankbits.codes import BinaryCodes
from rankbits.datasets import load_array, load_codes, load_ids, load_judgements, load_labels
from rankbits.errors import InputError
from rankbits.evaluation import Results, is_run_file, load_results, read_run, run_lines


@dataclass(frozen=True, eq=False)
class RealRun:
    """Queries and items of which one side or both are real numbers."""

    queries: np.ndarray
    database: np.ndarray | BinaryCodes
    affinity: Affinity | None
    qrels_counts: QrelsCounts | None


@dataclass(frozen=True, eq=False)
class RankedRun:
    """Lists of results, those of a reference ranking if there is one, and what is relevant."""

    results: Results
    reference: np.ndarray | None
    affinity: Affinity | None
    n_items: int
    qrels_counts: QrelsCounts | None


def load_vectors_run(files: CodeOptions, relevance: GradedRelevance) -> RealRun:
    """Vectors of both sides; a .npy stays on the disk."""
    return _real_run(files, relevance, load_array(_database(files)))


def load_weights_run(files: CodeOptions, relevance: GradedRelevance) -> RealRun:
    """Real-valued queries and codes of the items."""
    return _real_run(files, relevance, load_codes(_database(files), files.bits, files.codes))


def load_ranked_run(rankings: str, reference: str | None, relevance: GradedRelevance) -> RankedRun:
    """Lists of results by ids of a TREC run, or by row numbers."""
    if is_run_file(rankings):
        return _named_run(rankings, reference, relevance)
    results = load_results(rankings)
    head = None if reference is None else load_results(reference).ids
    if results.ids.ndim != 2 or results.ids.size == 0:
        raise InputError(f"{rankings} must hold ids of shape (queries, k), got {results.ids.shape}")
    n_items = _n_items(relevance, [results.ids] if head is None else [results.ids, head])
    if not relevance.are_given:
        return RankedRun(results, head, None, n_items, None)
    files = CodeFiles(rankings, len(results.ids), ["the database"], [n_items])
    affinity, counts = load_relevance(relevance, files)
    return RankedRun(results, head, affinity, n_items, counts)


def load_reference(path: str | None) -> np.ndarray | None:
    """Row numbers of the first items of each query in a reference ranking."""
    if path is None:
        return None
    if is_run_file(path):
        raise InputError(
            f"{path} must be a file of row numbers, .npy or .npz, since codes and vectors have no "
            "names; a TREC run is compared with --rankings"
        )
    return load_results(path).ids


def _real_run(
    files: CodeOptions, relevance: GradedRelevance, database: np.ndarray | BinaryCodes
) -> RealRun:
    path = files.queries or ""
    queries = load_array(path)
    if not relevance.are_given:
        return RealRun(queries, database, None, None)
    sizes = CodeFiles(path, len(queries), [_database(files)], [len(database)])
    return RealRun(queries, database, *load_relevance(relevance, sizes))


def _named_run(rankings: str, reference: str | None, relevance: GradedRelevance) -> RankedRun:
    """A TREC run: ids from files, else from the qrels and the runs themselves."""
    if relevance.query_labels or relevance.database_labels:
        raise typer.BadParameter("a TREC run is scored by --judgements, not by labels")
    if reference is not None and not is_run_file(reference):
        raise InputError(f"{reference} must be a TREC run, as {rankings} is")
    query_ids, item_ids = _names(rankings, reference, relevance)
    results = read_run(rankings, query_ids, item_ids)
    head = None if reference is None else read_run(reference, query_ids, item_ids).ids
    if relevance.judgements is None:
        return RankedRun(results, head, None, len(item_ids), None)
    judged = read_judgements(relevance.judgements, query_ids, item_ids)
    return RankedRun(results, head, judged, len(item_ids), judged.counts)


def _names(
    rankings: str, reference: str | None, relevance: GradedRelevance
) -> tuple[list[str], list[str]]:
    """Ids of queries and items: of the files given, or all that judgements and runs name."""
    runs = [path for path in (rankings, reference) if path is not None]
    pairs = [] if relevance.judgements is None else list(qrels_pairs(relevance.judgements))
    named = [(pair.query, pair.item) for pair in pairs]
    of_runs = [(line.query, line.item) for path in runs for line in run_lines(path)]
    query_ids = [query for query, _ in named or of_runs]
    item_ids = [item for _, item in [*named, *of_runs]]
    if relevance.query_ids is not None:
        query_ids = list(map(str, load_ids(relevance.query_ids).tolist()))
    if relevance.database_ids:
        path = only("--database-ids", relevance.database_ids) or ""
        item_ids = list(map(str, load_ids(path).tolist()))
    return list(dict.fromkeys(query_ids)), list(dict.fromkeys(item_ids))


def warn_of_queries(path: str, results: Results) -> None:
    """Say which queries have no results, and which results have no query."""
    n_without, n_queries = int((results.ids < 0).all(axis=1).sum()), len(results.ids)
    if n_without:
        warn(f"{path} has no results for {n_without} of {n_queries} queries: nothing is found")
    if results.n_unknown_queries:
        warn(f"{path}: {results.n_unknown_queries} queries are not judged and are left out")


def _n_items(relevance: GradedRelevance, lists: list[np.ndarray]) -> int:
    """Size of the database: of its labels or ids, else what row numbers go up to."""
    if relevance.database_labels:
        return len(load_labels(relevance.database_labels[0]))
    if relevance.database_ids:
        return len(load_ids(relevance.database_ids[0]))
    if relevance.judgements is not None and not relevance.query_ids:
        lists = [*lists, load_judgements(relevance.judgements)[:, 1]]
    return 1 + max(int(ids.max()) for ids in lists)


def _database(files: CodeOptions) -> str:
    return only("--database", files.database) or ""
