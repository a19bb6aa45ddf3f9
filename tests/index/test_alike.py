"""An index in memory and a collection on disk do the same, and say the same when they refuse."""

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import Collection, HammingIndex

CODES = BinaryCodes(np.arange(40, dtype=np.uint8).reshape(20, 2), 16)


@pytest.fixture
def both(tmp_path):
    """The same items in an index and in a collection."""
    index = HammingIndex(16)
    with Collection.create(tmp_path / "c", 16) as collection:
        for store in (index, collection):
            store.add(CODES)
            store.remove([3, 4])
            store.upsert(CODES[:2], ids=[7, 500])
        yield index, collection


@pytest.mark.parametrize("item", [-1, 3, 7, 500, 501, 2**63, -(2**70), 1.0, "7", None, True])
def test_both_agree_on_what_is_in_them(both, item):
    index, collection = both
    assert (item in index) == (item in collection)
    assert (item in index) == (type(item) is int and item in {7, 500})


CHANGES = {
    "add an id that exists": lambda store: store.add(CODES[:1], ids=[7]),
    "add a negative id": lambda store: store.add(CODES[:1], ids=[-1]),
    "add too large an id": lambda store: store.add(CODES[:1], ids=[2**63 - 1]),
    "add an id twice": lambda store: store.add(CODES[:2], ids=[900, 900]),
    "add fewer ids": lambda store: store.add(CODES[:2], ids=[900]),
    "add floats": lambda store: store.add(CODES[:1], ids=[1.5]),
    "add other bits": lambda store: store.add(BinaryCodes(CODES.packed[:, :1], 8)),
    "add what is no code": lambda store: store.add(np.zeros((2, 2))),
    "upsert without ids": lambda store: store.upsert(CODES[:1], None),
    "remove what is not there": lambda store: store.remove([5, 3]),
    "remove twice": lambda store: store.remove([5, 5]),
    "codes of what is not there": lambda store: store.codes([5, 3]),
    "search with other bits": lambda store: store.search(BinaryCodes(CODES.packed[:, :1], 8), 1),
    "search for nothing": lambda store: store.search(CODES, 0),
    "search for 2**63": lambda store: store.search(CODES, 2**63),
    "search with unknown ties": lambda store: store.search(CODES, 1, ties="all"),
    "search with an unknown option": lambda store: store.search(CODES, 1, n_probes=3),
    "search with a short mask": lambda store: store.search(CODES, 1, allowed=np.ones(3, bool)),
    "search with a pool alone": lambda store: store.search(CODES, 1, pool=5),
    "within a negative radius": lambda store: store.within(CODES, -1),
    "configure an unknown kind": lambda store: store.configure("scam"),
    "configure an unknown option": lambda store: store.configure("ivf", n_list=3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_both_refuse_with_the_same_words_and_change_nothing(both, change):
    messages = []
    for store in both:
        before = store.codes(), store.ids.tolist()
        with pytest.raises(InputError) as error:
            change(store)
        messages.append(str(error.value))
        assert (store.codes(), store.ids.tolist()) == before
    assert messages[0] == messages[1]
    assert "\n" not in messages[0]


def test_both_give_fresh_ids_after_the_largest_there_ever_was(both):
    for store in both:
        assert store.add(CODES[:2]).tolist() == [501, 502]
        store.remove([501, 502])
        assert store.add(CODES[:1]).tolist() == [503]


@pytest.mark.parametrize("k", [19, 20, 10**9, 2**63 - 1])
def test_more_neighbors_than_items_are_as_many_as_there_are(both, k):
    for store in both:
        distances, ids = store.search(CODES[:2], k)
        assert distances.shape == ids.shape == (2, 19)
        assert (np.sort(ids, axis=1) == store.ids).all()


def test_a_radius_beyond_every_distance_is_no_trouble(both):
    for store in both:
        assert store.within(CODES[:2], 2**63 - 1).counts.tolist() == [19, 19]


def test_an_empty_index_returns_no_places():
    index = HammingIndex(16)
    distances, ids = index.search(CODES[:2], 5)
    assert distances.shape == ids.shape == (2, 0)
    assert index.within(CODES[:2], 5).counts.tolist() == [0, 0]
