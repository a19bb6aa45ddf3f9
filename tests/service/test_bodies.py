"""What is written as JSON reads as the same values."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits.service._bodies import json_bytes, small_json_response, writable

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_values_are_read_as_they_were_written(content):
    for text in (json_bytes(content), small_json_response(content).body):
        assert json.loads(text) == content


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 1500), (1500, 3), (5000, 1), (1, 5000)])
def test_arrays_are_lists_of_exactly_their_numbers(dtype, shape):
    numbers = np.random.default_rng(0).normal(0, 90, shape).astype(dtype)
    content = {"all": writable(numbers), "some": writable(numbers[:, : shape[1] // 2])}
    expected = {"all": numbers.tolist(), "some": numbers[:, : shape[1] // 2].tolist()}
    assert json.loads(json_bytes(content)) == expected
    assert json.loads(small_json_response(content).body) == expected


def test_what_no_number_can_say_is_null():
    values = np.array([[1.5, np.nan], [np.inf, -np.inf]])
    assert json.loads(json_bytes({"a": values, "b": float("nan")})) == {
        "a": [[1.5, None], [None, None]],
        "b": None,
    }
    assert json_bytes(["\ud800", float("nan"), 2**70]) == b'["\\ud800",null,1180591620717411303424]'
