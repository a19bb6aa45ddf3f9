"""A collection in shards answers as one index with all items, whatever dies on the way."""

import os
import shutil
import signal
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from clusters import Killer
from rankbits import BinaryCodes, distributed
from rankbits.codes import Queries
from rankbits.distributed import _holders
from rankbits.errors import InputError, RankbitsError
from rankbits.index import Collection, HammingIndex, asymmetric, vectors, weighted_bits

pytestmark = pytest.mark.slow

N, N_BITS = 3000, 18


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(5)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (N, N_BITS)))
    return codes, rng.permutation(10 * N)[:N]


@pytest.fixture(scope="module")
def one(items):
    index = HammingIndex(N_BITS)
    index.add(*items)
    return index


@pytest.fixture(scope="module")
def queries():
    rng = np.random.default_rng(6)
    return BinaryCodes.from_bits(rng.integers(0, 2, (40, N_BITS)))


def make(folder, items, n_shards=3, by="hash"):
    bounds = distributed.even_bounds(items[1], n_shards) if by == "range" else None
    distributed.create_index(folder, N_BITS, n_shards, by=by, bounds=bounds)
    with distributed.LocalShards(folder) as shards:
        shards.add(*items)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory, items):
    return make(tmp_path_factory.mktemp("sharded") / "index", items)


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "index")
    return tmp_path / "index"


def assert_same(answer, expected):
    for column, expected_column in zip(answer, expected, strict=True):
        assert column.dtype == expected_column.dtype
        assert np.array_equal(column, expected_column)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("by", ["hash", "range"])
def test_every_search_equals_that_of_one_index(
    cluster, items, one, queries, tmp_path, by, replicas
):
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((9, N_BITS))
    some_ids = rng.choice(10 * N, 900, replace=False)  # of which most are no items
    mask = rng.random(N) < 0.05
    folder = make(tmp_path / "index", items, by=by)
    with distributed.index(folder, replicas=replicas) as index:
        assert len(index) == N
        assert np.array_equal(index.ids, one.ids)
        assert index.codes(items[1][:50]) == items[0][:50]
        for k in (1, 10, N + 5):
            assert_same(index.search(queries, k), one.search(queries, k))
            assert_same(index.search_real(weights, k), one.search_real(weights, k))
            complete = index.search(queries, k, ties="complete")
            assert_same(complete, one.search(queries, k, ties="complete"))
        for radius in (0, 4, N_BITS):
            assert_same(index.within(queries, radius), one.within(queries, radius))
        for allowed in (some_ids, mask, items[1][:3], np.empty(0, np.int64)):
            expected = one.search(queries, 20, allowed=allowed)
            assert_same(index.search(queries, 20, allowed=allowed), expected)
            expected = one.within(queries, 7, allowed=allowed)
            assert_same(index.within(queries, 7, allowed=allowed), expected)
            expected = one.search_real(weights, 20, allowed=allowed)
            assert_same(index.search_real(weights, 20, allowed=allowed), expected)
        assert_same(index.search(queries[:0], 3), one.search(queries[:0], 3))
        rows, forms = (
            rng.standard_normal((10 * N, 5)),
            Queries(BinaryCodes.from_logits(weights), weights, rng.standard_normal((9, 5))),
        )
        finer = (vectors(rows, similarity="ip"), asymmetric(), weighted_bits(np.arange(N_BITS)))
        for kind, rerank in product(("bits", "weights"), finer):
            settings = {"by": kind, "rerank": rerank, "pool": 60}
            assert_same(index.search(forms, 8, **settings), one.search(forms, 8, **settings))
        assert_same(index.search(queries, 5, within=4), one.search(queries, 5, within=4))


def test_queries_in_many_blocks(cluster, monkeypatch, folder, one, queries):
    from rankbits.distributed import _index

    monkeypatch.setattr(_index, "_BLOCK_QUERIES", 3)
    with distributed.index(folder, replicas=2) as index:
        assert_same(index.search(queries, 5), one.search(queries, 5))
        assert_same(index.within(queries, 5), one.within(queries, 5))


