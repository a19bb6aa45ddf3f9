"""Winner-take-all hashing: only the order of a row's features counts."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau

from rankbits import methods
from rankbits.errors import FileFormatError, InputError


@pytest.fixture
def rows(rng):
    return rng.standard_normal((60, 9))


@pytest.mark.parametrize("window", [2, 3, 4, 9])
def test_a_map_that_keeps_the_order_changes_no_code(rows, window):
    hasher = methods.get("wtah", n_bits=61, window=window, random_state=0).fit(rows)
    codes = hasher.transform(rows)
    ranks = rows.argsort(axis=1).argsort(axis=1)
    for same_order in (100 * rows - 7, np.exp(rows), rows**3, np.tanh(rows), ranks):
        assert np.array_equal(hasher.transform(same_order), codes)
    assert not np.array_equal(hasher.transform(-rows), codes)


def test_bits_are_those_of_the_definition(rows):
    hasher = methods.get("wtah", n_bits=13, random_state=0).fit(rows)
    assert hasher.columns_.shape == (7, 4)
    for row, bits in zip(rows, hasher.encode(rows).bits(), strict=True):
        expected = ""
        for columns in hasher.columns_:
            assert len(set(columns.tolist())) == 4
            values = [row[column] for column in columns]
            expected += f"{values.index(max(values)):02b}"
        assert "".join(map(str, bits)) == expected[:13]


def test_of_equal_features_the_first_of_the_permutation_wins():
    hasher = methods.get("wtah", n_bits=40, random_state=0).fit(np.eye(5))
    assert not hasher.encode(np.zeros((1, 5))).bits().any()
    bits = hasher.encode(np.ones((1, 5)) - np.eye(5)[hasher.columns_[0, 0]]).bits()[0]
    assert bits[:2].tolist() == [0, 1]  # the second of the first symbol


def test_pairs_of_features_agree_as_often_as_kendall_says(rng):
    pair = rng.standard_normal((2, 8))
    one, other = (
        methods.get("wtah", n_bits=4096, window=2, random_state=0).fit(pair).encode(pair).bits()
    )
    expected = (1 + kendalltau(*pair).statistic) / 2
    assert (one == other).mean() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 4096))


def test_symbols_agree_as_often_as_over_all_windows(rng):
    pair = rng.standard_normal((2, 6))
    windows = [list(window) for window in permutations(range(6), 4)]
    expected = np.mean([pair[0][w].argmax() == pair[1][w].argmax() for w in windows])
    hasher = methods.get("wtah", n_bits=4096, random_state=1).fit(pair)
    one, other = hasher.encode(pair).bits().reshape(2, -1, 2)
    agreement = (one == other).all(axis=1).mean()
    assert agreement == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 2048))
    distance = (one != other).mean()  # 2/3 of the bits of symbols that differ
    assert distance == pytest.approx((1 - expected) * 2 / 3, abs=0.03)


def test_few_features_are_all_compared_and_one_is_refused():
    assert methods.get("wtah", n_bits=5, random_state=0).fit(np.eye(3)).columns_.shape == (3, 3)
    with pytest.raises(InputError, match="X must have at least 2 features to compare"):
        methods.get("wtah", n_bits=2).fit(np.arange(5.0)[:, None])


def test_a_window_of_one_is_refused(rows):
    with pytest.raises(InputError, match="window must be an integer >= 2, got 1"):
        methods.get("wtah", window=1).fit(rows)


@pytest.mark.parametrize("columns", [np.full((4, 4), 9), np.full((4, 4), -1), np.zeros((3, 4))])
def test_columns_that_do_not_fit_are_refused(rows, columns):
    hasher = methods.get("wtah", n_bits=8, random_state=0).fit(rows)
    with pytest.raises(FileFormatError, match="columns must be features from 0 to 8, two or more"):
        hasher._restore({"columns": columns.astype(np.int64)}, {"code_length": 8})


def test_ties_are_decided_alike_in_the_exported_module(rng):
    torch = pytest.importorskip("torch")
    rows = rng.integers(0, 3, (200, 9)).astype(float)
    hasher = methods.get("wtah", n_bits=31, window=5, random_state=0).fit(rows)
    bits = hasher._torch_module()(torch.from_numpy(rows)).numpy() > 0
    assert np.array_equal(bits, hasher.encode(rows).bits())
