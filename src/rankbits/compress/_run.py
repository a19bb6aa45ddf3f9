"""The run: check, look, plan, measure cell by cell, choose, write."""

import os
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._environment import environment, peak_memory_mb
from rankbits._mapped import unchanged
from rankbits.compress import _folder
from rankbits.compress._candidates import POOLS, coders
from rankbits.compress._compressed import Compressed
from rankbits.compress._lists import pools_of
from rankbits.compress._options import Options, check_options
from rankbits.compress._results import Cell, collect_candidates, summarize
from rankbits.compress._searching import CodeSearch, build_search
from rankbits.compress._stages import Stages
from rankbits.compress._store import CellStore, open_work_folder
from rankbits.compress._task import Task, prepare_task
from rankbits.compress._truth import check_metrics
from rankbits.compress._words import Report
from rankbits.metrics import NamedMetric

BYTES = (8, 16, 32)
KEEP = 0.95


def compress(
    items: Any,
    queries: Any = None,
    *,
    out: str | os.PathLike[str],
    n_bytes: Iterable[int] | int = BYTES,
    keep: float = KEEP,
    judgements: Any = None,
    query_labels: Any = None,
    item_labels: Any = None,
    similarity: str = "cosine",
    metrics: Iterable[str] | str | None = None,
    methods: Iterable[str] | None = None,
    pools: Iterable[int] = POOLS,
    peers: bool = False,
    budget: float | None = None,
    n_queries: int | None = None,
    onnx: bool = True,
    overwrite: bool = False,
    random_state: int = 0,
    n_threads: int | None = None,
    report: Report | None = None,
) -> Compressed:
    """Find the smallest codes that keep the quality of float vectors on given queries.

    Every candidate is measured on the queries: methods and lengths, queries as bits or as real
    weights, with and without re-ranking. The smallest that keeps enough is written to a folder with
    its model, codes and index, all numbers and a page. A run that was killed goes on where it
    stopped if it is started again with the same arguments.

    Parameters
    ----------
    items : array-like of shape (N, d), or path
        Vectors of the items: float16, float32, float64, int8 or uint8, or a file of them. A `.npy`
        file is mapped and may be larger than memory.
    queries : array-like of shape (n, d), path or None, default=None
        Vectors of real queries, 20 at least. Without them a sample of the items asks.
    out : str or path-like
        Folder to write. It appears when everything is complete, and replaces an earlier result that
        is as it was written. A folder with anything else is refused.
    n_bytes : int or iterable of int, default=(8, 16, 32)
        Bytes of a code.
    keep : float, default=0.95
        Share of the float ranking's quality that is to be kept.
    judgements : array-like of int, shape (pairs, 3), or None, default=None
        Rows (query, item, level), from 0.
    query_labels, item_labels : array-like or None, default=None
        Instead of judgements: classes (n,) or multi-hot tags (n, L). Without either, the float
        ranking itself is the truth.
    similarity : {"cosine", "ip", "l2"}, default="cosine"
        What the float vectors are ranked by.
    metrics : str, iterable of str or None, default=None
        Metrics that are cut by a rank; the first decides. None takes nDCG@10 and overlap@10 if
        there are judgements or labels, and the two in the other order if there are none.
    methods : iterable of str or None, default=None
        Names of methods to try; None takes the usual ones.
    pools : iterable of int, default=(20, 50, 100, 200, 500, 1000)
        Numbers of items to re-rank by their original vectors, beside none at all.
    peers : bool, default=False
        Whether quantizers of faiss and the raw signs of sentence-transformers are measured too.
    budget : float or None, default=None
        Minutes that the run may take. Where they are few, it learns from fewer items, asks fewer
        queries and tries fewer methods; where they are many, it tries slow methods too. None tries
        all methods but the slow ones, however long that takes.
    n_queries : int or None, default=None
        How many queries ask at most; None takes 1,000.
    onnx : bool, default=True
        Whether the model is exported to ONNX too, where torch and onnx are installed.
    overwrite : bool, default=False
        Whether an earlier result is replaced too if its files, such as those of its index, have
        changed since. Files that are not of the result are refused all the same.
    random_state : int, default=0
        Seed of all samples and methods.
    n_threads : int or None, default=None
        Threads of searches and evaluation; None takes all that this process may use.
    report : callable or None, default=None
        Called with each line of progress.

    Returns
    -------
    compressed : Compressed
        The folder, opened.
    """
    started = time.monotonic()
    sources = items, queries, judgements, query_labels, item_labels
    overwrite = _check.flag("overwrite", overwrite)
    target = _folder.require_target(out, sources, overwrite=overwrite)
    options = check_options(
        n_bytes, keep, methods, pools, peers, budget, n_queries, onnx, random_state
    )
    with open_work_folder(target) as work:
        task = prepare_task(*sources, similarity, options.n_queries, options.seed, work)
        requests = check_metrics(metrics, task.relevance.kind)
        say = report or (lambda _line: None)
        stages = Stages(CellStore(work), task, options.seed, n_threads, say, started)
        result, cells = _measure(stages, options, requests)
        result |= {"vectors": _path_of_vectors(items), "data": _facts(stages.task, items, queries)}
        search = _encode_items(result, cells, stages)
        result["seconds"] = round(time.monotonic() - started, 1)
        result["peak_memory_mb"] = peak_memory_mb()
        _folder.write_folder(
            target,
            result,
            search,
            _vectors_to_write(result, stages.task),
            with_onnx=options.with_onnx,
            overwrite=overwrite,
        )
        _folder.remove_work(work)
    say(result["recommendation"]["sentence"])
    return Compressed(target)


