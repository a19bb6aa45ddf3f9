"""Spectral hashing: waves along the axes of a box, which are eigenvectors of its graph."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import rankbits
from oracles.spectral import bits_of_row, laplacian_eigenvectors, smallest_modes
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.shallow.sh import choose_modes


@pytest.fixture(scope="module")
def rows():
    return load_digits().data[:300]


def grid(n_columns, n_rows, width, height):
    x, y = np.meshgrid(np.linspace(0, width, n_columns), np.linspace(0, height, n_rows))
    return np.stack([x.ravel(), y.ravel()], axis=1)


@pytest.mark.parametrize("n_modes", [1, 2, 5, 13, 40])
def test_modes_are_the_smallest_frequencies_of_all_axes(rng, n_modes):
    for widths in (rng.uniform(0.1, 3, 6), np.array([4.0, 2.0, 2.0, 1.0]), np.array([1e-9, 3e-9])):
        axes, modes, frequencies = choose_modes(widths, n_modes)
        assert list(zip(axes, modes, strict=True)) == smallest_modes(widths / widths[0], n_modes)
        np.testing.assert_allclose(frequencies, modes * np.pi / widths[axes])


def test_waves_on_a_box_are_the_eigenvectors_of_its_graph():
    box = grid(40, 20, 2.1, 1.0)
    hasher = methods.get("sh", n_bits=4).fit(box)
    assert hasher.modes_.tolist() == [[0, 1], [0, 2], [1, 1], [0, 3]]
    vectors = laplacian_eigenvectors(box, bandwidth=0.08, n_vectors=6)
    cosines = np.abs(np.corrcoef(hasher.project(box).T, vectors.T)[:4, 4:])
    # mode (1, 1) and mode (0, 1) times it come in between; each wave is one of the vectors
    assert (cosines.max(axis=1) > 0.98).all()
    assert len(set(cosines.argmax(axis=1))) == 4


@pytest.mark.parametrize("n_bits", [1, 20, 70])
def test_bits_are_those_of_the_definition(rows, n_bits):
    hasher = methods.get("sh", n_bits=n_bits).fit(rows)
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    n_axes = min(n_bits, int((values > 1e-9).sum()))
    directions = vectors[:, ::-1][:, :n_axes]
    parts = (rows - mean) @ directions
    low, widths = parts.min(axis=0), np.ptp(parts, axis=0)
    modes = smallest_modes(widths, n_bits)
    assert hasher.modes_.tolist() == [list(mode) for mode in modes]
    expected = np.array([bits_of_row(row, mean, directions, low, widths, modes) for row in rows])
    bits = hasher.encode(rows).bits()
    agreement = (bits == expected).mean(axis=0)  # an axis may be turned round: then all bits of
    odd = np.array([mode % 2 for _, mode in modes]) == 1  # an odd mode are the others
    assert ((agreement == 1) | ((agreement == 0) & odd)).all()


def test_more_bits_than_features_are_further_modes(rng):
    hasher = methods.get("sh", n_bits=9).fit(rng.uniform(size=(50, 1)))
    assert hasher.modes_.tolist() == [[0, mode] for mode in range(1, 10)]


def test_waves_divide_their_axis_evenly(rng):
    line = np.linspace(0, 1, 800)[:, None]
    bits = methods.get("sh", n_bits=4).fit(line).encode(line).bits()
    assert (bits.mean(axis=0) == 0.5).all()
    assert np.abs(np.diff(bits.astype(int), axis=0)).sum(axis=0).tolist() == [1, 2, 3, 4]


def test_rows_beyond_the_range_are_mirrored_or_clipped():
    line = np.linspace(-1, 1, 101)[:, None]
    beyond = np.array([[1.4], [0.6], [1.0]])
    mirrored, inside, end = methods.get("sh", n_bits=8).fit(line).project(beyond)
    np.testing.assert_allclose(mirrored, inside, atol=1e-9)
    clipped, _, end = methods.get("sh", n_bits=8, clip=0.0).fit(line).project(beyond)
    np.testing.assert_allclose(clipped, end, atol=1e-9)
    np.testing.assert_allclose(np.abs(end), 1, atol=1e-9)


def test_an_outlier_does_not_set_the_range_if_it_is_clipped(rng, tmp_path):
    line = np.concatenate([rng.uniform(size=1000), [1000.0]])[:, None]
    first_bits = methods.get("sh", n_bits=2).fit(line).encode(line[:-1]).bits()
    assert (first_bits == first_bits[0]).all()
    clipped = methods.get("sh", n_bits=2, clip=0.01).fit(line)
    assert 0.4 < clipped.encode(line[:-1]).bits().mean() < 0.6
    clipped.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model").set_params(clip=None)  # what was fitted counts
    assert np.array_equal(again.project(line), clipped.project(line))


def test_the_exported_module_clips_too(rng):
    torch = pytest.importorskip("torch")
    hasher = methods.get("sh", n_bits=9, clip=0.2).fit(rng.uniform(size=(60, 3)))
    rows = rng.uniform(-1, 2, size=(80, 3))
    logits = hasher._torch_module()(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(logits, hasher.project(rows), atol=1e-9)


@pytest.mark.parametrize("clip", [-0.1, 0.5, "0.1", True])
def test_a_clip_that_is_no_share_is_refused(clip):
    with pytest.raises(InputError, match=r"clip must be a number from 0 and below 0\.5"):
        methods.get("sh", n_bits=2, clip=clip).fit(np.eye(4))


def test_rows_without_a_range_are_refused():
    with pytest.raises(InputError, match="X must vary, but all its rows are equal"):
        methods.get("sh", n_bits=2).fit(np.ones((9, 3)))
    spike = np.zeros((100, 2))
    spike[0] = 1
    with pytest.raises(InputError, match=r"clip must leave every axis a range, but 0.1 leaves"):
        methods.get("sh", n_bits=2, clip=0.1).fit(spike)
