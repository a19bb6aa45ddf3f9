"""Checks at the public door: a clean value or one clear sentence."""

import numpy as np
import pytest

from rankbits import _check
from rankbits.errors import InputError, MissingExtraError


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_whole_takes_any_integer_and_gives_a_python_one(value):
    assert type(_check.whole("k", value, 1)) is int
    assert _check.whole("k", value, 3, 3) == 3


@pytest.mark.parametrize("value", [0, 6, 10**30, True, np.True_, 3.0, "3", None, [3]])
def test_whole_names_the_argument_and_the_range(value):
    with pytest.raises(InputError, match=r"^k must be an integer from 1 to 5, got "):
        _check.whole("k", value, 1, 5)


def test_whole_without_an_upper_end_says_so():
    assert _check.whole("k", 10**30, 1) == 10**30
    with pytest.raises(InputError, match=r"^k must be an integer >= 1, got 0$"):
        _check.whole("k", 0, 1)


def test_choice_suggests_the_nearest_word():
    assert _check.choice("gain", "exp", ("exp", "linear")) == "exp"
    with pytest.raises(InputError, match="one of exp, linear; got 'liner'; did you mean 'linear'"):
        _check.choice("gain", "liner", ("exp", "linear"))
    with pytest.raises(InputError, match=r"got 3$"):
        _check.choice("gain", 3, ("exp", "linear"))


def test_array_2d_refuses_other_shapes_empties_and_ragged_rows():
    assert _check.array_2d("x", [[1, 2]]).shape == (1, 2)
    for value, says in (([1], "shape"), ([[]], "empty"), ([[1], [1, 2]], "one shape")):
        with pytest.raises(InputError, match=f"^x must .*{says}"):
            _check.array_2d("x", value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_finite_names_the_first_value_that_is_not(value):
    array = np.ones((4, 3))
    _check.finite("x", array)
    array[2, 1] = value
    with pytest.raises(InputError, match=f"^x must be finite, got {value} in row 2$"):
        _check.finite("x", array)


def test_a_long_value_is_described_in_short():
    assert len(_check.describe("a" * 1000)) < 80
    assert _check.describe(np.zeros((2, 3))) == "float64 of shape (2, 3)"


def test_extra_imports_a_module_or_names_what_brings_it():
    assert _check.extra("json", "reading JSON", "files").dumps([]) == "[]"
    with pytest.raises(
        MissingExtraError, match=r"^reading x needs no_such_module; .*rankbits\[files"
    ):
        _check.extra("no_such_module", "reading x", "files")


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", True, None])
def test_what_is_no_number_of_the_range_is_refused(value):
    with pytest.raises(InputError, match=r"margin must be a finite number, 0 or more, got"):
        _check.number("margin", value)
    with pytest.raises(InputError, match=r"ema must be a number from 0 and below 1, got"):
        _check.number("ema", value, high=1.0)


def test_the_ends_of_a_range_belong_to_it_as_said():
    assert _check.number("margin", 0) == 0.0
    assert _check.number("margin", np.float32(0.5), high=1.0) == 0.5
    with pytest.raises(InputError, match=r"scale must be a finite number above 0, got 0"):
        _check.number("scale", 0, closed=False)
    with pytest.raises(InputError, match=r"ema must be a number from 0 and below 1, got 1"):
        _check.number("ema", 1, high=1.0)
