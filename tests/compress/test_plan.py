"""The plan: what is left out where time is short."""

from types import SimpleNamespace

import numpy as np

from compressing import task_of
from rankbits.compress._candidates import Coder, coders
from rankbits.compress._plan import (
    Plan,
    Rates,
    describe_plan,
    make_plan,
    measure_rates,
    plan_of_size,
)
from rankbits.compress._stages import Stages
from rankbits.compress._store import CellStore

NAMES = ["itq", "sign", "sign-raw", "lsh"]


def plan_with(vectors, budget_seconds, fit_seconds=1e-6):
    task, _ = task_of(vectors)
    tried = coders(NAMES)
    rates = Rates({coder.name: (0.0, fit_seconds) for coder in tried}, 1e-9, 1e-12, 1e-9)
    return task, make_plan(task, tried, (8, 16), (20, 50), rates, budget_seconds)


def test_without_a_budget_everything_runs(vectors):
    _, plan = plan_with(vectors, None, fit_seconds=1.0)
    assert len(plan.coders) == 4
    assert (plan.n_training, plan.n_queries) == (600, 60)


def test_estimates_fit_into_the_budget_and_what_is_left_out_is_told(vectors):
    task, whole = plan_with(vectors, None)
    budget = 0.7 * whole.total_seconds
    _, plan = plan_with(vectors, budget)
    assert plan.total_seconds <= budget
    assert [*(coder.name for coder in plan.coders), *plan.left_out] == NAMES
    assert plan.left_out
    assert any("left out" in line for line in describe_plan(plan, task, budget))


def test_a_way_that_is_too_slow_makes_room_for_others(vectors):
    task, _ = task_of(vectors)
    tried = coders(NAMES)
    fits = {"itq": (0.0, 1.0), **dict.fromkeys(NAMES[1:], (0.0, 1e-6))}
    plan = make_plan(task, tried, (8, 16), (20, 50), Rates(fits, 1e-9, 1e-12, 1e-9), 60.0)
    assert plan.left_out == ("itq",)


def test_a_hopeless_budget_still_leaves_the_fastest_method(vectors):
    task, _ = task_of(vectors)
    fits = {**dict.fromkeys(NAMES, (0.0, 1.0)), "sign-raw": (0.0, 1e-7)}
    plan = make_plan(task, coders(NAMES), (8,), (20,), Rates(fits, 1e-9, 1e-12, 1e-9), 1e-6)
    assert [coder.name for coder in plan.coders] == ["sign-raw"]


def test_a_stored_size_gives_the_same_plan_again(vectors):
    task, _ = task_of(vectors)
    rates = Rates(dict.fromkeys(NAMES, (0.0, 1e-6)), 1e-9, 1e-12, 1e-9)
    plan = make_plan(task, coders(NAMES), (8,), (20,), rates, 0.05)
    assert plan_of_size(task, coders(NAMES), (8,), (20,), rates, plan.size) == plan


def test_rates_are_those_of_small_runs(vectors):
    task, _ = task_of(vectors)
    rates = measure_rates(task, coders(["sign", "itq"]), 2, 0, 1)
    assert set(rates.fits) == {"sign", "itq"}
    assert np.isfinite(
        [*sum(rates.fits.values(), ()), rates.encode, rates.search, rates.reference]
    ).all()


def test_what_takes_a_moment_still_runs_when_little_time_is_left(monkeypatch):
    """160 of 200 seconds are gone after the first cell, and the next would take 80."""

    def cell(_stages, maker, _n_bytes, _plan, _truth):
        values = {"none": {"nDCG@10": [1.0]}}
        seconds = {"fit": 170.0 if maker.name == "slow" else 1.0}
        return {"kinds": {"real": {"values": values}}, "seconds": seconds}, False

    monkeypatch.setattr(Stages, "_cell", cell)
    stages = Stages(None, None, 0, 1, lambda _line: None)
    truth = SimpleNamespace(metrics=["nDCG@10"], reference={"nDCG@10": np.ones(1)})
    tried = Coder("slow", "itq"), Coder("quick", "sign")
    plan = Plan(tried, (8, 16), (), 100, 60, seconds={"slow": 160.0, "quick": 2.0})
    cells = stages.measure(plan, truth, 200.0, has_peers=False)
    measured = [(cell.method, cell.n_bytes) for cell in cells]
    assert measured == [("slow", 8), ("quick", 8), ("quick", 16)]
    assert stages.left_out == ["no time was left for slow (16 bytes)"]


def test_other_pools_are_measured_with_the_models_that_are_there(vectors, tmp_path, monkeypatch):
    task, truth = task_of(vectors)
    stages = Stages(CellStore(tmp_path), task, 0, 1, lambda _line: None)
    size = 2, task.items.shape[0], len(task.queries)

    def measure(pools):
        plan = Plan(coders(["itq"]), size[:1], pools, *size[1:], seconds={})
        return stages.measure(plan, truth, None, has_peers=False)[0].content["kinds"]["real"]

    first = measure((20,))
    monkeypatch.setattr("rankbits.compress._models.teach", None)  # which a new model would call
    second = measure((20, 50))
    assert second["values"]["20"] == first["values"]["20"]
    assert set(second["values"]) == {"none", "20", "50"}
