"""The plan: what is left out where time is short."""

import numpy as np

from compressing import task_of
from rankbits.compress._candidates import coders
from rankbits.compress._plan import (
    Rates,
    describe_plan,
    make_plan,
    measure_rates,
    plan_of_size,
)

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
