"""The models of a candidate: the one a user will load, and those by which its queries are asked."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankbits.compress._candidates import Coder, create_hasher
from rankbits.compress._lessons import learning_parts, others, teach
from rankbits.compress._task import Task


class Models(NamedTuple):
    """What a candidate has learned.

    Attributes
    ----------
    hasher : BaseHasher
        Fitted to everything.
    unseen : list of (BaseHasher, ndarray of int64)
        For methods that learn from judged queries: models and the rows of the queries that each of
        them has not learned from, which are all queries together. Empty for other methods.
    """

    hasher: Any
    unseen: list[tuple[Any, np.ndarray]]


def learn_models(
    coder: Coder,
    n_bytes: int,
    task: Task,
    training: np.ndarray,
    model: Path,
    seed: int,
    n_threads: int | None,
) -> Models:
    """Fit a method, and once more for each part of the queries if it learns from judgements.

    Parameters
    ----------
    coder : Coder
        The way to make codes.
    n_bytes : int
        Bytes of a code.
    task : Task
        What it learns from.
    training : ndarray of int64
        Rows of the items to learn from.
    model : Path
        Where the model is saved; one that is there is loaded instead of being learned again.
    seed : int
        Seed of the method.
    n_threads : int or None
        Threads of the method; None takes all.
    """
    fit = partial(_fit_or_load, coder, n_bytes, task, training, seed=seed, n_threads=n_threads)
    n_queries = len(task.queries)
    parts = learning_parts(n_queries, seed) if coder.lesson == "judgements" else []
    paths = [model.with_name(f"part{number}-{model.name}") for number in range(len(parts))]
    return Models(
        fit(model),
        [
            (fit(path, others(part, n_queries)), part)
            for path, part in zip(paths, parts, strict=True)
        ],
    )


def _fit_or_load(
    coder: Coder,
    n_bytes: int,
    task: Task,
    training: np.ndarray,
    model: Path,
    learners: np.ndarray | None = None,
    *,
    seed: int,
    n_threads: int | None,
) -> Any:
    """The fitted method, which is saved; a model that was saved before is the same one."""
    from rankbits import methods

    if model.exists():
        return methods.load(model)
    hasher = create_hasher(coder, n_bytes, seed, n_threads)
    teach(hasher, coder, task, training, learners)
    hasher.save(model)
    return methods.load(model)  # what is measured is what a user will load
