"""Class affinity against Python's own idea of equal labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import class_levels
from rankbits.affinity import classes
from rankbits.errors import InputError

EVERYTHING = slice(None)
DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def levels_of(query_labels, database_labels):
    return classes(query_labels, database_labels).indices(EVERYTHING, EVERYTHING)


@pytest.mark.parametrize(
    ("query_side", "item_side"),
    [
        ([1, 2, 1], [2, 3, 1, 1]),
        ([7], [8, 9]),
        (np.array([-5, 3]), np.array([251, 3], np.uint8)),
        (np.array([-128, 127, -55], np.int8), np.arange(-128, 128).astype(np.int8)),
        (np.array([-100, -27, 28], np.int8), np.array([28, -27, -100, 100])),
        (np.array([0, 255], np.uint8), np.array([-1, 0, 255, 256])),
        (np.array([2**63 + 1, 5], np.uint64), np.array([5, -1, -(2**63) + 1])),
        (np.array([2**64 - 1], np.uint64), np.array([-1, 0])),
        (np.array([-1, 0]), np.array([2**64 - 1, 0], np.uint64)),
        (np.array([2**60 + 1, -(2**62)]), np.array([2**60, 2**60 + 1], np.uint64)),
        (np.array([2**60, 1, 2**60 + 1], np.uint64), np.array([2**60 + 1, 2**60, -1])),
        (np.array([-(2**63), 2**63 - 1]), np.array([2**63 - 1, -(2**63), 0])),
        ([True, False], [False, False, True]),
        ([True, False], [0, 1, 2]),
        (["cat", "dog"], ["dog", "a much longer label", "cat", ""]),
        (["a much longer label"], ["a", "a much longer label"]),
        (np.array(["x", "ÿ"], object), np.array(["ÿ", "x", "xx"], object)),
        ([b"x", b"yy"], [b"yy", b"y", b"x"]),
    ],
)
def test_labels_are_equal_where_python_says_so(query_side, item_side):
    assert np.array_equal(levels_of(query_side, item_side), class_levels(query_side, item_side))


@pytest.mark.parametrize("query_side", DTYPES)
@pytest.mark.parametrize("item_side", DTYPES)
def test_the_ends_of_any_two_integer_types_compare_by_value(query_side, item_side):
    ends = [
        np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 1, 100], dtype)
        for dtype in (query_side, item_side)
    ]
    assert np.array_equal(levels_of(*ends), class_levels(*ends))


@given(st.data(), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_any_integers_of_any_types_compare_by_value(data, query_side, item_side):
    labels = [
        np.array(
            data.draw(
                st.lists(
                    st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max)
                    | st.integers(max(-130, np.iinfo(dtype).min), 120),
                    min_size=1,
                    max_size=12,
                )
            ),
            dtype,
        )
        for dtype in (query_side, item_side)
    ]
    assert np.array_equal(levels_of(*labels), class_levels(*labels))


@pytest.mark.parametrize("span", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2**62])
def test_a_table_and_a_search_agree_about_the_span_where_one_takes_over(span):
    low = -7
    query_side = np.array([low, low + span, low + 3])
    item_side = np.array([low - 1, low, low + 1, low + 3, low + span, low + span + 1])
    assert np.array_equal(levels_of(query_side, item_side), class_levels(query_side, item_side))


def test_class_numbers_of_items_are_those_of_the_queries_and_minus_one_is_nobodys():
    same = classes([30, 10, 30], [10, 20, 30, 40])
    assert same.database_ids(slice(0, 4)).tolist() == [0, -1, 1, -1]
    assert same.database_ids(slice(1, 3)).dtype == np.int32
    assert same.query_ids.tolist() == [1, 0, 1]


def test_single_pairs_are_compared_and_minus_one_is_no_item():
    same = classes([3, 4], [4, 3, 3])
    values = same.pairs(np.array([0, 0, 0, 1, 1]), np.array([0, 1, -1, 0, -1]))
    assert values.tolist() == [0, 1, 0, 1, 0]


def test_labels_of_another_kind_are_refused():
    for query_side, item_side in (([1], ["1"]), (["1"], [b"1"]), ([b"1"], [1])):
        with pytest.raises(InputError, match="no label of one could equal a label of the other"):
            classes(query_side, item_side)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([1.0, 2.0], "integers or strings"),
        ([], "integers or strings"),
        (np.empty(0, np.int64), "must not be empty"),
        ([[0, 1], [1, 0]], r"multi-hot labels go to affinity.tags\(\)"),
        (np.int64(3), "integers or strings"),
        (np.array([1, None], object), "integers or strings"),
        ([[0], [1, 0]], "one shape"),
        (np.array(["2020-01-01"], "datetime64[D]"), "integers or strings"),
    ],
)
def test_what_is_no_row_of_labels_is_refused_and_named(labels, says):
    with pytest.raises(InputError, match=f"^query_labels .*{says}"):
        classes(labels, [1])
    with pytest.raises(InputError, match=f"^database_labels .*{says}"):
        classes([1], labels)
