"""Signs of the features themselves."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.errors import InputError


def test_raw_signs_of_all_features_are_binary_quantisation(rng):
    rows = rng.standard_normal((30, 19))
    sign = methods.get("sign", center=False).fit(rows)
    assert np.array_equal(sign.transform(rows), np.packbits(rows > 0, axis=1))
    assert sign.n_bits_ == 19
    assert sign.encode(rows).n_bits == 19


def test_a_zero_is_not_positive():
    assert methods.get("sign", center=False).fit_transform([[0.0, -0.0, 1e-300]]).tolist() == [[32]]


def test_centred_bits_say_that_a_feature_exceeds_its_mean():
    rows = [[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]]
    sign = methods.get("sign").fit(rows)
    assert sign.mean_.tolist() == [3.0, 20.0]
    assert sign.encode(rows).bits().tolist() == [[0, 0], [0, 0], [1, 1]]


def test_fewer_bits_are_the_features_of_largest_variance_in_their_order():
    rows = np.array([[0, 5, 1, 9, 2], [0, -5, 3, -9, 2]], float)
    sign = methods.get("sign", n_bits=3).fit(rows)
    assert sign.features_.tolist() == [1, 2, 3]
    assert sign.encode(rows).bits().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_of_equal_variances_the_first_features_are_taken():
    rows = np.array([[1, -1, 1, -1], [-1, 1, -1, 1]], float)
    assert methods.get("sign", n_bits=2).fit(rows).features_.tolist() == [0, 1]


def test_fewer_bits_are_the_first_features_on_demand(rng):
    rows = rng.standard_normal((20, 12)) * np.arange(1, 13)
    short = methods.get("sign", n_bits=5, choose="first").fit(rows).encode(rows).bits()
    whole = methods.get("sign").fit(rows).encode(rows).bits()
    assert np.array_equal(short, whole[:, :5])


def test_more_bits_than_features_and_unknown_ways_are_refused(rng):
    rows = rng.standard_normal((5, 4))
    with pytest.raises(InputError, match="n_bits must be at most 4, one for each feature, got 5"):
        methods.get("sign", n_bits=5).fit(rows)
    with pytest.raises(InputError, match="choose must be one of variance, first; got 'frist'; did"):
        methods.get("sign", choose="frist").fit(rows)
    with pytest.raises(InputError, match="n_bits must be given for X of more than 4096 features"):
        methods.get("sign").fit(np.ones((2, 4097)))
