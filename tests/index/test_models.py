"""An index knows the model of its codes and refuses codes of another, in memory and on disk."""

import pickle

import numpy as np
import pytest

from oracles.counting import random_codes
from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex, HammingNeighbors, TablesIndex, interop


def codes_of(rng, model, n=5, n_bits=12):
    return BinaryCodes(random_codes(rng, n, n_bits).packed, n_bits, model)


@pytest.fixture(params=["index", "collection"])
def index(request, tmp_path):
    if request.param == "index":
        yield HammingIndex(12, kind="scan")
    else:
        with Collection.create(tmp_path / "live", 12, kind="scan") as collection:
            yield collection


MISMATCH = r"codes come from model other and those of the index from model first"


def test_codes_of_another_model_are_neither_found_nor_added(rng, index):
    index.add(codes_of(rng, "first"))
    before = index.ids.tolist()
    other = codes_of(rng, "other")
    for use in (
        lambda: index.search(other, 3),
        lambda: index.within(other, 3),
        lambda: index.tune(other, 3),
        lambda: index.add(other),
        lambda: index.upsert(other, [0, 1, 2, 3, 4]),
    ):
        with pytest.raises(InputError, match=MISMATCH):
            use()
    assert (index.ids.tolist(), index.model) == (before, "first")
    assert index.codes().model == "first"


def test_codes_of_an_unknown_model_are_welcome(rng, index):
    unknown = codes_of(rng, None)
    index.add(unknown)
    assert index.model is None
    index.search(codes_of(rng, "other"), 3)
    index.add(codes_of(rng, "first"))
    assert index.model == "first"
    index.search(unknown, 3)
    index.search(unknown.packed, 3)
    index.add(unknown)
    with pytest.raises(InputError, match=MISMATCH):
        index.search(codes_of(rng, "other"), 3)


def test_an_index_that_was_emptied_takes_codes_of_another_model(rng, index):
    ids = index.add(codes_of(rng, "first"))
    index.remove(ids)
    index.add(codes_of(rng, "other")[:0])
    assert index.model == "first"
    index.add(codes_of(rng, "other"))
    assert index.model == "other"


def test_the_model_is_kept_on_disk_in_copies_and_in_files(rng, tmp_path):
    index = HammingIndex(12)
    index.add(codes_of(rng, "first"))
    index.save(tmp_path / "saved")
    with Collection.open(tmp_path / "saved") as collection:
        assert collection.model == collection.index().model == "first"
        assert collection.info()["model"] == "first"
        collection.snapshot(tmp_path / "copy")
    assert HammingIndex.load(tmp_path / "copy", mmap=False).model == "first"
    assert pickle.loads(pickle.dumps(index)).model == "first"
    for name in ("npz", "parquet"):
        getattr(interop, f"to_{name}")(index, tmp_path / f"file.{name}")
        assert getattr(interop, f"from_{name}")(tmp_path / f"file.{name}").model == "first"
        assert BinaryCodes.load(tmp_path / f"file.{name}").model == "first"


def test_every_table_has_a_model_of_its_own(rng):
    tables = TablesIndex(12, n_tables=2)
    pair = [codes_of(rng, "first"), codes_of(rng, "other")]
    tables.add(pair)
    tables.search(pair, 2)
    with pytest.raises(InputError, match=MISMATCH):
        tables.search(pair[::-1], 2)


def test_neighbors_refuse_queries_of_another_model(rng):
    neighbors = HammingNeighbors(n_neighbors=2).fit(codes_of(rng, "first"))
    with pytest.raises(InputError, match=MISMATCH):
        neighbors.kneighbors(codes_of(rng, "other"))


HANDED_OVER = {
    "to_faiss": (),
    "to_usearch": (),
    "to_npz": ("file",),
    "to_parquet": ("file",),
    "to_lance": ("folder", "table"),
    "to_pgvector_copy": ("file",),
    "to_pgvector_sql": ("file", "table"),
    "copy_to_postgres": (None, "table"),
}


