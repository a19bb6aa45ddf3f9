import importlib
import json
import subprocess
import sys
from itertools import pairwise, permutations
from math import log2

import numpy as np
import pytest

import rankbits
from rankbits import BinaryCodes, TieHistogram, affinity, count_ties, evaluate, metrics
from rankbits.errors import InputError
from rankbits.evaluation import Evaluation, compare, count_shards, evaluate_histogram

K = 4  # a cutoff that falls inside ties


def ap(levels, k=None, normalise="total"):
    hits = [i for i, level in enumerate(levels[:k]) if level]
    total = sum(level > 0 for level in levels)
    divisor = {"total": total, "min": min(total, k or total), "retrieved": len(hits)}[normalise]
    precisions = [(place + 1) / (i + 1) for place, i in enumerate(hits)]
    return sum(precisions) / divisor if divisor else 0.0


def ndcg(levels, k=None, gain=lambda v: 2**v - 1, discount=lambda rank: 1 / log2(rank + 1)):
    def dcg(order):
        return sum(gain(v) * discount(rank) for rank, v in enumerate(order[:k], start=1))

    return dcg(levels) / dcg(sorted(levels, reverse=True))


def rsh(rank):
    return 1.0 if rank == 1 else 1 / log2(rank)


def hits(levels):
    return sum(level > 0 for level in levels[:K])


ORDINARY = {  # the metric of one strict order, from its definition
    "AP": ap,
    f"AP@{K}": lambda v: ap(v, K, "retrieved"),
    f"AP(min)@{K}": lambda v: ap(v, K, "min"),
    f"AP(total)@{K}": lambda v: ap(v, K, "total"),
    "nDCG": ndcg,
    f"nDCG@{K}": lambda v: ndcg(v, K),
    f"nDCG(linear)@{K}": lambda v: ndcg(v, K, gain=lambda level: level),
    "nDCG(rsh)": lambda v: ndcg(v, gain=lambda level: level, discount=rsh),
    f"nDCG(exp,rsh)@{K}": lambda v: ndcg(v, K, discount=rsh),
    f"P@{K}": lambda v: hits(v) / K,
    f"R@{K}": lambda v: hits(v) / sum(level > 0 for level in v),
    f"F1@{K}": lambda v: 2 * hits(v) / (K + sum(level > 0 for level in v)),
    f"Hit@{K}": lambda v: float(hits(v) > 0),
    "RR": lambda v: 1 / (1 + next(i for i, level in enumerate(v) if level)),
}


def orders(distances, levels):
    """Levels in every order that sorts the distances."""
    for order in permutations(range(len(levels))):
        ranked = [distances[i] for i in order]
        if ranked == sorted(ranked):
            yield [int(levels[i]) for i in order]


@pytest.fixture(scope="module")
def run():
    """Four queries, seven items, three bits: many ties; levels 0..2; each query has a positive."""
    rng = np.random.default_rng(3)
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (4, 3)))
    database = BinaryCodes.from_bits(rng.integers(0, 2, (7, 3)))
    levels = rng.integers(0, 3, (4, 7))
    levels[:, 0] = [1, 2, 1, 2]
    distances = (queries.bits()[:, None] != database.bits()[None]).sum(axis=2)
    return queries, database, levels, distances


def test_every_ranking_name_is_the_mean_of_its_metric_over_all_tie_orders(run):
    queries, database, levels, distances = run
    found = evaluate(queries, database, affinity.levels(levels), ORDINARY)
    for name, metric in ORDINARY.items():
        wanted = [
            np.mean([metric(order) for order in orders(distances[q], levels[q])])
            for q in range(len(queries))
        ]
        assert found.per_query[name] == pytest.approx(wanted, abs=1e-12), name
        assert found.mean[name] == pytest.approx(np.mean(wanted), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "metric"),
    [("AP", ap), ("nDCG", ndcg), (f"nDCG@{K}", lambda v: ndcg(v, K))],
)
def test_bounds_are_the_least_and_the_greatest_over_all_tie_orders(run, name, metric):
    queries, database, levels, distances = run
    family, _, cut = name.partition("@")
    worst, best = (f"{family}.{bound}{cut and '@'}{cut}" for bound in ("worst", "best"))
    found = evaluate(queries, database, affinity.levels(levels), [worst, best])
    for q in range(len(queries)):
        values = [metric(order) for order in orders(distances[q], levels[q])]
        assert found.per_query[worst][q] == pytest.approx(min(values), abs=1e-12)
        assert found.per_query[best][q] == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_radius_names_look_inside_the_ball(run, radius):
    queries, database, levels, distances = run
    names = [f"{family}@r{radius}" for family in ("P", "R", "F1", "ACG")]
    found = evaluate(queries, database, affinity.levels(levels), names)
    inside = distances <= radius
    n_inside, n_hits = inside.sum(axis=1), (inside & (levels > 0)).sum(axis=1)
    n_relevant = (levels > 0).sum(axis=1)
    size = np.maximum(n_inside, 1)
    wanted = {
        "P": n_hits / size,
        "R": n_hits / n_relevant,
        "F1": 2 * n_hits / (n_inside + n_relevant),
        "ACG": (levels * inside).sum(axis=1) / size,
    }
    for family, values in wanted.items():
        assert found.per_query[f"{family}@r{radius}"] == pytest.approx(values)
    share = found.to_dict()["metrics"][f"P@r{radius}"]["empty_balls"]
    assert share == np.mean(n_inside == 0)


