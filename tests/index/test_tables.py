"""Several tables: what is found equals brute force over the smallest distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import TablesIndex


def smallest(queries, items):
    """Smallest number of differing bits over the tables, pair by pair."""
    return [
        [
            min((query != item).sum() for query, item in zip(of_query, of_item, strict=True))
            for of_item in np.moveaxis(items, 1, 0)
        ]
        for of_query in np.moveaxis(queries, 1, 0)
    ]


def nearest(distances, ids, k, is_complete):
    pairs = sorted(zip(distances, ids, strict=True))
    if is_complete and k < len(pairs):
        return [pair for pair in pairs if pair[0] <= pairs[k - 1][0]]
    return pairs[:k]


def packed(tables):
    return [BinaryCodes.from_bits(bits) for bits in tables]


def pairs_of(found):
    """Items of each query as (distance, id)."""
    pairs = list(zip(found.distances.tolist(), found.ids.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def made(seed):
    """Few bits, so that ties abound; ids out of order, added in two lots."""
    rng = np.random.default_rng(seed)
    n_tables, n, n_bits = rng.integers(1, 5), rng.integers(2, 40), rng.integers(1, 14)
    items = rng.integers(0, 2, (n_tables, n, n_bits))
    ids = rng.permutation(5 * n)[:n]
    index = TablesIndex(int(n_bits), int(n_tables), kind="scan")
    cut = rng.integers(1, n)
    index.add(packed(items[:, :cut]), ids[:cut])
    index.add(packed(items[:, cut:]), ids[cut:])
    return rng, index, items, ids, rng.integers(0, 2, (n_tables, 3, n_bits))


@given(st.integers(0, 2**32), st.integers(1, 45), st.booleans())
def test_the_k_nearest_are_those_of_brute_force(seed, k, is_complete):
    _, index, items, ids, queries = made(seed)
    wanted = [nearest(row, ids.tolist(), k, is_complete) for row in smallest(queries, items)]
    if is_complete:
        found = index.search(packed(queries), k, ties="complete")
        assert (found.distances.dtype, found.ids.dtype) == (np.int32, np.int64)
        assert pairs_of(found) == wanted
        return
    distances, found_ids = index.search(packed(queries), k)
    assert (distances.dtype, found_ids.dtype) == (np.int32, np.int64)
    n_found = min(k, len(ids))
    assert (distances[:, n_found:] == 2147483647).all()
    assert (found_ids[:, n_found:] == -1).all()
    rows = zip(distances[:, :n_found].tolist(), found_ids[:, :n_found].tolist(), strict=True)
    assert [list(zip(*row, strict=True)) for row in rows] == wanted


@given(st.integers(0, 2**32), st.integers(1, 45), st.booleans())
def test_real_valued_queries_rank_by_the_largest_score_of_any_table(seed, k, is_filtered):
    rng, index, items, ids, _ = made(seed)
    weights = rng.integers(-2, 3, (len(items), 3, items.shape[2])).astype(np.float64)
    is_allowed = rng.random(len(ids)) < (0.5 if is_filtered else 2)
    scores, answer_ids = index.search_real(
        list(weights), k, allowed=ids[is_allowed] if is_filtered else None
    )
    largest = np.einsum("tqb,tnb->tqn", weights, 2.0 * items - 1).max(axis=0)
    n_places = min(k, len(ids))
    for q, row in enumerate(largest):
        pairs = sorted((-row[i], ids[i]) for i in np.flatnonzero(is_allowed))[:n_places]
        pairs += [(np.inf, -1)] * (n_places - len(pairs))
        assert list(zip(-scores[q], answer_ids[q], strict=True)) == pairs


@given(st.integers(0, 2**32), st.integers(0, 15))
def test_within_a_radius_is_every_item_that_a_table_has_there(seed, radius):
    _, index, items, ids, queries = made(seed)
    wanted = [
        sorted(pair for pair in zip(row, ids.tolist(), strict=True) if pair[0] <= radius)
        for row in smallest(queries, items)
    ]
    assert pairs_of(index.within(packed(queries), radius)) == wanted


@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans())
def test_removed_replaced_and_forbidden_items_are_not_found(seed, k, as_mask):
    rng, index, items, ids, queries = made(seed)
    index.remove(ids[:1])
    items[:, -1] = rng.integers(0, 2, items[:, -1].shape)
    index.upsert(packed(items[:, -1:]), ids[-1:])
    order = np.argsort(ids[1:])
    left, items = ids[1:][order], items[:, 1:][:, order]
    assert index.ids.tolist() == left.tolist()
    is_allowed = rng.integers(0, 2, len(left)).astype(bool)
    allowed = is_allowed if as_mask else left[is_allowed]
    found = index.search(packed(queries), k, "complete", allowed=allowed)
    near = smallest(queries, items[:, is_allowed])
    kept = left[is_allowed].tolist()
    assert pairs_of(found) == [nearest(row, kept, k, True) for row in near]
    found = index.within(packed(queries), 14, allowed=allowed)
    assert pairs_of(found) == [nearest(row, kept, len(kept), False) for row in near]


@pytest.mark.parametrize("kind", ["scan", "auto"])
def test_every_kind_finds_what_brute_force_over_many_items_does(rng, kind):
    items = rng.integers(0, 2, (3, 400, 20))
    index = TablesIndex(20, 3, kind=kind, n_threads=2)
    assert index.add(packed(items)).tolist() == list(range(400))
    queries, near = packed(items[:, :7]), smallest(items[:, :7], items)
    for k in (1, 10, 400):
        distances, ids = index.search(queries, k)
        for row, pairs in enumerate(zip(distances.tolist(), ids.tolist(), strict=True)):
            expected = nearest(near[row], range(400), k, False)
            assert list(zip(*pairs, strict=True)) == expected
    for radius in (0, 4, 20):
        expected = [
            [pair for pair in nearest(row, range(400), 400, False) if pair[0] <= radius]
            for row in near
        ]
        assert pairs_of(index.within(queries, radius)) == expected


def test_it_counts_and_returns_its_items(rng):
    tables = packed(rng.integers(0, 2, (2, 10, 9)))
    index = TablesIndex(9, 2, kind="scan")
    assert len(index) == 0
    assert index.search([codes[:1] for codes in tables], 2)[1].shape == (1, 0)
    index.add(tables)
    assert (len(index), index.n_bits, index.n_tables) == (10, 9, 2)
    assert (3 in index, 10 in index) == (True, False)
    assert index.codes([7, 2]) == [codes[[7, 2]] for codes in tables]
    index.remove([0])
    index.compact()
    assert index.codes() == [codes[1:] for codes in tables]
    assert repr(index) == "TablesIndex(n=9, n_bits=9, n_tables=2, kind='scan')"
    assert index.n_bytes >= 2 * 9 * 2


def bits(n, n_bits=8):
    return BinaryCodes.from_bits(np.zeros((n, n_bits), int))


REFUSED = {
    "one table": (lambda index: index.add([bits(2)]), "each of 2 tables, got 1 tables"),
    "no list": (lambda index: index.add(bits(2)), "each of 2 tables, got BinaryCodes"),
    "a number": (lambda index: index.search(5, 1), "each of 2 tables, got int 5"),
    "other sizes": (lambda index: index.add([bits(2), bits(3)]), r"got \[2, 3\]"),
    "other bits": (lambda index: index.add([bits(2), bits(2, 9)]), r"codes\[1\] must have 8 bits"),
    "id there": (lambda index: index.add([bits(1), bits(1)], [0]), "0 exists already"),
    "few ids": (lambda index: index.upsert([bits(1), bits(1)], [5, 6]), "2 ids for 1 codes"),
    "no such id": (lambda index: index.remove([0, 9]), "9 is not"),
    "k": (lambda index: index.search([bits(1), bits(1)], 0), "k must be"),
    "ties": (lambda index: index.search([bits(1), bits(1)], 1, "all"), "ties must be"),
    "radius": (lambda index: index.within([bits(1), bits(1)], -1), "radius must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_changes_nothing(case):
    index = TablesIndex(8, 2, kind="scan")
    index.add([bits(3), bits(3)])
    act, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        act(index)
    assert [len(codes) for codes in index.codes()] == [3, 3]
    assert index.add([bits(1), bits(1)]).tolist() == [3]


def test_no_tables_are_refused():
    with pytest.raises(InputError, match="n_tables must be an integer >= 1"):
        TablesIndex(8, 0)


def test_weights_must_be_those_of_every_table(rng):
    index = TablesIndex(4, n_tables=2)
    index.add(packed(rng.integers(0, 2, (2, 3, 4))))
    with pytest.raises(InputError, match="weights must be a list with the weights of each of 2"):
        index.search_real([np.ones((1, 4))], 1)
    with pytest.raises(InputError, match=r"queries must be as many in every table, got \[1, 2\]"):
        index.search_real([np.ones((1, 4)), np.ones((2, 4))], 1)
    assert TablesIndex(4, n_tables=2).search_real([np.ones((1, 4))] * 2, 1)[1].shape == (1, 0)
