"""HammingNeighbors answers as scikit-learn's NearestNeighbors does, in bits, with ties by row."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rankbits.codes import BinaryCodes
from rankbits.errors import InputError
from rankbits.index.neighbors import HammingNeighbors


def by_brute_force(items, queries, *, without_self=False):
    """All rows of each query in order of (distance, row), as lists of pairs."""
    return [
        sorted(
            (int((query != item).sum()), row)
            for row, item in enumerate(items)
            if not (without_self and row == number)
        )
        for number, query in enumerate(queries)
    ]


@st.composite
def rows_of_bits(draw):
    n_bits = draw(st.integers(1, 20))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(2, 30))
    few = rng.integers(0, 2, (draw(st.integers(1, n)), n_bits), np.uint8)  # many equal rows
    return few[rng.integers(0, len(few), n)], rng.integers(0, 2, (3, n_bits), np.uint8)


@given(rows_of_bits(), st.data())
def test_neighbours_are_the_first_of_all_rows_in_order_of_distance_and_row(rows, data):
    items, queries = rows
    k = data.draw(st.integers(1, len(items) - 1))
    fitted = HammingNeighbors(k, kind="scan").fit(items)
    for given_queries, wanted in [
        (queries, by_brute_force(items, queries)),
        (None, by_brute_force(items, items, without_self=True)),
    ]:
        distances, found = fitted.kneighbors(given_queries)
        assert [
            list(zip(*pair, strict=True))
            for pair in zip(distances.tolist(), found.tolist(), strict=True)
        ] == [all_rows[:k] for all_rows in wanted]
        assert np.array_equal(fitted.kneighbors(given_queries, return_distance=False), found)


@given(rows_of_bits(), st.integers(0, 21))
def test_everything_within_a_radius_is_found(rows, radius):
    items, queries = rows
    fitted = HammingNeighbors(radius=radius, kind="scan").fit(items)
    for given_queries, wanted in [
        (queries, by_brute_force(items, queries)),
        (None, by_brute_force(items, items, without_self=True)),
    ]:
        distances, found = fitted.radius_neighbors(given_queries)
        assert distances.dtype == found.dtype == object
        assert [
            list(zip(far.tolist(), near.tolist(), strict=True))
            for far, near in zip(distances, found, strict=True)
        ] == [[pair for pair in all_rows if pair[0] <= radius] for all_rows in wanted]
        again = fitted.radius_neighbors(given_queries, radius, return_distance=False)
        assert all(map(np.array_equal, again, found))


@pytest.fixture
def bits(rng):
    return rng.integers(0, 2, (60, 24), np.uint8)


def in_sklearn(bits, **options):
    return NearestNeighbors(metric="hamming", algorithm="brute", **options).fit(bits)


@pytest.mark.parametrize("is_self", [False, True])
def test_distances_are_those_of_scikit_learn_times_the_bits(bits, is_self):
    queries = None if is_self else bits[:7] ^ (np.arange(24) % 5 == 0)
    ours, _ = HammingNeighbors().fit(bits).kneighbors(queries, 9)
    theirs, _ = in_sklearn(bits).kneighbors(queries, 9)
    assert np.allclose(ours, theirs * 24)


@pytest.mark.parametrize("is_self", [False, True])
@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_graphs_are_those_of_scikit_learn(bits, is_self, mode):
    queries = None if is_self else bits[:7] ^ (np.arange(24) % 5 == 0)
    scale = 24 if mode == "distance" else 1
    ours = HammingNeighbors(radius=9).fit(bits).radius_neighbors_graph(queries, mode=mode)
    theirs = in_sklearn(bits, radius=9.5 / 24).radius_neighbors_graph(queries, mode=mode)
    assert ours.format == "csr"
    assert ours.shape == theirs.shape
    assert ours.nnz == theirs.nnz
    assert np.allclose(ours.toarray(), theirs.toarray() * scale)
    ours = HammingNeighbors(8).fit(bits).kneighbors_graph(queries, mode=mode)
    theirs = in_sklearn(bits, n_neighbors=8).kneighbors_graph(queries, mode=mode)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert np.allclose(  # which of the tied rows are taken differs, how far they are does not
        np.sort(ours.data.reshape(-1, 8)), np.sort(theirs.data.reshape(-1, 8)) * scale
    )


def test_bits_packed_codes_and_codes_give_the_same(bits):
    packed = np.packbits(bits, axis=1)
    codes = BinaryCodes(packed, 24)
    wanted = HammingNeighbors().fit(bits).kneighbors(bits[:5])
    for n_bits, X in [
        (None, bits.astype(bool)),
        (None, bits * 2.0 - 1),
        (None, codes),
        (24, packed),
        (24, codes),
    ]:
        fitted = HammingNeighbors(n_bits=n_bits).fit(X)
        assert (fitted.n_bits_, fitted.n_samples_fit_) == (24, 60)
        for queries in (X[:5], codes[:5]):
            assert all(map(np.array_equal, fitted.kneighbors(queries), wanted))


def test_it_is_an_estimator():
    one = HammingNeighbors(7, radius=3, kind="scan", n_threads=1, n_bits=24)
    assert clone(one).get_params() == one.get_params()
    assert one.get_params() == {
        "n_neighbors": 7, "radius": 3, "kind": "scan", "n_threads": 1, "n_bits": 24,
    }  # fmt: skip
    assert one.set_params(n_neighbors=2).n_neighbors == 2
    with pytest.raises(NotFittedError):
        one.kneighbors(np.zeros((1, 3), np.uint8))


@pytest.mark.parametrize("kind", ["auto", "scan", "mih"])
def test_a_fitted_one_survives_pickling(bits, kind):
    fitted = HammingNeighbors(kind=kind).fit(bits)
    wanted = fitted.kneighbors(bits)
    again = pickle.loads(pickle.dumps(fitted))
    assert all(map(np.array_equal, again.kneighbors(bits), wanted))


def test_in_a_pipeline_it_hands_a_graph_to_what_takes_precomputed_distances(rng):
    centres = rng.standard_normal((3, 16))
    labels = np.arange(90) % 3
    x = centres[labels] + 0.8 * rng.standard_normal((90, 16))
    signs = FunctionTransformer(lambda values: np.packbits(values > 0, axis=1))
    classifier = KNeighborsClassifier(1, metric="precomputed")
    piped = clone(make_pipeline(signs, HammingNeighbors(1, n_bits=16), classifier))
    predicted = piped.fit(x[:60], labels[:60]).predict(x[60:])
    bits = (x > 0).astype(np.uint8)
    wanted = [labels[all_rows[0][1]] for all_rows in by_brute_force(bits[:60], bits[60:])]
    assert predicted.tolist() == wanted


def test_bad_input_is_named(bits):
    fitted = HammingNeighbors().fit(bits)
    for wrong, message in [
        (lambda: fitted.kneighbors(bits, 61), "n_neighbors must be at most 60, .*; got 61"),
        (lambda: fitted.kneighbors(None, 60), "n_neighbors must be at most 59, .*; got 60"),
        (lambda: fitted.kneighbors(bits, 0), "n_neighbors must be an integer >= 1, got 0"),
        (lambda: fitted.kneighbors(bits[:, :9]), "X must have 24 bits as in fit, got 9"),
        (lambda: fitted.radius_neighbors(bits, -1), "radius must be an integer >= 0, got -1"),
        (lambda: fitted.kneighbors_graph(bits, mode="both"), "mode must be one of connectivity"),
        (lambda: fitted.radius_neighbors_graph(bits, mode=1), "mode must be one of connectivity"),
        (
            lambda: HammingNeighbors().fit(bits * 7),
            "^X: bits must be .*; set n_bits if X is packed",
        ),
        (lambda: HammingNeighbors(n_bits=24).fit(bits), r"must be uint8 of shape \(n, 3\)"),
        (lambda: HammingNeighbors(n_bits=8).fit(bits[:0, :1]), "X must not be empty"),
        (lambda: HammingNeighbors(kind="ivf").fit(bits), "kind must be one of auto, scan, mih"),
        (lambda: HammingNeighbors(n_bits=0).fit(bits), "n_bits must be an integer from 1"),
    ]:
        with pytest.raises(InputError, match=message):
            wrong()