def test_lgap_takes_the_codes(run):
    queries, database, levels, _ = run
    labels = affinity.levels(levels)
    found = evaluate(queries, database, labels, ["LGAP@r1", "AP"])
    wanted = metrics.lgap(queries, database, labels, radius=1)
    np.testing.assert_array_equal(found.per_query["LGAP@r1"], wanted)
    with pytest.raises(InputError, match=r"'LGAP@r1' needs the codes themselves"):
        evaluate_histogram(found.histogram, ["LGAP@r1"])


def test_lgap_leaves_each_query_itself_out(run):
    _, database, _, _ = run
    labels = affinity.classes([0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0])
    found = evaluate(database, database, labels, ["LGAP@r1"], exclude_self=True)
    wanted = metrics.lgap(database, database, labels, radius=1, exclude_self=True)
    np.testing.assert_array_equal(found.per_query["LGAP@r1"], wanted)
    assert found.mean != evaluate(database, database, labels, ["LGAP@r1"]).mean


@pytest.fixture
def with_empty_queries():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    return codes, codes, affinity.classes([7, 9, 8], [7, 8, 7])


def test_skip_leaves_out_and_counts_queries_with_nothing_relevant(with_empty_queries):
    found = evaluate(*with_empty_queries, ["AP", "P@1"])
    assert np.isnan(found.per_query["AP"]).tolist() == [False, True, False]
    assert found.mean["AP"] == np.nanmean(found.per_query["AP"])
    assert found.n_skipped == 1
    summary = found.to_dict()["metrics"]
    assert (summary["AP"]["queries"], summary["AP"]["skipped"]) == (2, 1)
    assert (summary["P@1"]["queries"], summary["P@1"]["skipped"]) == (3, 0)


def test_zero_scores_them_0_and_skips_none(with_empty_queries):
    skip, zero = (evaluate(*with_empty_queries, "AP", empty=empty) for empty in ("skip", "zero"))
    assert zero.per_query["AP"][1] == 0
    assert zero.mean["AP"] == pytest.approx(skip.mean["AP"] * 2 / 3)
    assert (zero.n_skipped, zero.to_dict()["skipped"]) == (0, 0)


@pytest.mark.parametrize("name", ["AP", "P@1"])
def test_error_names_the_first_of_them_whatever_the_metric(with_empty_queries, name):
    with pytest.raises(InputError, match=r"query 1 has no relevant item, 1 of 3 queries"):
        evaluate(*with_empty_queries, [name], empty="error")


def test_a_mean_over_no_query_is_nan_and_null(with_empty_queries):
    queries, database, _ = with_empty_queries
    found = evaluate(queries, database, affinity.classes([1, 2, 3], [4, 5, 6]))
    assert np.isnan(found.mean["AP"])
    assert found.n_skipped == 3
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["metrics"]["AP"]["mean"] is None


def test_the_result_says_what_made_it(run):
    queries, database, levels, _ = run
    names = ["AP", "AP@5", "AP(min)@5", "nDCG(rsh)", "AP.best", "P@r1", "RR"]
    found = evaluate(queries, database, affinity.levels(levels), names, empty="zero").to_dict()
    assert list(found["metrics"]) == names
    assert (found["bits"], found["queries"], found["database"]) == (3, 4, 7)
    assert (found["levels"], found["empty"]) == ([0, 1, 2], "zero")
    assert found["version"] == rankbits.__version__
    said = {name: row["conventions"] for name, row in found["metrics"].items()}
    assert said["AP"]["ties"].startswith("expectation")
    assert "all relevant" in said["AP"]["normalise"]
    assert "among the first k" in said["AP@5"]["normalise"]
    assert "min(k" in said["AP(min)@5"]["normalise"]
    assert said["nDCG(rsh)"]["gain"] == "linear: v"
    assert "1 at rank 1" in said["nDCG(rsh)"]["discount"]
    assert "highest value" in said["AP.best"]["ties"]
    assert "scores 0" in said["P@r1"]["empty_ball"]
    assert all("scores 0" in words["empty_query"] for words in said.values())


