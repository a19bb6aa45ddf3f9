"""Runs: a method learns, encodes and is judged under a protocol, once for each seed.

for each split seed: draw the split
    for each method and code length: fit on training rows, encode queries and database, evaluate
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any

from rankbits import _check
from rankbits._environment import environment, peak_memory_mb
from rankbits._json import as_json
from rankbits.benchmark._plan import PlannedRun, create_method, plan_runs
from rankbits.benchmark._protocol import Protocol
from rankbits.benchmark._protocols import protocol
from rankbits.benchmark._relevance import RetrievalTask
from rankbits.benchmark._scores import checked_metrics, describe_code_use, metrics_for, scores
from rankbits.benchmark._sources import DataSource, load_source
from rankbits.benchmark._splits import ProtocolSplit
from rankbits.benchmark._store import FORMAT, ResultStore, settings_hash
from rankbits.benchmark._summary import summarise
from rankbits.datasets import Labelled
from rankbits.errors import InputError
from rankbits.methods import PosteriorCache

QUERIES = ("bits", "real")
_ENCODINGS, _LONG_ENCODING = 3, 2.0  # times, and seconds
Report = Callable[[dict[str, Any], bool], None]


def run(
    protocol_name: str | Protocol,
    data: str | os.PathLike[str] | Labelled,
    methods: Iterable[str] | str | None = None,
    bits: Iterable[int] | int | None = None,
    *,
    seeds: int = 1,
    split_seeds: Iterable[int] | None = None,
    params: Mapping[str, Any] | None = None,
    metrics: Iterable[str] = (),
    queries: str = "bits",
    out: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Run methods under a protocol; the result is ready for JSON.

    Parameters
    ----------
    protocol_name : name of a protocol, or a `Protocol`
    data : folder or file with its data, or the rows themselves
    methods, bits : default: those of the protocol
    seeds : int, how many: seed i is the method's random_state and draws the split
    split_seeds : draw these splits instead, each with every seed
    params : parameters of the methods; METHOD.NAME is for one method, NAME for all of them
    metrics : more names for `rankbits.evaluate`, beside those of the protocol
    queries : {"bits", "real"}, how queries are given to the evaluation: as codes, which are ranked
        by Hamming distance, or as real weights, by which codes are ranked, for every method; then
        those metrics of the protocol that read Hamming distances are left out
    out : folder for a file a run; a run whose file is there is not repeated
    n_threads : int or None, of evaluation, of linear algebra, and of a method that has it
    report : called after each run with its result and whether it was read from `out`
    """
    chosen = protocol(protocol_name)
    plan = plan_runs(chosen, methods, bits, seeds, split_seeds, dict(params or {}))
    _check.choice("queries", queries, QUERIES)
    _require_query_kind(plan, queries)
    names = checked_metrics((*metrics_for(queries, chosen.metrics), *metrics))
    if n_threads is not None:
        n_threads = _check.whole("n_threads", n_threads, 1)
    store, source = ResultStore(out), load_source(chosen.data, data)
    runs: list[dict[str, Any]] = []
    for split_seed, group in _by_split(plan):
        split = chosen.split.draw(source.data, split_seed)
        _require_use_of_unlabelled_rows(chosen, split, group)
        task: RetrievalTask | None = None
        cache = PosteriorCache()  # methods and code lengths on the same rows share class posteriors
        for planned in group:
            settings = settings_of(chosen, source, planned, names, queries)
            result = store.get(settings)
            is_old = result is not None
            if result is None:
                task = task or chosen.relevance.task(source.data, split)
                measured = _measured(planned, task, names, n_threads, cache, queries)
                result = result_of(settings, split, measured, n_threads)
                store.put(settings, result)
            runs.append(result)
            if report is not None:
                report(result, is_old)
    runs.sort(key=lambda done: _place(plan, done["settings"]))
    return all_of(chosen, source, runs)


def _require_query_kind(plan: list[PlannedRun], queries: str) -> None:
    """Refuse methods that cannot be asked so, before the first of them is fitted."""
    for planned in plan:
        kinds = create_method(planned, None).query_kinds
        if queries not in kinds:
            raise InputError(
                f"queries must be {kinds[0]!r} for {planned.method}, whose codes are not ranked "
                f"by Hamming distance, got {queries!r}; pass queries={kinds[0]!r}, or --by weights"
            )


def _require_use_of_unlabelled_rows(
    chosen: Protocol, split: ProtocolSplit, plan: list[PlannedRun]
) -> None:
    """Refuse methods that would take rows without a label for a class of their own."""
    for planned in plan:
        if len(split.unlabelled) and planned.method not in chosen.methods:
            raise InputError(
                f"methods must be among {', '.join(chosen.methods)} under {chosen.name}, where "
                f"most rows have no label, got {planned.method}"
            )