@pytest.mark.parametrize("name", HANDED_OVER)
def test_the_name_of_a_folder_is_no_index_to_hand_over(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError,
        match=r"index must be a HammingIndex or a Collection.*HammingIndex.load\('live'\)",
    ):
        getattr(interop, name)("live", *HANDED_OVER[name])
    with pytest.raises(InputError, match=r"got uint8 of shape .*HammingIndex\(n_bits\)"):
        getattr(interop, name)(np.zeros((1, 2), np.uint8), *HANDED_OVER[name])
    assert not list(tmp_path.iterdir())


def test_an_index_takes_item_codes_and_is_searched_by_query_codes(rng, index):
    items, queries = (
        BinaryCodes(codes_of(rng, None).packed, 12, "first", side) for side in ("items", "queries")
    )
    for use in (lambda: index.add(queries), lambda: index.upsert(queries, [0, 1, 2, 3, 4])):
        with pytest.raises(InputError, match=r"codes must be encoded as items.*for queries"):
            use()
    index.add(items)
    for search in (index.search, index.within, index.tune):
        search(queries, 3)
        with pytest.raises(InputError, match=r"codes must be encoded as queries.*for items"):
            search(items, 3)


def test_a_file_of_query_codes_does_not_become_an_index(rng, tmp_path):
    queries = BinaryCodes(codes_of(rng, None).packed, 12, "first", "queries")
    queries.save(tmp_path / "queries.npz")
    with pytest.raises(InputError, match=r"must be encoded as items, got codes for queries"):
        interop.from_npz(tmp_path / "queries.npz")


def codes_for(rng, side, model="first", n=5):
    return BinaryCodes(random_codes(rng, n, 12).packed, 12, model, side)


def test_the_first_codes_with_a_side_decide_it(rng, index):
    unknown = codes_for(rng, None, model=None)
    index.add(unknown)
    index.search(index.codes([0]), 3)
    index.add(codes_for(rng, "items"))
    assert (index.model, index.side) == ("first", "items")
    index.add(unknown)
    index.upsert(unknown, [0, 1, 2, 3, 4])
    index.compact()
    assert (index.side, index.codes([0, 12]).side) == ("items", "items")
    with pytest.raises(InputError, match="codes must be encoded as queries, got codes for items"):
        index.search(index.codes([0]), 3)


def test_an_index_that_was_emptied_takes_the_side_of_another_model(rng, index):
    for model, side in (("first", "items"), ("second", None), ("third", "items")):
        index.remove(index.ids)
        index.add(codes_for(rng, "items", "fourth")[:0])
        index.add(codes_for(rng, side, model))
        assert (index.model, index.side) == (model, side)


def test_the_side_is_kept_on_disk_in_copies_and_in_files(rng, tmp_path):
    index = HammingIndex(12)
    index.add(codes_for(rng, "items"))
    index.save(tmp_path / "saved")
    with Collection.open(tmp_path / "saved") as collection:
        assert collection.side == collection.index().side == collection.info()["side"] == "items"
        collection.snapshot(tmp_path / "copy")
    loaded = [HammingIndex.load(tmp_path / "copy", mmap=mmap) for mmap in (True, False)]
    for name in ("npz", "parquet"):
        getattr(interop, f"to_{name}")(index, tmp_path / f"file.{name}")
        loaded.append(getattr(interop, f"from_{name}")(tmp_path / f"file.{name}"))
        assert BinaryCodes.load(tmp_path / f"file.{name}").side == "items"
    for again in (*loaded, pickle.loads(pickle.dumps(index))):
        assert (again.side, again.codes().side, again.model) == ("items", "items", "first")
        with pytest.raises(InputError, match="codes must be encoded as queries"):
            again.search(again.codes([0]), 1)


def test_tables_and_neighbors_refuse_to_search_by_codes_of_items(rng):
    items = codes_for(rng, "items")
    tables = TablesIndex(12, n_tables=2)
    tables.add([items, items])
    neighbors = HammingNeighbors(n_neighbors=2).fit(items)
    for use in (
        lambda: tables.search(tables.codes([0]), 2),
        lambda: tables.within(tables.codes([0]), 2),
        lambda: neighbors.kneighbors(items),
        neighbors.kneighbors,
        neighbors.radius_neighbors,
    ):
        with pytest.raises(InputError, match="codes must be encoded as queries"):
            use()