def test_factors_and_their_correction(cluster, items, tmp_path):
    codes, ids = items
    rng = np.random.default_rng(8)
    factors = rng.integers(0, 256, (N, 2), np.uint8)
    correction, weights = rng.random((3, 256)), rng.standard_normal((4, N_BITS))
    one = HammingIndex(N_BITS, factors=True)
    one.add(codes, ids, factors=factors)
    distributed.create_index(tmp_path / "index", N_BITS, 2, factors=True)
    with distributed.index(tmp_path / "index", writable=True) as index:
        index.add(codes, ids, factors=factors)
        answer = index.search_real(weights, 9, correction=correction)
    assert_same(answer, one.search_real(weights, 9, correction=correction))


def test_an_ordinary_collection_is_one_shard(cluster, one, queries, tmp_path):
    one.save(tmp_path / "index")
    with distributed.index(tmp_path / "index", replicas=2) as index:
        assert index.n_shards == 1
        assert_same(index.search(queries, 10), one.search(queries, 10))


def test_changes_go_to_the_owner_and_equal_those_of_one_index(cluster, copied, items, one, queries):
    expected = HammingIndex(N_BITS)
    expected.add(*items)
    more = BinaryCodes.from_bits(np.random.default_rng(9).integers(0, 2, (200, N_BITS)))
    with distributed.index(copied, writable=True) as index:
        assert np.array_equal(index.add(more), expected.add(more))
        for target in (index, expected):
            target.remove(items[1][:100])
            target.upsert(more, items[1][50:250])
        assert_same(index.search(queries, 30), expected.search(queries, 30))
        index.compact()
        assert int(items[1][0]) not in index
        assert int(items[1][60]) in index
        assert len(index) == len(expected)
    with distributed.LocalShards(copied) as shards:  # the folder alone says the same
        assert len(shards) == len(expected)


def test_changes_that_are_refused_change_nothing(cluster, copied, items):
    codes, ids = items
    with distributed.index(copied, writable=True) as index:
        new = np.array([10 * N + 1, int(ids[0])])
        with pytest.raises(InputError, match=f"ids must be new, {ids[0]} exists already"):
            index.add(codes[:2], new)
        with pytest.raises(InputError, match=f"items that exist, {10 * N + 1} is not"):
            index.remove(new)
        with pytest.raises(InputError, match="18 bits as the index has, got 24"):
            index.add(BinaryCodes.from_bits(np.ones((1, 24))))
        assert len(index) == N
    with (
        distributed.index(copied) as index,
        pytest.raises(InputError, match="writable must be True"),
    ):
        index.remove(ids[:1])


def test_what_is_acknowledged_survives_the_death_of_its_holder(cluster, copied, items):
    codes, _ = items
    with distributed.index(copied, writable=True) as index:
        for step in range(2):
            ids = index.add(codes[:10])
            for pid in cluster.workers("ShardHolder"):
                os.kill(pid, signal.SIGKILL)
            assert index.codes(ids) == codes[:10]
            assert len(index) == N + 10 * (step + 1)


def test_holders_killed_at_random_change_nothing(cluster, copied, items, one, queries, rng):
    expected = HammingIndex(N_BITS)
    expected.add(*items)
    with (
        distributed.index(copied, writable=True, replicas=2) as index,
        Killer(cluster, rng, 0.05, busy_with="ShardHolder", most=5) as killer,
    ):
        for step in range(12):
            rows = slice(50 * step, 50 * step + 50)
            codes, ids = items[0][rows], np.arange(10 * N + 50 * step, 10 * N + 50 * step + 50)
            for target in (index, expected):
                target.add(codes, ids)
                target.remove(items[1][rows])
            assert_same(index.search(queries, 20), expected.search(queries, 20))
        n_killed = killer.n_sent
    assert n_killed > 0
    with distributed.index(copied) as index:
        assert np.array_equal(index.ids, expected.ids)
        assert index.codes() == expected.codes()


