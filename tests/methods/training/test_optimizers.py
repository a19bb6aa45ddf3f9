"""Learning rate and slope as functions of the progress of a run."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rankbits.methods.training import optimizers
from rankbits.methods.training.parameters import SCHEDULES

STEPS = np.linspace(0, 1, 201)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_stays_positive_until_the_end_and_never_exceeds_its_peak(schedule):
    factors = [optimizers.rate_factor(schedule, t) for t in STEPS]
    assert max(factors) == pytest.approx(1.0)
    assert min(factors[:-1]) > 0


def test_cosine_is_half_way_down_in_the_middle():
    values = [optimizers.rate_factor("cosine", t) for t in (0.0, 1 / 3, 0.5, 1.0)]
    assert values == pytest.approx([1.0, 0.75, 0.5, 0.0])


def test_one_cycle_rises_to_its_peak_at_three_tenths_and_falls():
    factors = np.array([optimizers.rate_factor("one-cycle", t) for t in STEPS])
    peak = int(np.argmax(factors))
    assert STEPS[peak] == pytest.approx(0.3)
    assert (np.diff(factors[: peak + 1]) > 0).all()
    assert (np.diff(factors[peak:]) < 0).all()
    assert (factors[0], factors[-1]) == pytest.approx((1 / 25, 1e-4))


def test_steps_divide_by_ten_twice():
    drops = [optimizers.rate_factor("step", t) for t in (0.49, 0.5, 0.74, 0.75, 0.99)]
    assert drops == pytest.approx([1, 0.1, 0.1, 0.01, 0.01])


def test_a_warm_up_is_a_line_that_joins_the_schedule():
    for t in (0.05, 0.1, 0.15):
        warm = optimizers.rate_factor("cosine", t, warm_up=0.2)
        assert warm == pytest.approx(t / 0.2 * optimizers.rate_factor("cosine", t))
    assert optimizers.rate_factor("constant", 0.2, warm_up=0.2) == 1.0
    assert 0 < optimizers.rate_factor("constant", 0.0, warm_up=0.2) < 0.01


def test_the_slope_grows_by_equal_factors():
    values = [optimizers.relaxation_slope(0.5, 32.0, t) for t in (0, 0.25, 0.5, 0.75, 1)]
    ratios = [b / a for a, b in pairwise(values)]
    assert ratios == pytest.approx([math.sqrt(8)] * 4)
    assert optimizers.relaxation_slope(0.7, None, 0.9) == 0.7