def all_of(chosen: Protocol, source: DataSource, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Several runs with their protocol, data and summary."""
    return {
        "protocol": chosen.to_dict(),
        "data": source.to_dict(),
        "summary": summarise(runs, chosen.published),
        "runs": runs,
    }


def _by_split(plan: list[PlannedRun]) -> Iterator[tuple[int, list[PlannedRun]]]:
    """Runs that share a split, one split after the other."""
    for split_seed in dict.fromkeys(planned.split_seed for planned in plan):
        yield split_seed, [planned for planned in plan if planned.split_seed == split_seed]


def _place(plan: list[PlannedRun], settings: dict[str, Any]) -> int:
    """Place of a run in the plan."""
    keys = ("method", "bits", "split_seed", "seed")
    values = tuple(settings[key] for key in keys)
    return [tuple(getattr(planned, key) for key in keys) for planned in plan].index(values)


def settings_of(
    chosen: Protocol,
    source: DataSource,
    planned: PlannedRun,
    names: tuple[str, ...],
    queries: str = "bits",
) -> dict[str, Any]:
    """Whatever the numbers of a run depend on."""
    from rankbits import __version__

    kind = {} if queries == "bits" else {"queries": queries}  # files of before have none
    return {
        **kind,
        "protocol": chosen.rules(),
        "data": source.digest,
        "method": planned.method,
        "bits": planned.bits,
        "split_seed": planned.split_seed,
        "seed": planned.seed,
        "params": as_json(dict(planned.params)),
        "metrics": list(names),
        "version": __version__,
    }


def _measured(
    planned: PlannedRun,
    task: RetrievalTask,
    names: tuple[str, ...],
    n_threads: int | None,
    cache: PosteriorCache,
    kind: str,
) -> dict[str, Any]:
    """Learn, encode, evaluate, with the seconds each took."""
    hasher, clock = create_method(planned, n_threads), time.perf_counter
    if "posterior_cache" in hasher.get_params(deep=False):
        hasher.set_params(posterior_cache=cache)
    with _limited(n_threads):
        started = clock()
        _fit(hasher, planned, task)
        fitted = clock()
        queries, database, encoding = _encoded(hasher, task, kind)
        started_to_evaluate = clock()
        result = scores(queries, database, task.affinity, names, n_threads, task.kinds)
        evaluated = clock()
    return {
        "metrics": result,
        "code_use": describe_code_use(database),
        "seconds": {
            "fit": round(fitted - started, 4),
            "encode": round(encoding, 4),
            "evaluate": round(evaluated - started_to_evaluate, 4),
        },
        "method_report": as_json(getattr(hasher, "report_", None)),
    }


def _encoded(hasher: Any, task: RetrievalTask, kind: str) -> tuple[Any, Any, float]:
    """Queries, database, and the seconds of both: the fastest of three if one is short.

    Codes are made in a fraction of a second, and the first time pays for whatever is not warm yet.
    """
    encode = hasher.project_queries if kind == "real" else hasher.encode_queries
    seconds: list[float] = []
    while not seconds or (len(seconds) < _ENCODINGS and seconds[0] < _LONG_ENCODING):
        started = time.perf_counter()
        queries, database = encode(task.query_x), hasher.encode(task.database_x)
        seconds.append(time.perf_counter() - started)
    return queries, database, min(seconds)


def _fit(hasher: Any, planned: PlannedRun, task: RetrievalTask) -> None:
    x, y, others, is_labelled = task.training_x, task.training_y, {}, task.is_labelled
    if is_labelled is not None and "unlabelled" in signature(hasher.fit).parameters:
        x, y, others = x[is_labelled], y[is_labelled], {"unlabelled": x[~is_labelled]}
    try:
        hasher.fit(x, y, **others)
    except InputError as error:
        raise InputError(f"{planned.method} of {planned.bits} bits: {error}") from None


def _limited(n_threads: int | None) -> AbstractContextManager[Any]:
    """Keep linear algebra to so many threads."""
    if n_threads is None:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[Any] = threadpool_limits(limits=n_threads)
    return limits


def result_of(
    settings: dict[str, Any], split: ProtocolSplit, measured: dict[str, Any], n_threads: int | None
) -> dict[str, Any]:
    """What the file of a run holds."""
    return {
        "rankbits_bench": FORMAT,
        "settings": settings,
        "settings_hash": settings_hash(settings),
        "split": {
            "hash": split.hash,
            "queries": len(split.queries),
            "database": len(split.database),
            "training": len(split.training),
        },
        **measured,
        "peak_memory_mb": peak_memory_mb(),
        "environment": environment(n_threads),
    }
