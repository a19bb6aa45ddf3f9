"""Hyperplanes in the space of RBF anchors: the base that kernel methods share."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from rankbits.errors import FileFormatError
from rankbits.methods.parameters.common import RANDOM_STATE, Seed
from rankbits.methods.parameters.fields import integer, parameter
from rankbits.methods.shallow.shared.kernel_hasher import KernelHasher
from rankbits.methods.shallow.shared.parameters import GAMMA


class RandomKernelPlanes(KernelHasher):
    """Random hyperplanes through the mean of the kernel features: always with the kernel."""

    _is_orthonormal = False

    n_anchors: int = parameter(20, integer(1))
    gamma: float | None = GAMMA
    random_state: Seed = RANDOM_STATE

    def fit(self, X, y=None):
        rng = check_random_state(self.random_state)
        features = self._draw_anchors(self._training_rows(X, y), rng)
        self.mean_ = features.mean(axis=0)
        self.planes_ = rng.standard_normal((features.shape[1], self.n_bits))
        return self


@pytest.fixture
def rows(rng):
    return rng.standard_normal((50, 4))


@pytest.fixture
def fitted(rows):
    return RandomKernelPlanes(8, random_state=0).fit(rows)


def test_logits_are_the_planes_times_the_centered_features(fitted, rows):
    squares = np.square(rows[:, None] - fitted.anchors_.rows).sum(axis=2)
    features = np.exp(-fitted.anchors_.gamma * squares)
    expected = (features - features.mean(axis=0)) @ fitted.planes_
    np.testing.assert_allclose(fitted.project(rows), expected, atol=1e-12)


def test_a_method_without_a_basis_gives_its_state_and_takes_it_back(fitted, rows):
    arrays, facts = fitted._state()
    assert set(arrays) == {"mean", "planes", "anchors", "gamma"}
    again = RandomKernelPlanes(8)
    again.n_features_in_ = 4
    again._restore(arrays, facts)
    assert np.array_equal(again.project(rows), fitted.project(rows))
    assert again.n_bits_ == 8


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("anchors", np.zeros((20, 3)), r"anchors must be finite float64 of shape \(20, 4\)"),
        ("gamma", np.zeros(2), r"gamma must be finite float64 of shape \(1\)"),
        ("mean", np.zeros(19), r"mean must be finite float64 of shape \(20\)"),
        ("basis", np.zeros((20, 5)), "must hold the arrays mean, planes; it holds basis, mean"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(fitted, name, array, sentence):
    arrays, facts = fitted._state()
    with pytest.raises(FileFormatError, match=sentence.replace("(20, 4)", "(m, 4)")):
        fitted._restore({**arrays, name: array}, facts)


def test_an_array_of_the_kernel_that_is_missing_is_named(fitted):
    arrays, facts = fitted._state()
    del arrays["gamma"]
    with pytest.raises(FileFormatError, match="gamma is missing"):
        fitted._restore(arrays, facts)


def test_the_exported_module_computes_the_same_logits(fitted, rows):
    torch = pytest.importorskip("torch")
    logits = fitted._torch_module()(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(logits, fitted.project(rows), atol=1e-9)
