"""Symbols: the position of the largest value in binary, with margins whose signs are the bits."""

from itertools import permutations

import numpy as np
import pytest

from rankbits.methods.shallow.shared.symbols import count_symbols, digits, margins


@pytest.mark.parametrize("n_values", [2, 3, 4, 5, 8, 13])
def test_bits_are_the_binary_number_of_the_largest_value(rng, n_values):
    width = len(f"{n_values - 1:b}")
    values = rng.integers(-2, 3, (200, 3, n_values)).astype(float)  # many are equal
    bits = (margins(values) > 0).astype(int).reshape(200, 3, width)
    for row, row_bits in zip(values, bits, strict=True):
        for symbol, symbol_bits in zip(row, row_bits, strict=True):
            first = symbol.tolist().index(max(symbol))
            assert "".join(map(str, symbol_bits)) == f"{first:0{width}b}"


def test_margins_are_what_decides():
    values = np.array([[[1.0, 5.0, 3.0, -1.0]]])  # position 1 is 01
    assert margins(values).tolist() == [[3.0 - 5.0, 5.0 - 3.0]]


@pytest.mark.parametrize("n_values", [4, 8])
def test_any_numbering_of_positions_has_the_same_mean_distance(rng, n_values):
    width = int(np.log2(n_values))
    table = digits(n_values).T.astype(int)
    gray = np.array([[(k ^ k >> 1) >> p & 1 for p in range(width)] for k in range(n_values)])
    for labels in (table, gray, table[rng.permutation(n_values)]):
        pairs = list(permutations(range(n_values), 2))
        mean = np.mean([(labels[i] != labels[j]).sum() for i, j in pairs])
        assert mean == pytest.approx(width / 2 * n_values / (n_values - 1))


def test_a_code_has_as_many_symbols_as_it_needs():
    assert [count_symbols(n_bits, 4) for n_bits in (1, 2, 3, 8)] == [1, 1, 2, 4]
    assert [count_symbols(7, n_values) for n_values in (2, 3, 4, 5, 16)] == [7, 4, 4, 3, 2]
