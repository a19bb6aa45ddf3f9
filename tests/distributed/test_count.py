"""Counting on a cluster gives the bits of counting on one machine, whatever dies on the way."""

import os
import signal

import numpy as np
import pytest

import rankbits
from clusters import Killer
from odd_shards import N_BITS, DeadlyShard, SlowShard, StuckShard, codes_of
from rankbits import BinaryCodes, affinity, distributed
from rankbits.distributed import _jobs, _ranges
from rankbits.errors import ClusterError, InputError

pytestmark = pytest.mark.slow


@pytest.fixture
def small_tasks(monkeypatch):
    """Ranges of a few hundred items, so that small data make many tasks."""
    monkeypatch.setattr(_ranges, "_USUAL_PAIRS", 1)
    monkeypatch.setattr(_ranges, "_GRAIN", 128)


@pytest.fixture
def data(rng):
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (7, N_BITS)))
    sizes = (900, 1, 512, 2000)
    return queries, [BinaryCodes.from_bits(rng.integers(0, 2, (n, N_BITS))) for n in sizes]


def save_all(folder, parts, name, ending=".npy"):
    paths = [os.fspath(folder / f"{name}{i}{ending}") for i in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        part.save(path) if isinstance(part, BinaryCodes) else np.save(path, part)
    return paths


def assert_same(hist, expected):
    assert np.array_equal(hist.levels, expected.levels)
    assert hist.counts.dtype == expected.counts.dtype
    assert np.array_equal(hist.counts, expected.counts)


@pytest.mark.parametrize("ending", [".npy", ".parquet", ".npz"])
def test_classes_in_every_format(cluster, small_tasks, data, rng, tmp_path, ending):
    queries, shards = data
    query_labels = rng.integers(0, 3, len(queries))
    labels = [rng.integers(0, 3, len(shard)) for shard in shards]
    hist = distributed.count_ties(
        queries,
        save_all(tmp_path, shards, "codes", ending),
        query_labels=query_labels,
        database_labels=save_all(tmp_path, labels, "labels"),
    )
    whole = BinaryCodes.concatenate(shards)
    relevance = affinity.classes(query_labels, np.concatenate(labels))
    assert_same(hist, rankbits.count_ties(queries, whole, relevance))


@pytest.mark.parametrize("graded", [False, True])
def test_tags_and_the_queries_themselves_left_out(
    cluster, small_tasks, data, rng, tmp_path, graded
):
    queries, shards = data
    query_tags = rng.integers(0, 2, (len(queries), 5))
    tags = [rng.integers(0, 2, (len(shard), 5)) for shard in shards]
    own = rng.integers(-1, sum(map(len, shards)), len(queries))
    hist = distributed.count_ties(
        queries,
        save_all(tmp_path, shards, "codes"),
        own,
        query_tags=query_tags,
        database_tags=save_all(tmp_path, tags, "tags"),
        graded=graded,
    )
    relevance = affinity.tags(query_tags, np.concatenate(tags), graded=graded)
    whole = BinaryCodes.concatenate(shards)
    assert_same(hist, rankbits.count_ties(queries, whole, relevance, own))


def test_judgements_of_items_of_all_shards(cluster, small_tasks, data, rng, tmp_path):
    queries, shards = data
    n_items = sum(map(len, shards))
    pairs = rng.choice(len(queries) * n_items, 200, replace=False)
    rows = np.column_stack([pairs // n_items, pairs % n_items, rng.integers(0, 5, 200)])
    hist = distributed.count_ties(queries, save_all(tmp_path, shards, "codes"), judgements=rows)
    relevance = affinity.judgements(rows, len(queries), n_items)
    assert_same(hist, rankbits.count_ties(queries, BinaryCodes.concatenate(shards), relevance))


def slow_run(n_shards=12, n=700, seconds=0.15, shard_class=SlowShard, begun=""):
    """Shards that take their time, the arguments of a count, and the result of one machine."""
    queries, query_labels = codes_of(99, 5)
    shards = [shard_class(seed, n, seconds, str(begun)) for seed in range(n_shards)]
    parts = [codes_of(seed, n) for seed in range(n_shards)]
    whole = BinaryCodes.concatenate([codes for codes, _ in parts])
    relevance = affinity.classes(query_labels, np.concatenate([labels for _, labels in parts]))
    expected = rankbits.count_ties(queries, whole, relevance)
    return (queries, shards), {"query_labels": query_labels}, expected


def test_workers_killed_at_random_change_nothing(cluster, small_tasks, rng):
    shards, labels, expected = slow_run(n_shards=10)
    with Killer(cluster, rng, 0.7, busy_with="perform", most=6) as killer:
        hist = distributed.count_ties(*shards, **labels)
    assert killer.n_sent > 0
    assert_same(hist, expected)


def test_a_node_removed_in_the_middle_changes_nothing(cluster, small_tasks):
    shards, labels, expected = slow_run(n_shards=16)
    n_calls = 0

    def remove_once(done, total):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            cluster.remove_node()

    try:
        hist = distributed.count_ties(*shards, **labels, progress=remove_once)
    finally:
        cluster.add_node()
    assert n_calls == 16
    assert_same(hist, expected)


def test_a_worker_that_stops_for_good_is_overtaken(cluster, small_tasks, monkeypatch, tmp_path):
    monkeypatch.setattr(_jobs, "_LATE_SECONDS", 1.0)
    (queries, shards), labels, expected = slow_run(4, seconds=0.0, begun=tmp_path)
    shards[2] = StuckShard(2, 700, 0.0, str(tmp_path))
    try:
        hist = distributed.count_ties(queries, shards, **labels)
    finally:
        for pid in cluster.workers():
            os.kill(pid, signal.SIGCONT)
    assert (tmp_path / "stuck").exists()
    assert_same(hist, expected)


def test_progress_counts_every_pair_once(cluster, small_tasks):
    shards, labels, _ = slow_run(3, seconds=0.0)
    seen = []
    distributed.count_ties(
        *shards, **labels, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (5 * 2100, 5 * 2100)


def test_a_shard_that_kills_its_workers_is_named(cluster, small_tasks, monkeypatch):
    monkeypatch.setattr(_jobs, "_RETRIES", 1)
    (queries, shards), labels, _ = slow_run(3, seconds=0.0)
    shards[1] = DeadlyShard(1, 700, 0.0)
    with pytest.raises(ClusterError, match=r"^slow shard 1 could not be processed"):
        distributed.count_ties(queries, shards, **labels)


def test_shards_that_are_short_share_a_task(cluster):
    shards, labels, expected = slow_run(9, seconds=0.0)
    seen = []
    hist = distributed.count_ties(*shards, **labels, progress=lambda done, total: seen.append(done))
    assert seen == [5 * 9 * 700]
    assert_same(hist, expected)


def test_a_small_count_has_a_task_for_each_worker(cluster, monkeypatch):
    monkeypatch.setattr(_ranges, "_FEWEST_PAIRS", 1)
    shards, labels, expected = slow_run(9, seconds=0.0)
    seen = []
    hist = distributed.count_ties(*shards, **labels, progress=lambda done, total: seen.append(done))
    assert seen == [5 * 3 * 700, 5 * 6 * 700, 5 * 9 * 700]  # three workers, three shards each
    assert_same(hist, expected)


def test_queries_that_are_sent_once_for_all_tasks(cluster, small_tasks, monkeypatch):
    monkeypatch.setattr(_ranges, "_SMALL_BYTES", 0)
    shards, labels, expected = slow_run(4, seconds=0.0)
    assert_same(distributed.count_ties(*shards, **labels), expected)


@pytest.fixture
def files(data, rng, tmp_path):
    queries, shards = data
    labels = [rng.integers(0, 3, len(shard)) for shard in shards]
    return {
        "queries": queries,
        "database": save_all(tmp_path, shards, "codes"),
        "query_labels": rng.integers(0, 3, len(queries)),
        "database_labels": save_all(tmp_path, labels, "labels"),
    }


def test_a_shard_that_is_missing_is_named(cluster, files):
    os.remove(files["database"][2])
    with pytest.raises(InputError, match=r"codes2\.npy"):
        distributed.count_ties(**files)


def test_a_shard_that_is_cut_off_is_named(cluster, files):
    os.truncate(files["database"][3], 1000)
    with pytest.raises(InputError, match=r"codes3\.npy"):
        distributed.count_ties(**files)


def test_a_shard_that_vanishes_while_it_is_counted_is_named(cluster, small_tasks, files):
    def remove(done, total):
        if os.path.exists(files["database"][3]):
            os.remove(files["database"][3])

    with pytest.raises(InputError, match=r"codes3\.npy"):
        distributed.count_ties(**files, progress=remove)


def test_shards_of_other_lengths_are_refused(cluster, files):
    BinaryCodes.from_bits(np.ones((512, 24))).save(files["database"][2])
    with pytest.raises(InputError, match=r"20 bits as the queries have, .*codes2\.npy has 24"):
        distributed.count_ties(**files)


def test_shards_of_other_models_are_refused(cluster, files):
    for place, model in ((0, "one"), (2, "two")):
        codes = BinaryCodes.load(files["database"][place])
        BinaryCodes(np.array(codes.packed), N_BITS, model).save(files["database"][place])
    with pytest.raises(InputError, match=r"codes0\.npy come from model one and .*codes2\.npy"):
        distributed.count_ties(**files)


def test_labels_that_do_not_fit_are_refused(cluster, files, rng):
    wrong = [
        (np.arange(3), "labels and .* codes; there must be one label per code"),
        (np.array(["a"] * 512), "classes as integers.*codes2.npy has classes as strings"),
        (np.ones((512, 3)), "classes as integers.*codes2.npy has tags in 3 columns"),
    ]
    for labels, message in wrong:
        np.save(files["database_labels"][2], labels)
        with pytest.raises(InputError, match=message):
            distributed.count_ties(**files)
