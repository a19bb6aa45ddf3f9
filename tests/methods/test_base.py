"""What all methods take from their base: checks, blocks, packing."""

import tracemalloc

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankbits import BinaryCodes, methods
from rankbits.errors import InputError
from rankbits.methods import base


@pytest.fixture
def lsh(rng):
    return methods.get("lsh", n_bits=20, random_state=0).fit(rng.standard_normal((50, 6)))


def test_logits_are_what_the_planes_say(lsh, rng):
    rows = rng.standard_normal((9, 6))
    by_hand = [[sum((x - m) * p) for p in lsh.planes_.T] for x, m in ((r, lsh.mean_) for r in rows)]
    np.testing.assert_allclose(lsh.project(rows), by_hand, atol=1e-12)


def test_blocks_are_of_bounded_size_and_in_order(lsh, rng, monkeypatch):
    rows, seen = rng.standard_normal((100, 6)), []
    whole = lsh.transform(rows)
    monkeypatch.setattr(base, "_BLOCK_CELLS", 20 * 8 + 5)  # 6 features, 20 bits
    logits = type(lsh)._logits
    monkeypatch.setattr(
        type(lsh), "_logits", lambda self, block: (seen.append(len(block)), logits(self, block))[1]
    )
    assert np.array_equal(lsh.transform(rows), whole)
    assert seen == [8] * 12 + [4]


@pytest.mark.parametrize("method", ["project", "encode", "project_queries", "encode_queries"])
def test_rows_whose_logits_are_no_numbers_are_refused_by_row(lsh, rng, method):
    rows = rng.standard_normal((9, 6))
    rows[4] = 1e308
    with pytest.raises(InputError, match="finite numbers, those of row 4 are not"):
        getattr(lsh, method)(rows)


@pytest.mark.unsanitized
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_mapped_file_is_encoded_in_the_memory_of_a_block(tmp_path, dtype):
    big = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype, (400_000, 64))
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(np.eye(64))
    rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert len(rows) == len(big)
    tracemalloc.start()
    hasher.transform(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6 < rows.nbytes


def test_blocks_are_bounded_by_features_and_by_bits(lsh):
    assert lsh._block_rows((1 << 20,)) == lsh._block_rows((1 << 22,)) == 1
    assert lsh._block_rows((6,)) == (1 << 20) // 20
    assert lsh._block_rows((32, 32, 3)) == (1 << 20) // 3072


def test_a_row_that_is_not_finite_is_named_by_its_number_in_x(lsh, rng, monkeypatch):
    monkeypatch.setattr(base, "_BLOCK_CELLS", 20 * 8)
    rows = rng.standard_normal((100, 6))
    rows[77, 5] = np.nan
    with pytest.raises(InputError, match="got NaN in row 77, column 5; drop or fill"):
        lsh.project(rows)


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        ([1.0, 2.0], "Reshape your data"),
        (np.ones((2, 6, 1)), "dim 3"),
        ([["a", "b"]], "bytes/strings"),
        (np.empty((0, 6)), "0 sample"),
        (np.ones((3, 5)), "5 features, but LSH is expecting 6"),
        (np.ones((2, 6), complex), "Complex data not supported"),
    ],
)
def test_rows_of_another_kind_are_refused(lsh, x, reason):
    with pytest.raises(InputError, match=reason):
        lsh.transform(x)


def test_lists_and_objects_of_numbers_are_taken(lsh):
    rows = np.arange(12).reshape(2, 6)
    for same in (rows.tolist(), rows.astype(object)):
        assert np.array_equal(lsh.transform(same), lsh.transform(rows))


def test_encode_gives_codes_whatever_transform_is_told_to_give(lsh, rng):
    rows = rng.standard_normal((5, 6))
    assert lsh.encode(rows) == BinaryCodes.from_logits(lsh.project(rows))
    assert len(lsh.get_feature_names_out()) == lsh.transform(rows).shape[1] == 3


def test_a_fitted_method_keeps_its_length_when_the_parameter_changes(lsh, rng):
    rows = rng.standard_normal((5, 6))
    assert lsh.set_params(n_bits=7).encode(rows).n_bits == 20


def test_works_at_the_end_of_a_pipeline(rng):
    rows = rng.standard_normal((40, 6)) * 9
    pipeline = make_pipeline(StandardScaler(), methods.get("itq", n_bits=5, random_state=0))
    assert pipeline.fit_transform(rows).shape == (40, 1)