def test_conventions_tell_apart_what_is_skipped_and_what_is_always_defined(with_empty_queries):
    found = evaluate(*with_empty_queries, ["AP", "P@1"]).to_dict()["metrics"]
    assert "left out" in found["AP"]["conventions"]["empty_query"]
    assert "scores 0" in found["P@1"]["conventions"]["empty_query"]


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("cuts", [[], [5], [1, 11]])
def test_shards_give_the_same_counts_as_the_whole(exclude_self, cuts):
    rng = np.random.default_rng(0)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (12, 9)))
    labels = rng.integers(0, 3, 12)
    edges = [0, *cuts, 12]
    shards = [(codes[a:b], affinity.classes(labels, labels[a:b])) for a, b in pairwise(edges)]
    seen = []
    merged = count_shards(codes, shards, exclude_self, progress=lambda *step: seen.append(step))
    whole = count_ties(codes, codes, affinity.classes(labels, labels), exclude_self)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert seen == [(12 * edge, 144) for edge in edges[1:]]
    found = evaluate(codes, codes, affinity.classes(labels, labels), exclude_self=exclude_self)
    assert evaluate_histogram(merged).mean == found.mean
    assert found.to_dict()["database"] == 12 - exclude_self


def test_shards_must_be_there_and_be_the_queries_to_exclude_them():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    part = codes[:2], affinity.classes([1, 2, 3], [1, 2])
    with pytest.raises(InputError, match=r"3 queries and 2 items"):
        count_shards(codes, [part], exclude_self=True)
    with pytest.raises(InputError, match="shards must not be empty"):
        count_shards(codes, [])


def test_names_are_checked_before_anything_is_counted(run, monkeypatch):
    queries, database, levels, _ = run
    module = importlib.import_module("rankbits.evaluation._evaluate")
    monkeypatch.setattr(module, "count_ties", lambda *_: pytest.fail("counted"))
    for bad, reason in [
        (["mAP"], "did you mean AP"),
        (["P@r4"], "radius from 0 to 3"),
        (["AP@0"], "must be an integer >= 1"),
        ([], "at least one"),
    ]:
        with pytest.raises(InputError, match=reason):
            evaluate(queries, database, affinity.levels(levels), bad)
    with pytest.raises(InputError, match="empty must be one of skip, zero, error; got 'drop'"):
        evaluate(queries, database, affinity.levels(levels), empty="drop")


def test_what_is_no_histogram_is_refused():
    with pytest.raises(InputError, match="hist must be a TieHistogram"):
        evaluate_histogram(np.zeros((1, 2, 2), int))
    with pytest.raises(InputError, match="at least one query"):
        evaluate_histogram(TieHistogram(np.zeros((0, 3, 2), int), np.array([0, 1])))


def test_two_evaluations_compare(run):
    queries, database, levels, _ = run
    first = evaluate(queries, database, affinity.levels(levels))
    second = evaluate(queries, database, affinity.levels(levels[:, ::-1].copy()))
    found = compare(first, second, n_resamples=50).metrics["AP"]
    assert found.difference == pytest.approx(second.mean["AP"] - first.mean["AP"])


def test_the_package_gives_the_function_and_loads_nothing_heavy():
    heavy = ["scipy", "sklearn", "pyarrow", "matplotlib", "torch", "rich", "typer", "safetensors"]
    code = (
        "import sys, time, numpy\n"
        "start = time.process_time()\n"
        "import rankbits, rankbits.evaluation\n"
        "seconds = time.process_time() - start\n"
        "assert callable(rankbits.evaluate) and callable(rankbits.compare)\n"
        f"print(seconds, [name for name in {heavy} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, loaded = done.stdout.split(maxsplit=1)
    assert loaded.strip() == "[]"
    assert float(seconds) < 0.3
    assert isinstance(rankbits.Evaluation, type)
    assert rankbits.Evaluation is Evaluation
