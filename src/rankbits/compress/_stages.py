"""The stages of a run; each finds in the work folder what an earlier run has finished."""

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from rankbits._mapped import unchanged
from rankbits.compress._candidates import Coder
from rankbits.compress._diagnosis import diagnose
from rankbits.compress._lists import NO_POOL
from rankbits.compress._measuring import Exam, measure_coder
from rankbits.compress._peers import PEERS, Peer, measure_peer
from rankbits.compress._plan import (
    Plan,
    Rates,
    describe_plan,
    duration,
    make_plan,
    measure_rates,
    plan_of_size,
)
from rankbits.compress._results import Cell
from rankbits.compress._store import CellStore
from rankbits.compress._task import Task
from rankbits.compress._truth import Truth, rank_by_vectors, truth_of
from rankbits.compress._words import Report, percent
from rankbits.errors import InputError
from rankbits.metrics import NamedMetric

_LAST_START = 0.8  # of the budget: no cell begins later
_LAST_END = 0.95  # unless it is expected to end before this


@dataclass
class Stages:
    """A task and what is done with it, stage after stage.

    Parameters
    ----------
    store : CellStore
        The finished parts.
    task : Task
        What is to be compressed.
    seed : int
        Seed of samples and methods.
    n_threads : int or None
        Threads; None takes all.
    report : callable
        Called with each line of progress.
    started : float
        When the run began, by the monotonic clock.
    left_out : list of str
        Sentences on what could not be tried.
    used_seconds : float
        What all stages so far have taken, also those that an earlier run has finished.
    """

    store: CellStore
    task: Task
    seed: int
    n_threads: int | None
    report: Report
    started: float = field(default_factory=time.monotonic)
    left_out: list[str] = field(default_factory=list)
    used_seconds: float = 0.0

    def make_plan(
        self,
        coders: tuple[Coder, ...],
        n_bytes: tuple[int, ...],
        pools: list[int],
        budget_seconds: float | None,
    ) -> Plan:
        """Estimate, decide, tell, and keep as many queries as the plan has.

        The decision is stored: a run that is taken up again does not decide anew.
        """

        def decide() -> dict[str, Any]:
            rates = measure_rates(self.task, coders, n_bytes[0], self.seed, self.n_threads)
            spent = time.monotonic() - self.started
            left = None if budget_seconds is None else max(0.0, budget_seconds - spent)
            plan = make_plan(self.task, coders, n_bytes, pools, rates, left)
            return {"rates": asdict(rates), "size": plan.size, "seconds": {"plan": spent}}

        names = [coder.name for coder in coders]
        decided, _ = self._cached(
            "plan", decide, methods=names, bytes=n_bytes, pools=pools, budget=budget_seconds
        )
        self.used_seconds += decided["seconds"]["plan"]
        n_training, n_queries, chosen = decided["size"]
        size, rates = (n_training, n_queries, tuple(chosen)), Rates(**decided["rates"])
        plan = plan_of_size(self.task, coders, n_bytes, pools, rates, size)
        for line in describe_plan(plan, self.task, budget_seconds):
            self.report(line)
        n_queries = len(self.task.queries)
        if plan.n_queries < n_queries:
            order = np.random.default_rng((self.seed, 5)).permutation(n_queries)
            self.task = self.task.of_queries(np.sort(order[: plan.n_queries]))
        return plan

    def find_truth(self, requests: tuple[NamedMetric, ...]) -> Truth:
        """Rank by the float vectors."""
        task = self.task

        def ranking() -> dict[str, Any]:
            started = time.perf_counter()
            ranked = rank_by_vectors(
                task.items,
                task.queries,
                task.own,
                task.relevance,
                requests,
                task.similarity,
                self.n_threads,
            )
            return {**ranked, "seconds": {"reference": time.perf_counter() - started}}

        names = [request.name for request in requests]
        known, is_old = self._cached("reference", ranking, metrics=names)
        self.used_seconds += known["seconds"]["reference"]
        truth = truth_of(known, task.own, task.relevance, requests, len(task.items))
        value = truth.reference[names[0]].mean()
        self.report(f"float ranking: {names[0]} {value:.4f} ({_how(known, is_old)})")
        return truth

    def diagnose(self, n_bytes: tuple[int, ...]) -> dict[str, Any]:
        """Look at the vectors."""
        return self._cached(
            "diagnosis", lambda: diagnose(self.task, n_bytes, self.seed), bytes=n_bytes
        )[0]

    def measure(
        self, plan: Plan, truth: Truth, budget_seconds: float | None, *, has_peers: bool
    ) -> list[Cell]:
        """All cells of the plan; what the budget has no time left for is left out."""
        makers: list[Coder | Peer] = [*plan.coders, *(PEERS if has_peers else ())]
        jobs = [(maker, n) for maker in makers for n in plan.n_bytes]
        cells: list[Cell] = []
        late: dict[str, list[int]] = {}
        for number, (maker, n_bytes) in enumerate(jobs, start=1):
            if budget_seconds is not None and self._is_late(maker, plan, budget_seconds):
                late.setdefault(maker.name, []).append(n_bytes)
                continue
            content, is_old = self._cell(maker, n_bytes, plan, truth)
            if "left_out" in content:
                self.left_out.append(f"{maker.name} of {n_bytes} bytes: {content['left_out']}")
                continue
            self.used_seconds += sum(content["seconds"].values())
            cells.append(Cell(maker.name, n_bytes, content, isinstance(maker, Peer)))
            name = f"{number}/{len(jobs)} {maker.name}, {n_bytes} bytes"
            self.report(f"{name}: {_shares(content, truth)} ({_how(content, is_old)})")
        if late:
            names = [f"{name} ({', '.join(map(str, some))} bytes)" for name, some in late.items()]
            self.left_out.append(f"no time was left for {', '.join(names)}")
        if all(cell.is_peer for cell in cells):
            raise InputError(f"no method can make such codes: {'; '.join(self.left_out)}")
        return cells

    def _is_late(self, maker: Coder | Peer, plan: Plan, budget_seconds: float) -> bool:
        """Whether a cell must not begin; one that takes a moment may, until nearly the end."""
        estimate = plan.seconds.get(maker.name, budget_seconds) / len(plan.n_bytes)
        if self.used_seconds <= _LAST_START * budget_seconds:
            return False
        return self.used_seconds + estimate > _LAST_END * budget_seconds

    def _cell(
        self, maker: Coder | Peer, n_bytes: int, plan: Plan, truth: Truth
    ) -> tuple[dict[str, Any], bool]:
        learning = {"method": maker.name, "bytes": n_bytes, "training": plan.n_training}
        settings = {**learning, "pools": plan.pools, "metrics": truth.metrics}
        training = self.task.training_rows(plan.n_training, self.seed)

        def measured() -> dict[str, Any]:
            if isinstance(maker, Peer):
                return measure_peer(
                    maker, n_bytes, self.task, truth, training, plan.pools, self.seed
                )
            model = self.store.model_folder({"what": "model", **learning, **self._identity()})
            exam = Exam(self.task, truth, plan.pools, self.n_threads)
            return measure_coder(maker, n_bytes, exam, training, model, self.seed)

        return self._cached("cell", measured, **settings)

    def _cached(self, what: str, compute: Any, **settings: Any) -> tuple[dict[str, Any], bool]:
        careful = partial(self._compute, compute)
        return self.store.cached({"what": what, **settings, **self._identity()}, careful)

    def _compute(self, compute: Any) -> Any:
        """What is computed is not stored if the files of the vectors changed meanwhile."""
        with unchanged(self.task.items, self.task.queries):
            return compute()

    def _identity(self) -> dict[str, Any]:
        from rankbits import __version__

        return {"task": self.task.digest(), "seed": self.seed, "version": __version__}


def _how(content: dict[str, Any], is_old: bool) -> str:
    return "finished before" if is_old else duration(sum(content["seconds"].values()))


def _shares(content: dict[str, Any], truth: Truth) -> str:
    """What is kept without re-ranking, by kind of query."""
    main = truth.metrics[0]
    reference = truth.reference[main].mean()
    shares = [
        f"{kind} {percent(float(np.mean(measured['values'][NO_POOL][main]) / reference))}"
        for kind, measured in content["kinds"].items()
    ]
    return f"{', '.join(shares)} of {main} without re-ranking"
