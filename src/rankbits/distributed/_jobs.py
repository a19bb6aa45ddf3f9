"""Jobs of many tasks on a cluster: few in flight at a time, repeated where a worker was lost.

A task is a function of plain values that can be run twice: it reads files, and returns a value or
writes a file under a temporary name that it then renames. Errors of rankbits are values here, since
Ray would wrap them; lost workers and machines are Ray's to make up for.
"""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from rankbits import _check, errors
from rankbits._files import one_line
from rankbits._memory import keep_freed_memory
from rankbits.distributed._cluster import import_ray, n_cpus
from rankbits.errors import ClusterError, InputError, RankbitsError

_RETRIES = 20  # of a task whose worker was lost
_IN_FLIGHT_PER_CPU = 2
_LOOK_SECONDS = 1.0  # between looks at the size of the cluster and at tasks that are late
_LATE_SECONDS, _LATE_FACTOR = 20.0, 4.0  # a task is late after both, and then run a second time


class Failure(NamedTuple):
    """An error of a task, as a value."""

    kind: str
    message: str

    def raise_error(self, name: str) -> None:
        """Raise it again, with the name of what the task was about if it does not say it."""
        error_class = getattr(errors, self.kind, InputError)
        message = self.message if name in self.message else f"{name}: {self.message}"
        raise error_class(message)


@dataclass(frozen=True)
class ClusterTask:
    """One call: arguments, what it is about, and how much of the job it is.

    Attributes
    ----------
    name : str
        What it is about, for messages.
    arguments : tuple
        Plain values.
    size : int
        In whatever unit the job counts.
    shared : tuple
        References to values in the object store, which are the first arguments.
    """

    name: str
    arguments: tuple[Any, ...]
    size: int
    shared: tuple[Any, ...] = ()


@dataclass
class _Running:
    """A task that was submitted, with the value that it will have."""

    task: ClusterTask
    value: Any
    started: float = field(default_factory=time.monotonic)


def perform(version: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """Call a function on a worker: (None, value), or (Failure, None) for an error of rankbits."""
    from rankbits import __version__

    if version != __version__:
        message = f"this machine has rankbits {__version__} and the job comes from {version}"
        return Failure("InputError", f"cluster must have one version everywhere, {message}"), None
    try:
        return None, function(*arguments)
    except (RankbitsError, OSError, MemoryError) as error:
        kind = type(error).__name__ if isinstance(error, RankbitsError) else "InputError"
        return Failure(kind, one_line(error) or type(error).__name__), None


def perform_packed(call: tuple[str, bytes], *shared: Any) -> tuple[Any, Any]:
    """Perform a call that was packed by `_pack` with its arguments; a worker runs this."""
    version, packed = call
    keep_freed_memory()
    return perform(version, _call_packed, packed, shared)


def _pack(version: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A call as one argument: Ray takes a tenth of a millisecond for each that it gets."""
    cloudpickle = _check.extra("ray.cloudpickle", "a cluster", "distributed")
    return version, cloudpickle.dumps((function, arguments))


def _call_packed(packed: bytes, shared: tuple[Any, ...]) -> Any:
    function, arguments = pickle.loads(packed)  # noqa: S301 - from the driver, as code is
    return function(*shared, *arguments)


@cache
def remote_function(function: Callable[..., Any]) -> Any:
    """A function as Ray runs it; made once, since every new one is sent to all workers again."""
    return import_ray().remote(function)


def run_tasks(
    ray: Any,
    function: Callable[..., Any],
    tasks: Sequence[ClusterTask],
    on_done: Callable[[ClusterTask, Any], None],
    *,
    cpus_per_task: int = 1,
) -> None:
    """Run all tasks; `on_done` gets each of them, and a reference to its value, once.

    An error ends the job, and so does Ctrl-C: what still runs is cancelled.
    """
    from rankbits import __version__

    if not tasks:
        return
    remote = remote_function(perform_packed).options(
        num_returns=2, num_cpus=cpus_per_task, max_retries=_RETRIES, retry_exceptions=False
    )

    def submit(task: ClusterTask) -> tuple[Any, Any]:
        call = _pack(__version__, function, task.arguments)
        status, value = remote.remote(call, *task.shared)
        return status, value

    with _cancelled_in_the_end(ray, {}) as running:
        for task, value in _completed(ray, tasks, submit, running, cpus_per_task):
            on_done(task, value)


def _completed(
    ray: Any,
    tasks: Sequence[ClusterTask],
    submit: Callable[[ClusterTask], tuple[Any, Any]],
    running: dict[Any, _Running],
    cpus_per_task: int,
) -> Iterator[tuple[ClusterTask, Any]]:
    """Tasks as they end, each once; a late one is started a second time and may end first."""
    waiting, done = list(reversed(tasks)), set[int]()
    limit, looked, longest = 0, -_LOOK_SECONDS, 0.0
    while len(done) < len(tasks):
        now = time.monotonic()
        if now - looked >= _LOOK_SECONDS:
            limit, looked = max(2, _IN_FLIGHT_PER_CPU * n_cpus(ray) // cpus_per_task), now
            if not waiting:
                waiting = _late(running, longest)
        while waiting and len(running) < limit:
            task = waiting.pop()
            status, value = submit(task)
            running[status] = _Running(task, value)
        ready, _ = ray.wait(list(running), timeout=_LOOK_SECONDS, fetch_local=False)
        for status in ready:
            run = running.pop(status)
            _require_success(ray, status, run.task)
            longest = max(longest, time.monotonic() - run.started)
            if id(run.task) not in done:
                done.add(id(run.task))
                yield run.task, run.value


def _late(running: dict[Any, _Running], longest: float) -> list[ClusterTask]:
    """Tasks that take much longer than any other took, and that run once only."""
    now, limit = time.monotonic(), max(_LATE_SECONDS, _LATE_FACTOR * longest)
    runs = list(running.values())
    n_runs = {id(run.task): sum(other.task is run.task for other in runs) for run in runs}
    return [run.task for run in runs if now - run.started > limit and n_runs[id(run.task)] == 1]


def _require_success(ray: Any, status: Any, task: ClusterTask) -> None:
    """Raise the error of a task, or one that names it if its workers were lost again and again."""
    try:
        failure = ray.get(status)
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"{task.name} could not be processed: the cluster lost its worker {_RETRIES + 1} times "
            f"or could not start one ({type(error).__name__}: {one_line(error)[:200]})"
        ) from None
    if failure is not None:
        failure.raise_error(task.name)


@contextmanager
def _cancelled_in_the_end(ray: Any, running: dict[Any, _Running]) -> Iterator[dict[Any, _Running]]:
    """Cancel whatever still runs when the block ends, also by an error or Ctrl-C."""
    try:
        yield running
    finally:
        for status in running if ray.is_initialized() else ():
            ray.cancel(status, force=True)
