"""Codes know whether they are for queries or for items, and each is taken for its own side only."""

import pickle

import numpy as np
import pytest

import rankbits
from oracles.counting import random_codes
from rankbits import BinaryCodes, affinity
from rankbits.codes import check_sides, files, hamming_distances
from rankbits.errors import FileFormatError, InputError

SIDES = [None, "items", "queries"]
ITEMS_AS_QUERIES = r"queries must be encoded as queries, got codes for items.*encode_queries\(X\)"
QUERIES_AS_ITEMS = r"database must be encoded as items, got codes for queries.*hasher\.encode\(X\)"


def codes_for(rng, side, n=6, model="a"):
    return BinaryCodes(random_codes(rng, n, 12).packed, 12, model, side)


@pytest.mark.parametrize("side", SIDES)
def test_the_side_survives_slices_pickles_and_every_format(rng, side, tmp_path):
    codes = codes_for(rng, side)
    parts = (codes[:2], codes[3], codes[[1, 5]], codes[np.arange(6) > 2], next(iter(codes)))
    for same in (*parts, pickle.loads(pickle.dumps(codes)), BinaryCodes.concatenate([codes] * 2)):
        assert same.side == side
    for ending in files.ENDINGS:
        for model in (None, "a"):
            path = tmp_path / f"codes{ending}"
            BinaryCodes(codes.packed, 12, model, side).save(path)
            back = BinaryCodes.load(path)
            assert (back, back.model, back.side) == (codes, model, side)


def test_the_side_is_shown_and_equality_looks_at_the_bits_alone(rng):
    codes = codes_for(rng, "queries")
    assert repr(codes) == "BinaryCodes(n=6, n_bits=12, side='queries')"
    assert repr(BinaryCodes(codes.packed, 12)) == "BinaryCodes(n=6, n_bits=12)"
    assert codes == BinaryCodes(codes.packed, 12, side="items")


def test_an_unknown_side_is_refused(rng, tmp_path):
    with pytest.raises(InputError, match="side must be one of items, queries; got 'both'"):
        codes_for(rng, "both")
    path = tmp_path / "codes.npy"
    codes_for(rng, "items").save(path)
    path.write_bytes(path.read_bytes().replace(b"side=items", b"side=itemz"))
    with pytest.raises(FileFormatError, match="says that codes are for 'itemz'"):
        BinaryCodes.load(path)


def test_codes_of_two_sides_are_not_joined(rng):
    items, queries, either = (codes_for(rng, side) for side in ("items", "queries", None))
    assert BinaryCodes.concatenate([either, items]).side == "items"
    with pytest.raises(InputError, match="one side, got codes of items and of queries"):
        BinaryCodes.concatenate([either, items, queries])


COMPARISONS = {
    "hamming_distances": hamming_distances,
    "check_sides": check_sides,
    "count_ties": lambda q, d: rankbits.count_ties(q, d, same_class(q, d)),
    "evaluate": lambda q, d: rankbits.evaluate(q, d, same_class(q, d)),
    "LGAP": lambda q, d: rankbits.evaluate(q, d, same_class(q, d), ["LGAP@r2"]),
}


def same_class(queries, database):
    return affinity.classes(np.arange(len(queries)) % 2, np.arange(len(database)) % 2)


@pytest.mark.parametrize("name", COMPARISONS)
def test_each_comparison_takes_query_codes_as_queries_and_item_codes_as_database(rng, name):
    items, queries, either = (codes_for(rng, side) for side in ("items", "queries", None))
    compare = COMPARISONS[name]
    for pair in ((queries, items), (queries, either), (either, items), (either, either)):
        compare(*pair)
    for pair in ((items, items), (items, either)):
        with pytest.raises(InputError, match=ITEMS_AS_QUERIES):
            compare(*pair)
    for pair in ((queries, queries), (either, queries)):
        with pytest.raises(InputError, match=QUERIES_AS_ITEMS):
            compare(*pair)


def test_a_querys_own_item_is_left_out_of_lgap_whatever_the_sides(rng):
    codes = random_codes(rng, 20, 6)
    relation = affinity.classes(np.arange(20) % 3, np.arange(20) % 3)
    sided = [BinaryCodes(codes.packed, 6, "a", side) for side in ("queries", "items")]
    plain = rankbits.evaluate(codes, codes, relation, ["LGAP@r2"], exclude_self=True)
    apart = rankbits.evaluate(*sided, relation, ["LGAP@r2"], exclude_self=True)
    assert plain.mean == apart.mean
