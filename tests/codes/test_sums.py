"""Codes that stand for sums: bits and entries, and the search for the best code."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits.codes.sums import (
    SumSearch,
    bits_to_entries,
    count_books,
    draw_changes,
    entries_to_bits,
    usable_entries,
)


def error(row, vectors, entries, along):
    """|x - s|² + η (x'(x - s))², from the vectors themselves."""
    left = row - sum(vectors[16 * book + entry] for book, entry in enumerate(entries))
    return left @ left + along * (row @ left) ** 2


def best_by_enumeration(row, vectors, n_bits, along):
    usable = usable_entries(n_bits).reshape(-1, 16)
    codes = product(*(np.flatnonzero(of_book) for of_book in usable))
    return min(error(row, vectors, code, along) for code in codes)


def draw(rng, n_bits, n_rows=12, n_features=6):
    vectors = rng.standard_normal((16 * count_books(n_bits), n_features))
    return rng.standard_normal((n_rows, n_features)), vectors


def improve(rows, vectors, search, n_threads=1):
    start = np.zeros((len(rows), len(vectors) // 16), np.uint8)
    return search.improve(rows @ vectors.T, (rows**2).sum(axis=1), start, n_threads)


@given(st.integers(1, 70), st.integers(0, 2**32))
def test_bits_become_entries_and_come_back(n_bits, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (5, n_bits), dtype=np.uint8)
    entries = bits_to_entries(bits)
    assert entries.shape == (5, count_books(n_bits))
    assert np.array_equal(entries_to_bits(entries, n_bits), bits)
    named = 16 * np.arange(entries.shape[1]) + entries
    assert usable_entries(n_bits)[named].all()


@pytest.mark.parametrize("n_bits", [1, 3, 4, 7, 8])
@pytest.mark.parametrize("along", [0.0, 3.0])
def test_with_enough_restarts_the_search_finds_the_best_of_all_codes(dispatch, rng, n_bits, along):
    rows, vectors = draw(rng, n_bits)
    search = SumSearch.of_vectors(vectors, n_bits, along, n_restarts=300)
    for row, entries in zip(rows, improve(rows, vectors, search), strict=True):
        best = best_by_enumeration(row, vectors, n_bits, along)
        assert error(row, vectors, entries, along) == pytest.approx(best, abs=1e-9)


def test_no_single_entry_makes_a_code_better_and_restarts_never_make_it_worse(dispatch, rng):
    rows, vectors = draw(rng, 40, n_features=20)
    errors = []
    for n_restarts in (0, 5, 50):
        search = SumSearch.of_vectors(vectors, 40, 3.0, n_restarts, n_sweeps=100)
        entries = improve(rows, vectors, search)
        errors.append(
            [error(row, vectors, code, 3.0) for row, code in zip(rows, entries, strict=True)]
        )
        for row, code, least in zip(rows, entries, errors[-1], strict=True):
            for book, entry in product(range(10), range(16)):
                other = code.copy()
                other[book] = entry
                assert error(row, vectors, other, 3.0) >= least - 1e-9
    assert (np.diff(errors, axis=0) <= 1e-12).all()
    assert np.mean(errors[2]) < np.mean(errors[0])


def test_codes_are_the_same_whatever_the_instruction_set_threads_and_other_rows(rng):
    from rankbits import _native

    rows, vectors = draw(rng, 30, n_rows=200, n_features=16)
    search = SumSearch.of_vectors(vectors, 30, 3.0, n_restarts=6)
    expected = improve(rows, vectors, search)
    for name in _native.dispatch_levels():
        with _native.dispatched(name):
            assert np.array_equal(improve(rows, vectors, search, n_threads=3), expected)
    shares, squares = rows @ vectors.T, (rows**2).sum(axis=1)
    start = np.zeros((1, 8), np.uint8)
    alone = [search.improve(shares[[i]], squares[[i]], start)[0] for i in range(20)]
    assert np.array_equal(alone, expected[:20])


def test_spare_bits_stay_zero(rng):
    rows, vectors = draw(rng, 9, n_rows=300)
    entries = improve(rows, vectors, SumSearch.of_vectors(vectors, 9, 0.0, n_restarts=20))
    assert set(entries[:, 2]) == {0, 8}
    assert (draw_changes(9, 500)[..., 0] == 2).any()
    assert set(draw_changes(9, 500)[draw_changes(9, 500)[..., 0] == 2][:, 1]) == {0, 8}


def test_arrays_that_do_not_fit_are_refused(rng):
    rows, vectors = draw(rng, 8)
    search = SumSearch.of_vectors(vectors, 8, 0.0, n_restarts=1)
    shares, squares, start = rows @ vectors.T, np.ones(12), np.zeros((12, 2), np.uint8)
    for arguments, sentence in (
        ((shares[:, 1:], squares, start), "shares must have shape"),
        ((shares, squares[1:], start), "squares must have shape"),
        ((shares, squares, start + 16), "entries must be below 16"),
        ((shares, squares, start[:, :1]), "products must have shape"),
    ):
        with pytest.raises(ValueError, match=sentence):
            search.improve(*arguments)
