"""y that cannot be used: one sentence says what came and what to pass instead."""

import numpy as np
import pytest

from rankbits import BinaryCodes, affinity, methods
from rankbits.errors import InputError

RNG = np.random.default_rng(2)
X, Y = RNG.standard_normal((30, 6)), np.arange(30) % 3
SUPERVISED = ("rsh", "lwh", "ksh", "sdh", "ssh", "bre", "mlh")
UNSUPERVISED = ("lsh", "pcah", "itq", "sign")


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("labels", [Y, Y % 2, Y.astype(str)])
def test_a_column_of_labels_is_refused_with_what_to_pass(name, labels):
    sentence = r"^y is a column of shape \(30, 1\); class labels .* pass y.ravel\(\)$"
    with pytest.raises(InputError, match=sentence):
        methods.get(name, n_bits=2).fit(X, labels[:, None])
    methods.get(name, n_bits=2).fit(X, labels[:, None].ravel())


@pytest.mark.parametrize("name", [*SUPERVISED, *UNSUPERVISED])
@pytest.mark.parametrize("y", [Y[:29], np.zeros((31, 2)), list("ab")])
def test_y_of_another_length_is_refused_by_every_method(name, y):
    sentence = f"y must have one label for each row of X, got {len(y)} labels for 30 rows"
    with pytest.raises(InputError, match=sentence):
        methods.get(name, n_bits=2).fit(X, y)


@pytest.mark.parametrize("name", [*SUPERVISED, *UNSUPERVISED])
def test_an_affinity_of_other_rows_is_refused_by_every_method(name):
    sentence = r"an affinity over \(X, X\), of shape \(30, 30\), got shape \(29, 30\)"
    with pytest.raises(InputError, match=sentence):
        methods.get(name, n_bits=2).fit(X, affinity.classes(Y[1:], Y))


@pytest.mark.parametrize("name", UNSUPERVISED)
@pytest.mark.parametrize("y", [Y, Y[:, None], X, np.full(30, np.nan), affinity.classes(Y, Y)])
def test_y_of_the_right_length_is_ignored_by_methods_that_do_not_use_it(name, y):
    params = {"n_bits": 2} if name == "sign" else {"n_bits": 2, "random_state": 0}
    without, ignored = (
        methods.get(name, **params).fit_transform(X, labels) for labels in (None, y)
    )
    assert np.array_equal(without, ignored)


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (3 * (Y[:, None] == Y), r"got the value 3; .* pass rankbits.affinity.levels\(y\)"),
        (np.full((30, 4), 0.5), r"must be multi-hot tags of 0 and 1, got the value 0.5; class lab"),
        (np.full((30, 2), "a"), r"must be multi-hot tags of 0 and 1, got <U1 of shape \(30, 2\)"),
        (np.zeros((30, 0)), r"y must have at least two tags, got none"),
        (
            np.zeros((30, 2, 2)),
            r"y must be class labels of shape \(n,\), multi-hot tags .* got flo",
        ),
        ("labels.npy", r"y must be class labels of shape \(n,\), .* got str 'labels.npy'"),
        (7, r"y must be class labels of shape \(n,\), .* got int 7"),
        ([[0, 1], [1]] * 15, "y must be an array of one shape"),
        (np.linspace(0, 1, 30), "integers or strings, got numbers with fractions .*float64"),
    ],
)
def test_y_of_another_kind_is_refused_with_what_to_pass(name, y, sentence):
    with pytest.raises(InputError, match=sentence):
        methods.get(name, n_bits=2).fit(X, y)


@pytest.mark.parametrize("name", [*SUPERVISED, *UNSUPERVISED])
def test_an_affinity_or_codes_in_the_place_of_x_are_refused_with_where_they_belong(name):
    hasher = methods.get(name, n_bits=2)
    with pytest.raises(
        InputError, match=r"got an affinity \(Classes\); pass the rows as X and the"
    ):
        hasher.fit(affinity.classes(Y, Y), Y)
    codes = BinaryCodes.from_logits(X)
    with pytest.raises(InputError, match=r"got BinaryCodes, .* pass codes.bits\(\)"):
        hasher.fit(codes, Y)
    hasher.fit(X, Y)
    with pytest.raises(InputError, match="got BinaryCodes"):
        hasher.transform(codes)
