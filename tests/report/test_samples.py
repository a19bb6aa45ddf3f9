import base64
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.report import SamplePictures, samples
from rankbits.report._samples import nearest, picture


def by_hand(query, database, k):
    """(distance, row) of the k nearest, by sorting all pairs."""
    pairs = [
        (sum(a != b for a, b in zip(query, item, strict=True)), row)
        for row, item in enumerate(database)
    ]
    return sorted(pairs)[:k]


@given(st.integers(1, 20), st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_nearest_are_the_first_by_distance_then_row(n_bits, n_items, k, seed):
    rng = np.random.default_rng(seed)
    queries, database = (rng.integers(0, 2, (n, n_bits)) for n in (3, n_items))
    codes = BinaryCodes.from_bits(queries), BinaryCodes.from_bits(database)
    distances, rows = nearest(*codes, k)
    for place, query in enumerate(queries.tolist()):
        found = list(zip(distances[place].tolist(), rows[place].tolist(), strict=True))
        assert found == by_hand(query, database.tolist(), k)


def opacity(uri):
    """What another reader of PNG sees: the opacity, the ink being black."""
    kind, _, data = uri.partition(",")
    assert kind == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.mode == "LA"
    grey, alpha = np.moveaxis(np.asarray(image), 2, 0)
    assert not grey.any()
    return alpha


def test_a_picture_has_the_ink_as_opacity():
    ink = np.arange(15).reshape(3, 5) / 14
    assert opacity(picture(ink)).tolist() == np.rint(255 * ink).astype(int).tolist()


def test_ink_beyond_its_range_is_clipped():
    assert opacity(picture(np.array([[-1.0, 2.0]]))).tolist() == [[0, 255]]


def test_a_sample_has_the_nearest_of_each_codes_with_their_pictures():
    rng = np.random.default_rng(2)
    bits = {name: [rng.integers(0, 2, (n, 9)) for n in (4, 25)] for name in ("a", "b")}
    labels = [rng.integers(0, 3, n) for n in (4, 25)]
    ink = [rng.random((n, 2, 3)) for n in (4, 25)]
    codes = {name: tuple(map(BinaryCodes.from_bits, pair)) for name, pair in bits.items()}
    found = samples([3, 1], codes, *map(SamplePictures, ink, labels), k=5)
    assert [sample.query for sample in found] == [3, 1]
    for sample in found:
        row = sample.query
        assert (sample.picture, sample.label) == (picture(ink[0][row]), str(labels[0][row]))
        assert list(sample.nearest) == ["a", "b"]
        for name, (queries, database) in bits.items():
            shown = sample.nearest[name]
            assert [(n.distance, n.item) for n in shown] == by_hand(queries[row], database, 5)
            for neighbour in shown:
                label = labels[1][neighbour.item]
                assert neighbour.label == str(label)
                assert neighbour.is_relevant == (label == labels[0][row])
                assert neighbour.picture == picture(ink[1][neighbour.item])
    kinds = {n.is_relevant for sample in found for n in sample.nearest["a"]}
    assert kinds == {True, False}


@pytest.mark.parametrize("shape", [(4, 6), (3, 2, 3)])
def test_pictures_must_be_as_many_as_labels(shape):
    with pytest.raises(InputError, match=r"ink must have shape \(n, height, width\) for 4 labels"):
        SamplePictures(np.zeros(shape), np.arange(4))