def _measure(
    stages: Stages, options: Options, requests: tuple[NamedMetric, ...]
) -> tuple[dict[str, Any], list[Cell]]:
    """All stages one after the other; the result lacks only what files say."""
    for note in stages.task.notes:
        stages.report(f"note: {note}")
    depth = max(request.k or 1 for request in requests)
    pools = pools_of(options.pools, depth, len(stages.task.items))
    has_budget = options.budget_seconds is not None
    tried = coders(options.methods, stages.task.relevance.kind, with_slow=has_budget)
    plan = stages.make_plan(tried, options.lengths, pools, options.budget_seconds)
    truth = stages.find_truth(requests)
    diagnosis = stages.diagnose(plan.n_bytes)
    cells = stages.measure(plan, truth, options.budget_seconds, has_peers=options.has_peers)
    task = stages.task
    candidates = collect_candidates(cells, truth.metrics, len(task.items))
    minutes = None if options.budget_seconds is None else options.budget_seconds / 60
    result = {
        **summarize(candidates, truth, task.query_rows, options.keep, options.seed),
        "similarity": task.similarity,
        "diagnosis": diagnosis,
        "notes": [*task.notes, *stages.left_out],
        "plan": plan.to_dict(),
        "settings": {
            "keep": options.keep,
            "seed": options.seed,
            "budget": minutes,
            "peers": options.has_peers,
        },
        "environment": environment(stages.n_threads),
    }
    return result, cells


def _encode_items(result: dict[str, Any], cells: list[Cell], stages: Stages) -> CodeSearch:
    """All items, encoded by the recommended model, ready to be searched."""
    from rankbits import methods

    chosen, task = result["recommendation"], stages.task
    key = chosen["method"], chosen["bytes"]
    cell = next(cell for cell in cells if (cell.method, cell.n_bytes) == key)
    hasher = methods.load(stages.store.folder / cell.content["model"])
    with unchanged(task.items):
        return build_search(hasher, task.items, stages.n_threads)


def _vectors_to_write(result: dict[str, Any], task: Task) -> np.ndarray | None:
    """The vectors, if items are re-ranked and no file of the user's has them."""
    is_needed = result["recommendation"]["pool"] is not None and result["vectors"] is None
    return task.items if is_needed else None


def _path_of_vectors(items: Any) -> str | None:
    """Where the vectors are, if a file that can be mapped holds them."""
    is_file = isinstance(items, str | os.PathLike) and os.fspath(items).endswith(".npy")
    return os.path.abspath(items) if is_file else None


def _facts(task: Task, items: Any, queries: Any) -> dict[str, Any]:
    """What was compressed."""
    names = {
        name: os.fspath(source) if isinstance(source, str | os.PathLike) else None
        for name, source in (("items_file", items), ("queries_file", queries))
    }
    return {
        **names,
        "items": len(task.items),
        "width": task.items.shape[1],
        "dtype": str(task.items.dtype),
        "float_bytes": task.items.shape[1] * task.items.dtype.itemsize,
        "queries": len(task.queries),
        "asked_by": task.asked_by,
        "digest": task.digest(),
    }
