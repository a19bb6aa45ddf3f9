"""Engines are built once for a segment and its options, and live as long as the segment."""

import gc
import weakref

import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import HammingIndex, engines
from rankbits.index.engines import cache


@pytest.fixture
def index(rng, monkeypatch):
    monkeypatch.setattr(cache, "FEW", 0)
    index = HammingIndex(64, "ivf", n_lists=7)
    index.add(BinaryCodes(rng.integers(0, 256, (700, 8), dtype=np.uint8), 64))
    return index


def built(index):
    """All engines there are, oldest first."""
    return [e for of in index._searcher._cache._engines.values() for e in of.values()]


def test_an_engine_serves_every_search_with_the_options_it_was_built_with(index):
    for n_probes in (1, 3, 7):
        index.search(index.codes()[:2], 3, n_probes=n_probes)
    index.configure(n_probes=5)
    index.search(index.codes()[:2], 3)
    assert [engine.n_lists for engine in built(index)] == [7]


def test_another_number_of_lists_is_another_engine(index):
    index.search(index.codes()[:2], 3)
    index.configure(n_lists=11)
    index.search(index.codes()[:2], 3)
    index.configure("scan")
    index.search(index.codes()[:2], 3)
    assert [getattr(engine, "n_lists", None) for engine in built(index)] == [7, 11, None]


def test_removing_items_builds_nothing_anew_and_compaction_forgets(index):
    index.search(index.codes()[:2], 3)
    before = built(index)
    index.remove([0, 1])
    assert 0 not in index.search(index.codes()[:2], 3, n_probes=7)[1]
    assert built(index) == before
    engine = weakref.ref(before.pop())
    index.compact()
    index.search(index.codes()[:2], 3)
    gc.collect()
    assert engine() is None


def test_memory_of_engines_is_counted(index):
    before = index.n_bytes
    index.search(index.codes()[:2], 3)
    assert index.n_bytes == before + built(index)[0].n_bytes > before


def test_options_of_another_kind_are_named():
    with pytest.raises(InputError, match="kind 'scan' has no option 'n_lists'; its options: none"):
        HammingIndex(64, "scan", n_lists=4)
    with pytest.raises(InputError, match="'n_list'; its options: n_lists, n_probes"):
        HammingIndex(64, "ivf", n_list=4)
    with pytest.raises(InputError, match="a search of kind 'ivf' has no option 'n_lists'"):
        HammingIndex(64, "ivf").search(np.zeros((1, 8), np.uint8), 1, n_lists=4)
    with pytest.raises(InputError, match="copies must be True or False"):
        HammingIndex(64, "mih", copies="no")


def test_every_engine_says_what_it_is():
    assert engines.names() == ("auto", "scan", "mih", "ivf")
    assert engines.exact_names() == ("auto", "scan", "mih")
    for name in engines.names():
        engine = engines.get(name)
        assert engine.name == name
        assert len(engine.summary) > 10
        assert engine.__doc__
