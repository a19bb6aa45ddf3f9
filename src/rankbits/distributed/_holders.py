"""Asking the holders of all shards: a call goes to one replica, and to another if that is lost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbits._files import one_line
from rankbits.distributed._cluster import alive_nodes, on_node
from rankbits.distributed._holder import ShardHolder
from rankbits.distributed._jobs import Failure
from rankbits.errors import ClusterError, InputError

_GIVE_UP_SECONDS = 180.0  # without an answer of any replica, after the first was lost
_PAUSE_SECONDS = 0.2  # before a call is repeated
_LATE_SECONDS = 20.0  # after which another replica is asked as well
_IN_FLIGHT = 4  # calls for each holder
_CLOSE_SECONDS = 5.0
_LOCK_SECONDS = 30.0  # for which the lock of a holder that was lost may outlive it


@dataclass
class HolderCall:
    """A function of `_holder`, for one shard.

    Attributes
    ----------
    replica : the one that is asked next
    asked : replicas that have been asked and have not answered yet
    """

    shard: int
    name: str
    arguments: tuple[Any, ...] = ()
    replica: int = 0
    asked: set[int] = field(default_factory=set)
    lost_since: float | None = None
    started: float = field(default_factory=time.monotonic)


class Holders:
    """The processes of all shards; call `stop` in the end.

    Parameters
    ----------
    ray : module
        The connected `ray`.
    folders : sequence of str
        Folder of each shard.
    replicas : int
        Processes for each shard.
    is_writable : bool
        Whether the first of them changes the shard.
    settings : dict
        Arguments of `Collection.open`.
    """

    def __init__(
        self,
        ray: Any,
        folders: Sequence[str],
        replicas: int,
        is_writable: bool,
        settings: dict[str, Any],
    ) -> None:
        from rankbits import __version__

        self._ray = ray
        self._folders = folders
        self._turn = 0
        nodes = alive_nodes(ray)
        if is_writable and replicas > 1:
            _require_one_machine(nodes)
        n_threads = settings.get("n_threads") or _fair_threads(nodes, len(folders) * replicas)
        settings = {**settings, "n_threads": n_threads}
        actor = ray.remote(ShardHolder)
        self._actors = [
            [
                actor.options(
                    max_restarts=-1,
                    max_task_retries=0,
                    scheduling_strategy=on_node(
                        nodes[(i + r) % len(nodes)]["NodeID"], is_soft=True
                    ),
                ).remote(__version__, folder, is_writable and r == 0, settings, _LOCK_SECONDS)
                for r in range(replicas)
            ]
            for i, folder in enumerate(folders)
        ]

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self._folders)

    @property
    def replicas(self) -> int:
        """Processes for each shard."""
        self._require_open()
        return len(self._actors[0])

    def _require_open(self) -> None:
        if not self._actors[0]:
            raise InputError("the index is closed; open it again")

    def stop(self) -> None:
        """End all processes; when this returns, another writer may open the shards."""
        actors = [actor for of_shard in self._actors for actor in of_shard]
        if actors and self._ray.is_initialized():
            closing = [actor.close.remote() for actor in actors]
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
            for actor in actors:
                self._ray.kill(actor)
        self._actors = [[] for _ in self._folders]

    def ask_all(self, name: str, *arguments: Any) -> list[Any]:
        """The answers of all shards, in order."""
        return self.ask([HolderCall(i, name, arguments) for i in range(self.n_shards)])

    def ask(self, calls: Sequence[HolderCall], *, is_change: bool = False) -> list[Any]:
        """The answers to calls, in order. Changes go to the writer of a shard."""
        self._require_open()
        for call in calls:
            self._turn += 1
            call.replica = 0 if is_change else self._turn % self.replicas
        answers: list[Any] = [None] * len(calls)
        waiting, running = list(reversed(range(len(calls)))), dict[Any, tuple[int, int]]()
        missing = set(waiting)
        limit = _IN_FLIGHT * self.n_shards * self.replicas
        while missing:
            while waiting and len(running) < limit:
                i = waiting.pop()
                running[self._start(calls[i])] = i, calls[i].replica
            ready, _ = self._ray.wait(list(running), timeout=_LATE_SECONDS / 4)
            for ref in ready:
                i, replica = running.pop(ref)
                calls[i].asked.discard(replica)
                outcome = self._outcome(ref, calls[i])
                if outcome is None and i in missing and not calls[i].asked:
                    if not is_change:
                        calls[i].replica = self._next(replica)
                    waiting.append(i)
                elif outcome is not None and i in missing:
                    missing.discard(i)
                    answers[i] = outcome
            if not is_change and self.replicas > 1:
                waiting += self._late(calls, missing, waiting)
        return [self._value(answer, call) for answer, call in zip(answers, calls, strict=True)]

    def _start(self, call: HolderCall) -> Any:
        """Ask a replica; the reference to its answer."""
        actor = self._actors[call.shard][call.replica]
        call.started = time.monotonic()
        call.asked.add(call.replica)
        return actor.call.options(num_returns=1).remote(call.name, *call.arguments)

    def _outcome(self, ref: Any, call: HolderCall) -> tuple[Failure | None, Any] | None:
        """What a holder answered; None if it was lost, and one is to be asked again."""
        errors = self._ray.exceptions
        try:
            failure, value = self._ray.get(ref)
        except (errors.RayActorError, errors.ObjectLostError, errors.WorkerCrashedError) as error:
            now = time.monotonic()
            call.lost_since = call.lost_since or now
            if now - call.lost_since > _GIVE_UP_SECONDS:
                raise ClusterError(
                    f"{self._folders[call.shard]} could not be reached for {_GIVE_UP_SECONDS:.0f} "
                    f"s: {type(error).__name__}: {one_line(error)[:200]}"
                ) from None
            time.sleep(_PAUSE_SECONDS)
            return None
        return failure, value

    def _late(
        self, calls: Sequence[HolderCall], missing: set[int], waiting: list[int]
    ) -> list[int]:
        """Calls that another replica is asked as well, since the first takes long."""
        now, late = time.monotonic(), []
        for i in missing.difference(waiting):
            call = calls[i]
            if len(call.asked) < self.replicas and now - call.started > _LATE_SECONDS:
                while call.replica in call.asked:
                    call.replica = self._next(call.replica)
                late.append(i)
        return late

    def _next(self, replica: int) -> int:
        return (replica + 1) % self.replicas

    def _value(self, answer: tuple[Failure | None, Any], call: HolderCall) -> Any:
        failure, value = answer
        if failure is not None:
            failure.raise_error(self._folders[call.shard])
        return value


def _fair_threads(nodes: Sequence[dict[str, Any]], n_holders: int) -> int:
    """Threads of a holder that leave as many to each of the others."""
    fewest = min(int(node["Resources"].get("CPU", 1)) for node in nodes)
    return max(1, fewest // -(-n_holders // len(nodes)))


def _require_one_machine(nodes: Sequence[dict[str, Any]]) -> None:
    """Refuse replicas of what changes on several machines: SQLite's log is not for networks."""
    if len({node["NodeManagerAddress"] for node in nodes}) > 1:
        raise InputError(
            "replicas must be 1 for an index that is writable on several machines, since the log "
            "of a collection cannot be shared between them; open a second index to search"
        )
