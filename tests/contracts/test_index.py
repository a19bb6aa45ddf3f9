"""What every kind of index must return alike, and what a kind that may miss items still keeps.

An engine that is registered from outside, in a few lines of Python, goes through all of it too.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles.plain_engine import PlainEngine
from oracles.search import (
    BIT_LENGTHS,
    SHAPES,
    SIZES,
    Model,
    codes_like,
    distances_by_bits,
    model_of,
    nearest,
    nearest_with_ties,
    pairs_of_ragged,
    pairs_of_table,
    queries_about,
    within,
)
from rankbits import BinaryCodes, _native
from rankbits.errors import InputError
from rankbits.index import HammingIndex, engines
from rankbits.index.engines import auto, cache

KINDS = (*engines.names(), PlainEngine.name)
EXACT = (*engines.exact_names(), PlainEngine.name)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def _engines_of_any_size():
    """Else few items are scanned whatever the kind, and the planner waits before it tries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engines._ENGINES, PlainEngine.name, PlainEngine)
        patch.setattr(cache, "FEW", 0)
        patch.setattr(auto, "_MIN_ITEMS", 0)
        patch.setattr(auto, "_SHARE", 1000.0)
        yield


def built(kind, codes, ids=None):
    index = HammingIndex(codes.n_bits, kind)
    index.add(codes, ids)
    return index


def check_all_searches(index, model, queries, ks, radii, allowed=None, as_mask=None, n_threads=1):
    """Every way to search against the model; `as_mask` is the same filter as a mask."""
    ranked = model.ranked(queries, allowed)
    for filter_ in [allowed] if as_mask is None else [allowed, as_mask]:
        options = {"allowed": filter_, "n_threads": n_threads}
        for k in ks:
            found = index.search(queries, k, **options)
            assert found[0].shape == (len(queries), min(k, len(index)))
            assert pairs_of_table(found) == nearest(ranked, k)
            ties = index.search(queries, k, ties="complete", **options)
            assert pairs_of_ragged(ties) == nearest_with_ties(ranked, k)
        for radius in radii:
            found = index.within(queries, radius, **options)
            assert pairs_of_ragged(found) == within(ranked, radius)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("n_bits", BIT_LENGTHS)
