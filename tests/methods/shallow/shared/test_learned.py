"""What a method has learned: saved as it lists it, refused where it does not fit."""

import numpy as np
import pytest

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.fields import fact, learned
from rankbits.methods.shallow.shared.learned import ArrayHasher, check_arrays


class Permuted(ArrayHasher):
    """What a method of ranks would have learned."""

    order_: np.ndarray = learned("d", dtype=np.int64)
    limits_: np.ndarray = learned("d", "b")
    note_: str = fact(str)

    fit = _logits = _torch_module = None


def test_arrays_and_facts_are_the_attributes_of_their_names():
    hasher, again = Permuted(), Permuted()
    hasher.order_, hasher.limits_, hasher.note_ = np.array([1, 0]), np.ones((2, 3)), "half"
    again.n_features_in_ = 2
    again._restore(*hasher._state())
    assert again.order_.tolist() == [1, 0]
    assert np.array_equal(again.limits_, hasher.limits_)
    assert again.note_ == "half"


def test_the_letter_b_is_the_length_of_the_codes_whatever_the_parameter_says_now():
    hasher = Permuted(7)
    with pytest.raises(AttributeError, match="limits_"):
        _ = hasher.n_bits_
    hasher.limits_ = np.ones((2, 3))
    assert hasher.n_bits_ == 3


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            {"order": np.array([1.0, 0.0])},
            r"order must be finite int64 of shape \(2\), got float64",
        ),
        (
            {"limits": np.ones((2, 3), int)},
            r"limits must be finite float64 of shape \(2, 3\), got int64",
        ),
        (
            {"limits": np.ones((3, 3))},
            r"limits must be finite float64 of shape \(2, .\), got .*3, 3",
        ),
        ({"limits": np.full((2, 3), np.inf)}, "limits must be finite float64"),
        ({"limits": np.ones((2, 0))}, r"limits must not be empty, got shape \(2, 0\)"),
        ({"more": np.ones(2)}, "must hold the arrays order, limits; it holds limits, more, order"),
    ],
)
def test_arrays_of_another_type_or_shape_are_refused(arrays, sentence):
    fitting = {"order": np.array([1, 0]), "limits": np.ones((2, 3))}
    check_arrays(fitting, Permuted._arrays, {"d": 2}, Permuted._integers)
    with pytest.raises(FileFormatError, match=sentence):
        check_arrays({**fitting, **arrays}, Permuted._arrays, {"d": 2}, Permuted._integers)


def test_a_number_in_a_shape_is_that_size():
    check_arrays({"ends": np.ones((3, 2))}, {"ends": ("b", "2")}, {})
    with pytest.raises(FileFormatError, match=r"ends must be finite float64 of shape \(3, 2\)"):
        check_arrays({"ends": np.ones((3, 3))}, {"ends": ("b", "2")}, {})


@pytest.mark.parametrize("facts", [{}, {"note": 3}, {"note": "half", "more": 1}])
def test_facts_of_another_name_or_type_are_refused(facts):
    hasher = Permuted()
    hasher.n_features_in_ = 2
    arrays = {"order": np.array([1, 0]), "limits": np.ones((2, 3))}
    with pytest.raises(FileFormatError, match=r"facts must be note \(str\); got"):
        hasher._restore(arrays, facts)
