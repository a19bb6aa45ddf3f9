import importlib
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import rankbits
from rankbits import BinaryCodes, TieHistogram, affinity, count_ties, evaluate, metrics
from rankbits.errors import InputError
from rankbits.evaluation import Evaluation, audit, compare, count_shards, evaluate_histogram


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


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_a_lookup_reports_the_share_of_empty_balls(run, radius):
    queries, database, levels, distances = run
    result = evaluate(queries, database, affinity.levels(levels), [f"P@r{radius}"]).to_dict()
    is_empty = (distances > radius).all(axis=1)
    assert result["metrics"][f"P@r{radius}"]["empty_balls"] == is_empty.mean()


def test_the_mean_is_over_the_values_of_the_queries(run):
    queries, database, levels, _ = run
    result = evaluate(queries, database, affinity.levels(levels), ["AP", "RR@2"])
    for name, function in {
        "AP": metrics.average_precision,
        "RR@2": lambda h: metrics.reciprocal_rank(h, k=2),
    }.items():
        values = function(result.histogram)
        assert result.per_query[name].tolist() == values.tolist()
        assert result.mean[name] == pytest.approx(values.mean(), rel=1e-15)


def test_lgap_takes_the_codes(run):
    queries, database, levels, _ = run
    labels = affinity.levels(levels)
    result = evaluate(queries, database, labels, ["LGAP@r1", "AP"])
    expected = metrics.lgap(queries, database, labels, radius=1)
    np.testing.assert_array_equal(result.per_query["LGAP@r1"], expected)
    with pytest.raises(InputError, match=r"'LGAP@r1' needs the codes themselves"):
        evaluate_histogram(result.histogram, ["LGAP@r1"])


def test_lgap_leaves_each_query_itself_out(run):
    _, database, _, _ = run
    labels = affinity.classes([0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0])
    result = evaluate(database, database, labels, ["LGAP@r1"], exclude_self=True)
    expected = metrics.lgap(database, database, labels, radius=1, exclude_self=True)
    np.testing.assert_array_equal(result.per_query["LGAP@r1"], expected)
    assert result.mean != evaluate(database, database, labels, ["LGAP@r1"]).mean


@pytest.fixture
def with_empty_queries():
    codes = BinaryCodes.from_bits([[0, 0], [0, 1], [1, 1]])
    return codes, codes, affinity.classes([7, 9, 8], [7, 8, 7])


def test_skip_leaves_out_and_counts_queries_with_nothing_relevant(with_empty_queries):
    result = evaluate(*with_empty_queries, ["AP", "P@1"])
    assert np.isnan(result.per_query["AP"]).tolist() == [False, True, False]
    assert result.mean["AP"] == np.nanmean(result.per_query["AP"])
    assert result.n_skipped == 1
    summary = result.to_dict()["metrics"]
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
    result = evaluate(queries, database, affinity.classes([1, 2, 3], [4, 5, 6]))
    assert np.isnan(result.mean["AP"])
    assert result.n_skipped == 3
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert json.loads(text)["metrics"]["AP"]["mean"] is None


def test_the_result_says_what_made_it(run):
    queries, database, levels, _ = run
    names = ["AP", "AP@5", "AP(min)@5", "nDCG(rsh)", "AP.best", "P@r1", "RR"]
    result = evaluate(queries, database, affinity.levels(levels), names, empty="zero").to_dict()
    assert list(result["metrics"]) == names
    assert (result["bits"], result["queries"], result["database"]) == (3, 4, 7)
    assert (result["levels"], result["empty"]) == ([0, 1, 2], "zero")
    assert result["version"] == rankbits.__version__
    words_of = {name: row["conventions"] for name, row in result["metrics"].items()}
    assert words_of["AP"]["ties"].startswith("expectation")
    assert "all relevant" in words_of["AP"]["normalise"]
    assert "among the first k" in words_of["AP@5"]["normalise"]
    assert "min(k" in words_of["AP(min)@5"]["normalise"]
    assert words_of["nDCG(rsh)"]["gain"] == "linear: v"
    assert "1 at rank 1" in words_of["nDCG(rsh)"]["discount"]
    assert "highest value" in words_of["AP.best"]["ties"]
    assert "scores 0" in words_of["P@r1"]["empty_ball"]
    assert all("scores 0" in words["empty_query"] for words in words_of.values())


def test_conventions_tell_apart_what_is_skipped_and_what_is_always_defined(with_empty_queries):
    result = evaluate(*with_empty_queries, ["AP", "P@1"]).to_dict()["metrics"]
    assert "left out" in result["AP"]["conventions"]["empty_query"]
    assert "scores 0" in result["P@1"]["conventions"]["empty_query"]


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
    result = evaluate(codes, codes, affinity.classes(labels, labels), exclude_self=exclude_self)
    assert evaluate_histogram(merged).mean == result.mean
    assert result.to_dict()["database"] == 12 - exclude_self


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
    result = compare(first, second, n_resamples=50).metrics["AP"]
    assert result.difference == pytest.approx(second.mean["AP"] - first.mean["AP"])


@pytest.mark.parametrize("door", [evaluate, count_ties, audit])
def test_an_array_instead_of_an_affinity_is_refused_with_the_call_that_makes_one(run, door):
    queries, database, levels, _ = run
    with pytest.raises(InputError, match=r"^affinity must .* call affinity\.levels\(matrix\)"):
        door(queries, database, levels)


def in_a_fresh_interpreter(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["scipy", "sklearn", "pyarrow", "matplotlib", "torch", "rich", "typer", "safetensors"]
    loaded = in_a_fresh_interpreter(
        f"import sys, rankbits, rankbits.evaluation\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_the_function_and_the_package_are_both_reachable():
    printed = in_a_fresh_interpreter(
        "import rankbits\n"
        "print(callable(rankbits.evaluation.count_shards), callable(rankbits.evaluate))\n"
        "import rankbits.evaluation\n"
        "print(callable(rankbits.evaluate), rankbits.report.__name__)"
    )
    assert printed.split() == ["True", "True", "True", "rankbits.report"]
    assert rankbits.Evaluation is Evaluation
    assert {"evaluation", "report"} <= set(dir(rankbits))