def test_every_code_length_is_searched(dispatch, kind, n_bits):
    rng = np.random.default_rng(n_bits)
    n, shapes = (150, SHAPES) if n_bits < 500 else (70, ("few", "opposite"))
    for shape in shapes:
        codes = codes_like(shape, rng, n, n_bits)
        queries = queries_about(rng, codes, 5)
        radii = (0, n_bits // 3, n_bits - 1, n_bits)
        check_all_searches(built(kind, codes), model_of(codes), queries, (1, 7, 200), radii)


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=25)
@given(
    st.sampled_from(SIZES),
    st.sampled_from(BIT_LENGTHS),
    st.sampled_from(SHAPES),
    st.integers(0, 5),
    st.integers(1, 3),
    SEEDS,
)
@example(65, 128, "opposite", 2, 1, 0)
def test_any_small_case_is_searched(dispatch, kind, n, n_bits, shape, n_queries, n_threads, seed):
    rng = np.random.default_rng(seed)
    codes = codes_like(shape, rng, n, n_bits)
    ids = rng.choice(5 * n + 1, n, replace=False)
    queries = queries_about(rng, codes, n_queries)
    ks = (1, int(rng.integers(1, n + 2)), n + 1)
    radii = (0, int(rng.integers(0, n_bits + 1)), n_bits + 5)
    index, model = built(kind, codes, ids), model_of(codes, ids)
    check_all_searches(index, model, queries, ks, radii, n_threads=n_threads)


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=25)
@given(
    st.sampled_from(SIZES),
    st.sampled_from((8, 64, 100, 128, 256)),
    st.sampled_from(SHAPES),
    st.sampled_from(("none", "all", "one", "few", "most", "foreign")),
    SEEDS,
)
def test_a_filter_leaves_what_the_model_leaves(dispatch, kind, n, n_bits, shape, which, seed):
    rng = np.random.default_rng(seed)
    codes = codes_like(shape, rng, n, n_bits)
    ids = np.sort(rng.choice(5 * n + 1, n, replace=False))
    share = {"none": 0.0, "all": 1.0, "one": 0.0, "few": 0.1, "most": 0.9, "foreign": 0.5}[which]
    mask = rng.random(n) < share
    if which == "one" and n:
        mask[rng.integers(n)] = True
    allowed = rng.permutation(ids[mask])
    queries = queries_about(rng, codes, 3)
    index, model = built(kind, codes, ids), model_of(codes, ids)
    if which == "foreign":  # ids that are not there, and some that come twice
        allowed = np.concatenate([allowed, allowed[:2], [5 * n + 3, 2**62]])
    check_all_searches(index, model, queries, (1, n // 2 + 1), (n_bits // 3, n_bits), allowed, mask)


def changed(index, model, name, rng):
    """One change to both, of the kind that is named."""
    n = int(rng.integers(0, 90))
    codes = codes_like(rng.choice(SHAPES), rng, n, index.n_bits)
    if name == "add":
        model.upsert(codes, index.add(codes))
    elif name == "add as":
        free = np.setdiff1d(np.arange(400), model.ids)
        ids = rng.choice(free, min(n, len(free)), replace=False)
        index.add(codes[: len(ids)], ids)
        model.upsert(codes[: len(ids)], ids)
    elif name == "upsert":
        ids = rng.choice(400, n, replace=False)
        index.upsert(codes, ids)
        model.upsert(codes, ids)
    elif name == "remove":
        ids = rng.permutation(model.ids)[: rng.integers(0, len(model.ids) + 1)]
        index.remove(ids)
        model.remove(ids)
    elif name == "compact":
        index.compact()


CHANGES = ("add", "add as", "upsert", "remove", "compact", "search")


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(CHANGES), SEEDS), max_size=12),
    st.sampled_from((1, 12, 64, 128, 300)),
    st.integers(1, 3),
)
def test_any_changes_leave_the_collection_that_a_dictionary_would_be(
    dispatch, kind, changes, n_bits, n_threads
):
    index, model = HammingIndex(n_bits, kind), Model(n_bits)
    for name, seed in [*changes, ("search", 0)]:
        rng = np.random.default_rng(seed)
        changed(index, model, name, rng)
        assert len(index) == len(model.items)
        assert np.array_equal(index.ids, model.ids)
        if name == "search":
            queries = queries_about(rng, model.codes, 3)
            mask = rng.random(len(model.items)) < 0.6
            allowed = model.ids[mask]
            check_all_searches(index, model, queries, (1, 40), (n_bits // 3,), None, None)
            check_all_searches(
                index, model, queries, (9,), (n_bits // 2,), allowed, mask, n_threads
            )
            assert index.codes() == model.codes


def histories(codes, ids, rng, kind):
    """Indexes that hold the same items and came to it in different ways."""
    n, n_bits = len(codes), codes.n_bits
    yield "at once", built(kind, codes, ids)
    order = rng.permutation(n)
    yield "in another order", built(kind, codes[order], ids[order])
    pieces = HammingIndex(n_bits, kind)
    for some in np.array_split(order, 13):
        pieces.add(codes[some], ids[some])
    yield "in pieces", pieces
    replaced = built(kind, codes_like("uniform", rng, n, n_bits), ids)
    replaced.upsert(codes[order[::2]], ids[order[::2]])
    replaced.upsert(codes[order[1::2]], ids[order[1::2]])
    yield "replaced", replaced
    thinned = HammingIndex(n_bits, kind)
    others = np.setdiff1d(np.arange(3 * n), ids)
    for some, more in zip(np.array_split(order, 5), np.array_split(others, 5), strict=True):
        thinned.add(codes[some], ids[some])
        thinned.add(codes_like("near", rng, len(more), n_bits), more)
    thinned.remove(others)
    yield "among others since removed", thinned
    compacted = built(kind, codes[order], ids[order])
    compacted.add(codes, ids + 10 * n)
    compacted.remove(ids + 10 * n)
    compacted.compact()
    yield "compacted", compacted


@pytest.mark.parametrize(("n", "n_bits", "shape"), [
    (6000, 64, "near"),
    (5000, 128, "opposite"),
    (4500, 32, "few"),
    (4200, 256, "uniform"),
])  # fmt: skip
def test_results_depend_on_nothing_but_the_items(n, n_bits, shape):
    """Whatever the kind, the history, the instruction set and the number of threads."""
    rng = np.random.default_rng(n)
    codes = codes_like(shape, rng, n, n_bits)
    ids = rng.choice(3 * n, n, replace=False)
    queries, k, radius = queries_about(rng, codes, 9), 100, n_bits // 4
    ranked = model_of(codes, ids).ranked(queries)
    expected = nearest(ranked, k), within(ranked, radius)
    for kind in EXACT:
        for history, index in histories(codes, ids, rng, kind):
            for level in _native.dispatch_levels():
                for n_threads in (1, 3):
                    with _native.dispatched(level):
                        near = pairs_of_table(index.search(queries, k, n_threads=n_threads))
                        all_ = pairs_of_ragged(index.within(queries, radius, n_threads=n_threads))
                    assert (near, all_) == expected, (kind, history, level, n_threads)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("n_queries", [1, 2, 3, 5])
@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_few_queries_are_split_over_threads_by_items(dispatch, kind, n_queries, n_threads):
    rng = np.random.default_rng(n_queries)
    codes = codes_like("near", rng, 9000, 64)
    queries = queries_about(rng, codes, n_queries)
    index, model = built(kind, codes), model_of(codes)
    check_all_searches(index, model, queries, (1, 500), (3,), n_threads=n_threads)


@pytest.mark.parametrize("kind", EXACT)
def test_more_queries_than_a_block_are_all_answered(dispatch, kind):
    rng = np.random.default_rng(5)
    codes = codes_like("few", rng, 300, 48)
    queries = queries_about(rng, codes, 523)
    index, model = built(kind, codes), model_of(codes)
    for n_threads in (1, 2):
        found = index.search(queries, 5, n_threads=n_threads)
        assert pairs_of_table(found) == nearest(model.ranked(queries), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_index_finds_nothing(dispatch, kind):
    index, queries = HammingIndex(12, kind), codes_like("uniform", np.random.default_rng(0), 3, 12)
    assert pairs_of_table(index.search(queries, 4)) == [[], [], []]
    assert pairs_of_ragged(index.search(queries, 4, ties="complete")) == [[], [], []]
    assert pairs_of_ragged(index.within(queries, 12)) == [[], [], []]
    assert pairs_of_table(index.search(queries, 4, allowed=[])) == [[], [], []]
    assert pairs_of_table(index.search(queries, 4, allowed=np.empty(0, bool))) == [[], [], []]


@pytest.mark.parametrize("kind", KINDS)
def test_no_queries_are_an_empty_answer(dispatch, kind):
    index = built(kind, codes_like("uniform", np.random.default_rng(0), 70, 12))
    none = np.empty((0, 2), np.uint8)
    distances, ids = index.search(none, 4)
    assert distances.shape == ids.shape == (0, 4)
    assert (distances.dtype, ids.dtype) == (np.int32, np.int64)
    for found in (index.search(none, 4, ties="complete"), index.within(none, 3)):
        assert pairs_of_ragged(found) == []
        assert found.offsets.tolist() == [0]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(
    st.sampled_from((*SIZES, 3000)),
    st.sampled_from((7, 64, 128, 300)),
    st.sampled_from(SHAPES),
    st.integers(1, 3),
    SEEDS,
)
def test_what_is_found_is_there_allowed_in_order_and_as_far_as_said(
    dispatch, kind, n, n_bits, shape, n_threads, seed
):
    """All that can be asked of a kind that may miss items."""
    rng = np.random.default_rng(seed)
    codes = codes_like(shape, rng, n, n_bits)
    index = built(kind, codes)
    gone = np.flatnonzero(rng.random(n) < 0.2)
    index.remove(gone)
    mask = rng.random(len(index)) < 0.7
    queries = queries_about(rng, codes, 3)
    distance = distances_by_bits(queries, codes)
    for allowed, may in ((None, index.ids), (mask, index.ids[mask])):
        options = {"allowed": allowed, "n_threads": n_threads}
        radius = n_bits // 3
        found = [
            (pairs_of_table(index.search(queries, 5, **options)), n_bits),
            (pairs_of_ragged(index.search(queries, 5, ties="complete", **options)), n_bits),
            (pairs_of_ragged(index.within(queries, radius, **options)), radius),
        ]
        for rows, reach in found:
            for q, row in enumerate(rows):
                assert row == sorted(set(row))
                assert all(item in may and distance[q, item] == d for d, item in row)
                assert all(d <= reach for d, _ in row)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_search_finds_the_same_again(dispatch, kind):
    rng = np.random.default_rng(2)
    codes = codes_like("near", rng, 5000, 64)
    queries = queries_about(rng, codes, 6)
    first, second = built(kind, codes), built(kind, codes)
    found = pairs_of_table(first.search(queries, 10, n_threads=1))
    assert pairs_of_table(first.search(queries, 10, n_threads=2)) == found
    assert pairs_of_table(second.search(queries, 10, n_threads=3)) == found


@pytest.mark.parametrize("kind", KINDS)
def test_codes_that_come_out_of_an_index_are_of_the_side_of_those_that_went_in(kind):
    codes = codes_like("uniform", np.random.default_rng(0), 70, 12)
    items, queries = (BinaryCodes(codes.packed, 12, "a", side) for side in ("items", "queries"))
    index = built(kind, items)
    for use in (lambda: index.add(queries), lambda: index.upsert(queries, np.arange(70))):
        with pytest.raises(InputError, match="codes must be encoded as items, got codes for quer"):
            use()
    assert (index.side, index.codes().side, index.codes([3, 5]).side) == ("items",) * 3
    for search in (index.search, index.within, index.tune):
        search(queries, 3)
        with pytest.raises(InputError, match="codes must be encoded as queries, got codes for it"):
            search(index.codes([3, 5]), 3)
    index.search_real(np.ones((1, 12)), 3)
    unsided = built(kind, codes)
    assert (unsided.side, unsided.codes().side) == (None, None)
    unsided.search(unsided.codes([3, 5]), 3)
