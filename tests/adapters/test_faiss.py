"""One index of faiss for a hasher and its codes finds what both find here."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.adapters.faiss import to_faiss
from rankbits.errors import InputError
from rankbits.index import HammingIndex

faiss = pytest.importorskip("faiss", reason="faiss is not installed")

FITTED = {
    "lsh": {},
    "itq": {},
    "pcah": {},
    "sign": {},
    "distilled": {"n_steps": 5},
    "talr-ndcg": {"epochs": 1},
}


@pytest.fixture
def rows(rng):
    return (rng.standard_normal((300, 24)) + 0.3).astype(np.float32)


def fit(name, rows, n_bits=20):
    hasher = methods.get(name, n_bits=n_bits, **FITTED[name])
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=0)
    return hasher.fit(rows)


def index_of(hasher, rows, ids=None):
    index = HammingIndex(hasher.n_bits_)
    index.add(hasher.encode(rows), ids=ids)
    return index


@pytest.mark.parametrize("ids", [None, np.arange(300) * 7 + 5])
@pytest.mark.parametrize("name", FITTED)
def test_real_valued_queries_have_the_scores_of_search_real(name, ids, rows):
    hasher = fit(name, rows)
    index, queries = index_of(hasher, rows, ids), rows[:40] * 3
    ours, our_ids = index.search_real(hasher.project_queries(queries), k=10)
    theirs, their_ids = to_faiss(hasher, index).search(queries, 10)
    assert np.allclose(theirs, ours, rtol=1e-4, atol=1e-4 * np.abs(ours).max())
    is_apart = np.diff(ours, axis=1) < -1e-3 * np.abs(ours).max()
    apart = np.pad(is_apart, ((0, 0), (1, 0)), constant_values=True)
    apart[:, :-1] &= is_apart
    apart[:, -1] = False  # what comes next is not known
    assert apart.mean() > 0.2
    assert np.array_equal(their_ids[apart], our_ids[apart])


@pytest.mark.parametrize("ids", [None, np.arange(300) * 7 + 5])
@pytest.mark.parametrize("name", FITTED)
def test_queries_in_bits_have_the_distances_of_search(name, ids, rows):
    hasher = fit(name, rows)
    index = index_of(hasher, rows, ids)
    ours, _ = index.search(hasher.encode_queries(rows[:40]), k=10)
    theirs, their_ids = to_faiss(hasher, index, "bits").search(rows[:40], 10)
    assert np.array_equal(theirs, ours)
    assert set(their_ids.ravel().tolist()) <= set(index.ids.tolist())


def test_vectors_added_to_the_index_of_a_model_with_one_map_get_its_codes(rows):
    hasher = fit("itq", rows)
    index = index_of(hasher, rows[:200])
    for queries in ("real", "bits"):
        grown = to_faiss(hasher, index, queries)
        grown.add(rows[200:])
        whole = to_faiss(hasher, index_of(hasher, rows), queries)
        assert np.array_equal(grown.search(rows[:9], 5)[0], whole.search(rows[:9], 5)[0])


def test_a_saved_index_finds_the_same(rows, tmp_path):
    hasher = fit("distilled", rows)
    ready = to_faiss(hasher, index_of(hasher, rows))
    faiss.write_index(ready, str(tmp_path / "codes.faiss"))
    again = faiss.read_index(str(tmp_path / "codes.faiss"))
    for before, after in zip(ready.search(rows, 3), again.search(rows, 3), strict=True):
        assert np.array_equal(before, after)


def test_what_has_no_linear_map_or_other_codes_is_refused(rows):
    hasher = fit("itq", rows)
    index = index_of(hasher, rows)
    curved = methods.get("talr-ap", n_bits=20, hidden=(8,), epochs=1, random_state=0).fit(rows)
    with pytest.raises(InputError, match="must have a linear map of queries"):
        to_faiss(curved, index)
    with pytest.raises(InputError, match="that gives the 20 bits of index"):
        to_faiss(fit("itq", rows, 8), index)
    with pytest.raises(InputError, match="that gives the 20 bits of index"):
        to_faiss(methods.get("itq"), index)
    with pytest.raises(InputError, match="queries must be one of real, bits"):
        to_faiss(hasher, index, "float")
    with pytest.raises(InputError, match="index"):
        to_faiss(hasher, "folder")