def test_a_node_removed_while_it_is_searched(cluster, folder, one, queries):
    with distributed.index(folder, replicas=2) as index:
        expected = one.search(queries, 10)
        assert_same(index.search(queries, 10), expected)
        cluster.remove_node()
        try:
            for _ in range(5):
                assert_same(index.search(queries, 10), expected)
        finally:
            cluster.add_node()


def stop_one_holder(cluster, index, one, queries):
    """Search while the process of a shard stands still."""
    stuck = cluster.workers("ShardHolder")[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
        for _ in range(2):
            assert_same(index.search(queries, 10), one.search(queries, 10))
    finally:
        os.kill(stuck, signal.SIGCONT)


def test_a_holder_that_stops_is_overtaken_by_its_replica(
    cluster, monkeypatch, folder, one, queries
):
    monkeypatch.setattr(_holders, "_LATE_SECONDS", 0.4)
    with distributed.index(folder, replicas=2) as index:
        index.search(queries, 10)
        stop_one_holder(cluster, index, one, queries)


def test_a_holder_that_stops_while_its_replica_moves_is_overtaken(
    cluster, monkeypatch, folder, one, queries
):
    monkeypatch.setattr(_holders, "_LATE_SECONDS", 0.4)
    cluster.remove_node()  # of which Ray will learn in some seconds
    try:
        with distributed.index(folder, replicas=2) as index:
            for _ in range(20):
                assert_same(index.search(queries, 10), one.search(queries, 10))
            stop_one_holder(cluster, index, one, queries)
    finally:
        cluster.add_node()


def test_a_damaged_shard_is_named(cluster, copied):
    with Collection.open(copied / "shard-00001", writable=True) as shard:
        shard.seal()
    segment = next((copied / "shard-00001").rglob("*.seg*"), None) or max(
        (path for path in (copied / "shard-00001").rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size * ("sqlite" not in path.name),
    )
    content = bytearray(segment.read_bytes())
    content[-100] ^= 1
    segment.write_bytes(content)
    with pytest.raises(RankbitsError, match="shard-00001"):
        distributed.index(copied)


def test_a_missing_shard_is_named(cluster, copied):
    shutil.rmtree(copied / "shard-00002")
    with pytest.raises(InputError, match=r"there is no .*shard-00002"):
        distributed.index(copied)


def test_shards_of_other_lengths_or_models_are_refused(cluster, copied, items):
    shutil.rmtree(copied / "shard-00001")
    Collection.create(copied / "shard-00001", 24).close()
    with pytest.raises(
        InputError, match=r"shards must have the same bits, .* has 18 and .* has 24"
    ):
        distributed.index(copied)
    for place, model in ((1, "one"), (2, "two")):
        shutil.rmtree(copied / f"shard-0000{place}")
        with Collection.create(copied / f"shard-0000{place}", N_BITS) as shard:
            shard.add(BinaryCodes(items[0].packed, N_BITS, model), items[1])
    with pytest.raises(InputError, match=r"come from model one and .*shard-00002 from model two"):
        distributed.index(copied)


def test_only_one_writes(cluster, monkeypatch, copied):
    monkeypatch.setattr(_holders, "_LOCK_SECONDS", 0.5)
    script = (
        "import sys\nfrom rankbits.index import Collection\n"
        "c = Collection.open(sys.argv[1], writable=True)\nprint('open', flush=True)\ninput()"
    )
    command = [sys.executable, "-c", script, str(copied / "shard-00000")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(InputError, match=r"one writer at a time, .*shard-00000"):
            distributed.index(copied, writable=True)
        other.communicate(b"\n")


def test_an_index_that_is_closed_says_so(cluster, folder, queries):
    index = distributed.index(folder)
    index.close()
    with pytest.raises(InputError, match="the index is closed"):
        index.search(queries, 1)
