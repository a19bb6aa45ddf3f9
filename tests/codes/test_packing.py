"""Bits into bytes and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.counting import BIT_LENGTHS, code_numbers, random_codes
from rankbits import BinaryCodes
from rankbits.errors import InputError


def number_of(bits):
    """The code as an integer, most significant bit first, filled up with zeros to whole bytes."""
    text = "".join(str(bit) for bit in bits)
    return int(text.ljust(-(-len(text) // 8) * 8, "0"), 2)


@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
@pytest.mark.parametrize("n", [1, 3, 20])
def test_bits_survive_packing_whatever_alphabet_they_come_in(rng, n, n_bits):
    bits = rng.integers(0, 2, (n, n_bits), np.uint8)
    forms = [
        bits,
        bits.astype(bool),
        bits.astype(float),
        2 * bits.astype(np.int8) - 1,
        bits.tolist(),
    ]
    for form in forms:
        codes = BinaryCodes.from_bits(form)
        assert (len(codes), codes.n_bits) == (n, n_bits)
        assert codes.bits().dtype == np.uint8
        assert np.array_equal(codes.bits(), bits)
        assert code_numbers(codes) == [number_of(row) for row in bits]


@given(st.integers(1, 4096), st.integers(0, 1000))
def test_every_bit_length_packs_as_numpy_does_and_comes_back(n_bits, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (2, n_bits), np.uint8)
    codes = BinaryCodes.from_bits(bits)
    assert codes.packed.tobytes() == np.packbits(bits, axis=1).tobytes()
    assert np.array_equal(codes.bits(), bits)
    assert BinaryCodes(codes.packed, n_bits) == codes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize("n_bits", [1, 9, 64, 257])
def test_a_logit_is_a_set_bit_where_it_is_above_0(rng, n_bits, dtype):
    logits = (rng.normal(size=(5, n_bits)) * 3).astype(dtype)
    expected = [[1 if value > 0 else 0 for value in row] for row in logits.tolist()]
    assert BinaryCodes.from_logits(logits).bits().tolist() == expected


def test_zeros_of_either_sign_are_clear_bits_and_infinities_have_a_sign():
    codes = BinaryCodes.from_logits([[0.0, -0.0, np.inf, -np.inf, 5e-324]])
    assert codes.bits().tolist() == [[0, 0, 1, 0, 1]]


@pytest.mark.parametrize("values", [[[-1, -1]], [[1, 1]], [[0, 0]], [[True, False]]])
def test_bits_that_use_only_one_value_of_their_alphabet_are_taken(values):
    assert BinaryCodes.from_bits(values).bits().tolist() == [[int(v > 0) for v in values[0]]]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[0, 1, 2]], "got 2 among values from 0 to 2"),
        ([[-1, 0, 1]], "all 0/1 or all -1/\\+1"),
        ([[0.5, 1.0]], "from_logits"),
        ([[np.nan, 1.0]], "got nan among values from nan to nan"),
        ([["0", "1"]], "0/1, -1/\\+1 or bool"),
        ([[1j, 0]], "0/1, -1/\\+1 or bool"),
        ([0, 1], "must have shape"),
        ([[[0, 1]]], "must have shape"),
        (np.empty((0, 4)), "must not be empty"),
        (np.empty((4, 0)), "must not be empty"),
        ([[0, 1], [1]], "must be an array of one shape"),
        (np.zeros((1, 4097)), "from 1 to 4096"),
    ],
)
def test_values_that_are_no_bits_are_refused(values, says):
    with pytest.raises(InputError, match=f"^bits .*{says}"):
        BinaryCodes.from_bits(values)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[1.0, 2.0], [np.nan, 1.0]], "row 1"),
        ([[1j]], "real numbers"),
        ([["1"]], "real numbers"),
        ([[True]], "real numbers"),
        ([1.0], "shape"),
        (np.empty((0, 3)), "empty"),
        ([[1.0], [1.0, 2.0]], "one shape"),
    ],
)
def test_values_that_have_no_sign_are_refused_as_logits(values, says):
    with pytest.raises(InputError, match=f"^logits .*{says}"):
        BinaryCodes.from_logits(values)


@pytest.mark.parametrize("n_bits", [n for n in BIT_LENGTHS if n % 8])
def test_a_set_bit_behind_the_code_is_refused_and_its_row_named(n_bits):
    for bit in range(n_bits, -(-n_bits // 8) * 8):
        packed = np.zeros((3, -(-n_bits // 8)), np.uint8)
        packed[2, -1] = 1 << (7 - bit % 8)
        with pytest.raises(InputError, match="row 2 does not"):
            BinaryCodes(packed, n_bits)
        packed[2, -1] = 0
        assert len(BinaryCodes(packed, n_bits)) == 3


def test_a_stray_bit_far_down_the_rows_is_found():
    packed = np.zeros((70_000, 1), np.uint8)
    packed[66_000] = 1
    with pytest.raises(InputError, match="row 66000"):
        BinaryCodes(packed, 7)


@pytest.mark.parametrize(
    "packed",
    [np.zeros((4, 8), np.int8), np.zeros((4, 7), np.uint8), np.zeros((4, 9), np.uint8),
     np.zeros(8, np.uint8), np.zeros((4, 64), np.float32), np.zeros((1, 4, 8), np.uint8)],
)  # fmt: skip
def test_packed_codes_of_another_dtype_or_width_are_refused(packed):
    with pytest.raises(InputError, match=r"uint8 of shape \(n, 8\) for 64 bits"):
        BinaryCodes(packed, 64)


@pytest.mark.parametrize("n_bits", [0, -1, 4097, 8.0, True, "8", None])
def test_a_number_of_bits_out_of_range_or_no_integer_is_refused(n_bits):
    with pytest.raises(InputError, match=r"^n_bits must be an integer from 1 to 4096"):
        BinaryCodes(np.zeros((1, 1), np.uint8), n_bits)


@pytest.mark.parametrize(
    "rows",
    [
        slice(2, 9),
        slice(None, None, -3),
        slice(5, 5),
        [3, 3, 0],
        np.arange(20) % 3 == 0,
        -1,
        np.int8(4),
    ],
)
def test_slicing_takes_rows_as_an_array_does(rng, rows):
    codes = random_codes(rng, 20, 13)
    assert np.array_equal(codes[rows].bits(), np.atleast_2d(codes.bits()[rows]))
    assert codes[rows].n_bits == 13


def test_a_slice_shares_the_memory_of_its_codes(rng):
    codes = random_codes(rng, 20, 64)
    assert np.shares_memory(codes[3:7].packed, codes.packed)


def test_columns_cannot_be_sliced_and_rows_must_exist(rng):
    codes = random_codes(rng, 4, 8)
    with pytest.raises(InputError, match="rows only"):
        codes[:, 0]
    with pytest.raises(IndexError):
        codes[4]


def test_codes_iterate_row_by_row_and_compare_by_value(rng):
    codes = random_codes(rng, 5, 12)
    assert [code == codes[i] for i, code in enumerate(codes)] == [True] * 5
    assert codes != BinaryCodes(codes.packed, 13)
    assert codes != codes[:4]
    assert codes != "codes"


def test_codes_are_made_contiguous():
    packed = np.arange(32, dtype=np.uint8).reshape(4, 8)[:, ::2]
    codes = BinaryCodes(packed, 32)
    assert codes.packed.flags.c_contiguous
    assert np.array_equal(codes.packed, packed)
