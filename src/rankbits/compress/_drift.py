"""Has the data moved away from the codes? New items and queries, asked of an old model.

The old model encodes the new items and is measured on the new queries by the float ranking of the
new items, as it was when it was learned. A model that is learned anew from the new items, of the
same method and length, says what a refit would gain.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rankbits import _check
from rankbits._json import as_json
from rankbits._mapped import unchanged
from rankbits.codes import BinaryCodes
from rankbits.compress._candidates import Coder, coders, create_hasher
from rankbits.compress._compressed import Compressed
from rankbits.compress._lessons import teach
from rankbits.compress._lists import NO_POOL
from rankbits.compress._measuring import Exam, score_kind
from rankbits.compress._statistics import large_residual, quality_kept, student_quantile
from rankbits.compress._task import Task, prepare_task
from rankbits.compress._truth import (
    FLOAT_METRICS,
    Relevance,
    Truth,
    check_metrics,
    rank_by_vectors,
    truth_of,
)
from rankbits.compress._words import Report, percent
from rankbits.errors import InputError

METRIC = FLOAT_METRICS[0]


def check(
    folder: str | os.PathLike[str],
    items: Any,
    queries: Any = None,
    *,
    random_state: int = 0,
    n_threads: int | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Say whether new data has drifted away from compressed codes, and what a refit would gain.

    Parameters
    ----------
    folder : str or path-like
        Folder that `compress` wrote.
    items : array-like of shape (N, d), or path
        New items, or all items as they are now.
    queries : array-like of shape (n, d), path or None, default=None
        New queries, 20 at least. Without them a sample of the new items asks.
    random_state : int, default=0
        Seed of the samples and of the refit.
    n_threads : int or None, default=None
        Number of threads; None takes all that this process may use.
    report : callable or None, default=None
        Called with each line of progress.

    Returns
    -------
    result : dict
        Ready for JSON: `before` and `now` are the quality kept by the old model then and now,
        `refit` that of a new one, `gain` their difference with its 95 % interval, `drifted` whether
        `now` lies below the interval that was printed, and `sentence` all of it in words.
    """
    say = report or (lambda _line: None)
    compressed = Compressed(folder)
    seed = _check.whole("random_state", random_state, 0)
    with TemporaryDirectory() as work:
        task = prepare_task(
            items, queries, None, None, None, compressed.result["similarity"], None, seed,
            Path(work),
        )  # fmt: skip
        _require_width(compressed, task)
        for note in task.notes:
            say(f"note: {note}")
        with unchanged(task.items, task.queries):
            return _check_task(compressed, task, seed, n_threads, say)


def _check_task(
    compressed: Compressed, task: Task, seed: int, n_threads: int | None, say: Report
) -> dict[str, Any]:
    requests = check_metrics(METRIC, "float ranking")
    ranking = rank_by_vectors(
        task.items, task.queries, task.own, Relevance(), requests, task.similarity, n_threads
    )
    truth = truth_of(ranking, task.own, Relevance(), requests, len(task.items))
    say("ranked by the float vectors")
    old = _values(compressed.model, compressed, task, truth, n_threads)
    say("measured the old model")
    refit = _refit(compressed, task, seed, n_threads)
    new = _values(refit, compressed, task, truth, n_threads)
    say("measured a model that was learned from the new items")
    both, reference = np.stack([old, new]), truth.reference[METRIC]
    kept = quality_kept(both, reference, large_residual(both, reference))
    before = compressed.recommendation["metrics"].get(METRIC)
    result = {
        "folder": str(compressed.folder),
        "metric": METRIC,
        "items": len(task.items),
        "queries": len(task.queries),
        "before": before,
        "now": kept.row(0),
        "refit": kept.row(1),
        "gain": _gain(old, new, reference),
        "bits": _bit_shift(compressed, task),
        "notes": list(task.notes),
    }
    result["drifted"] = bool(before is not None and result["now"]["kept"] < before["low"])
    result["sentence"] = _sentence(result)
    return dict(as_json(result))


def _values(
    hasher: Any, compressed: Compressed, task: Task, truth: Truth, n_threads: int | None
) -> np.ndarray:
    """The metric of each query, asked as the folder recommends."""
    chosen = compressed.recommendation
    pools = [] if chosen["pool"] is None else [min(chosen["pool"], len(task.items))]
    exam = Exam(task, truth, pools, n_threads)
    values = score_kind(exam.open_search(hasher), chosen["query"], exam)
    pool = str(pools[0]) if pools else NO_POOL
    return np.array(values[pool][METRIC])


def _refit(compressed: Compressed, task: Task, seed: int, n_threads: int | None) -> Any:
    chosen = compressed.recommendation
    coder: Coder = coders([chosen["method"]])[0]
    hasher = create_hasher(coder, chosen["bytes"], seed, n_threads)
    training = task.training_rows(compressed.result["plan"]["training_rows"], seed)
    teach(hasher, coder, task, training)  # from items alone: new ones have no labels here
    return hasher


def _gain(old: np.ndarray, new: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Quality kept by the new model less that of the old, paired, with its interval."""
    differences = (new - old) / reference.mean()
    mean = differences.mean()
    n = len(differences)
    reach = student_quantile(n - 1) * differences.std(ddof=1) * np.sqrt(2 / n)
    return {"kept": float(mean), "low": float(mean - reach), "high": float(mean + reach)}


def _bit_shift(compressed: Compressed, task: Task) -> dict[str, float]:
    """How much the share of ones in a bit has changed, in the mean and at most."""
    rows = task.training_rows(20_000, 0)
    now = _share_of_ones(compressed.model.encode(np.asarray(task.items[rows])))
    before = _share_of_ones(compressed.index.codes()[:20_000])
    shift = np.abs(now - before)
    return {"mean_shift": float(shift.mean()), "largest_shift": float(shift.max())}


def _share_of_ones(codes: BinaryCodes) -> np.ndarray:
    share: np.ndarray = codes.bits().mean(axis=0)
    return share


def _require_width(compressed: Compressed, task: Task) -> None:
    width = compressed.result["data"]["width"]
    if task.items.shape[1] != width:
        raise InputError(
            f"items must have {width} numbers as those of {compressed.folder}, got "
            f"{task.items.shape[1]}; codes of another embedding model must be learned anew"
        )


def _sentence(result: dict[str, Any]) -> str:
    now, refit, gain = result["now"], result["refit"], result["gain"]
    words = f"The codes keep {percent(now['kept'])} of {METRIC} on this data"
    if result["before"] is not None:
        verdict = "it has drifted" if result["drifted"] else "no drift"
        words += f", {percent(result['before']['kept'])} when they were made: {verdict}"
    is_worth_it = gain["low"] > 0
    return (
        f"{words}. A refit would keep {percent(refit['kept'])}"
        f"{'' if is_worth_it else ', which is no clear gain'}."
    )
