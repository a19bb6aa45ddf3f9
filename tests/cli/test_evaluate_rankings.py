"""`rankbits evaluate` on vectors, real-valued queries and lists of results."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import Command, assert_one_line
from rankbits import BinaryCodes, affinity, evaluate, evaluate_rankings, evaluate_vectors
from rankbits.cli import app
from rankbits.evaluation import nearest_vectors
from rankbits.index import HammingIndex

evaluate_command = Command("evaluate")
LABELS = ["--query-labels", "yq.npy", "--database-labels", "yd.npy"]
JUDGED = [(0, 3, 2), (0, 29, 1), (1, 17, 1), (2, 16, 3), (3, 5, 1)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Vectors, codes and labels of 5 queries and 30 items, on disk."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    queries, items = rng.standard_normal((5, 12)), rng.standard_normal((30, 12))
    labels = rng.integers(0, 3, 5), rng.integers(0, 3, 30)
    np.save("q.npy", queries.astype(np.float32))
    np.save("x.npy", items.astype(np.float32))
    BinaryCodes.from_logits(items).save("codes.npy")
    np.save("yq.npy", labels[0])
    np.save("yd.npy", labels[1])
    return np.load("q.npy"), np.load("x.npy"), affinity.classes(*labels)


VECTORS = ["--queries", "q.npy", "--similarity", "cosine"]


def metric_options(*names):
    return [word for name in names for word in ("--metric", name)]


@pytest.mark.parametrize("similarity", ["cosine", "ip", "l2"])
def test_vectors_score_as_the_function_scores_them(run, similarity):
    expected = evaluate_vectors(*run, ["AP", "nDCG@5"], similarity).to_dict()
    files = ["--queries", "q.npy", "--database", "x.npy", "--similarity", similarity]
    printed = evaluate_command.printed(*files, *LABELS, *metric_options("AP", "nDCG@5"))
    assert printed == {**expected, "shards": 1}


def test_real_valued_queries_score_as_the_function_scores_them(run):
    queries, items, labels = run
    codes = BinaryCodes.from_logits(items)
    expected = evaluate(None, codes, labels, "AP", query_weights=queries).to_dict()
    files = ["--queries", "q.npy", "--by", "weights", "--database", "codes.npy"]
    assert evaluate_command.printed(*files, *LABELS) == {**expected, "shards": 1}


def test_what_a_search_wrote_is_scored_with_its_ties(run):
    _, items, labels = run
    codes = BinaryCodes.from_logits(items)
    index = HammingIndex(12)
    index.add(codes)
    distances, ids = index.search(codes[:5], 8)
    np.savez("found.npz", distances=distances, ids=ids)
    names = ["nDCG@8", "P@3"]
    expected = evaluate_rankings(ids, labels, names, distances).to_dict()
    printed = evaluate_command.printed("--rankings", "found.npz", *LABELS, *metric_options(*names))
    assert printed["metrics"] == expected["metrics"]
    assert printed["ranked_by"] == "given lists of results"
    assert "bits" not in printed


def test_overlap_compares_with_a_reference_of_row_numbers(run):
    queries, items, labels = run
    reference = nearest_vectors(queries, items, 5)
    np.save("top.npy", reference)
    BinaryCodes.from_logits(queries).save("qc.npy")
    names = metric_options("overlap@5", "AP")
    codes = ["--queries", "qc.npy", "--database", "codes.npy", *LABELS, *names]
    printed = evaluate_command.printed(*codes, "--reference", "top.npy")
    both = [BinaryCodes.from_logits(side) for side in (queries, items)]
    expected = evaluate(*both, labels, ["overlap@5", "AP"], reference=reference)
    assert printed["metrics"] == expected.to_dict()["metrics"]
    vectors = [*VECTORS, "--database", "x.npy", "--metric", "overlap@5"]
    own = evaluate_command.printed(*vectors, "--reference", "top.npy")
    assert own["metrics"]["overlap@5"]["mean"] == 1.0


@pytest.fixture
def trec(tmp_path, monkeypatch):
    """A TREC run of three of four judged queries, with ties, lines out of order, and a stranger."""
    monkeypatch.chdir(tmp_path)
    lists = {
        0: [(3, 0.9), (7, 0.5), (29, 0.5), (1, 0.1)],
        1: [(2, 3.0), (17, 2.0)],
        2: [(16, 1.0), (4, 1.0)],
    }
    lines = [
        f"q{q} Q0 doc-{item} {rank} {score} engine"
        for q, results in lists.items()
        for rank, (item, score) in enumerate(results, start=1)
    ]
    (tmp_path / "run.trec").write_text("\n".join([*lines[::-1], "q9 Q0 doc-1 1 0.5 engine"]))
    trec_lines = [f"q{q} 0 doc-{i} {level}\n" for q, i, level in JUDGED]
    (tmp_path / "test.qrels").write_text("".join(trec_lines))
    beir_lines = [f"q{q}\tdoc-{i}\t{level}\n" for q, i, level in JUDGED]
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(beir_lines))
    (tmp_path / "items.txt").write_text("\n".join(f"doc-{i}" for i in range(30)))
    (tmp_path / "queries.txt").write_text("\n".join(f"q{q}" for q in range(4)))
    ids, scores = np.full((4, 4), -1), np.zeros((4, 4))
    for q, results in lists.items():
        for place, (item, score) in enumerate(results):
            ids[q, place], scores[q, place] = item, score
    return ids, scores


NAMES = ["nDCG@10", "RR@10", "AP(total)@1000", "R@2"]
RUN = ["--rankings", "run.trec", *metric_options(*NAMES)]
IDS = ["--query-ids", "queries.txt", "--database-ids", "items.txt"]


@pytest.mark.parametrize("qrels", ["test.qrels", "test.tsv"])
@pytest.mark.parametrize("files", [[], IDS], ids=["ids of the run and qrels", "ids of files"])
def test_a_trec_run_is_scored_by_qrels_of_both_kinds(trec, qrels, files):
    ids, scores = trec
    expected = evaluate_rankings(ids, affinity.judgements(JUDGED, 4, 30), NAMES, scores)
    done = evaluate_command(*RUN, "--judgements", qrels, *files)
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    for name in NAMES:
        assert result["metrics"][name]["mean"] == pytest.approx(expected.mean[name], abs=1e-12)
    assert "no results for 1 of 4 queries" in done.stderr
    assert "1 queries are not judged" in done.stderr
    assert (result["judgements"]["pairs"], result["queries"]) == (5, 4)


def test_two_runs_overlap_without_judgements(trec, tmp_path):
    reference = ["q0 Q0 doc-7 1 5 e", "q0 Q0 doc-3 2 4 e", "q1 Q0 doc-8 1 5 e", "q2 Q0 doc-4 1 5 e"]
    (tmp_path / "float.trec").write_text("\n".join([*reference, "q9 Q0 doc-1 1 5 e"]))
    done = evaluate_command.printed(
        "--rankings", "run.trec", "--reference", "float.trec", "--metric", "overlap@2"
    )
    values = [(1 + 0.5) / 2, 0.0, 1.0, 1.0]  # of q0 doc-3 for certain and doc-7 or doc-29
    assert done["metrics"]["overlap@2"]["mean"] == pytest.approx(np.mean(values))


BAD_INPUT = {
    "not a run": (["--rankings", "bad.trec"], "bad.trec, line 1 must be query, Q0, item, rank"),
    "score NaN": (["--rankings", "nan.trec"], "nan.trec, line 1 must be query"),
    "item twice": (["--rankings", "twice.trec"], "twice.trec, line 2 has item 'a' of 'q0' twice"),
    "no file": (["--rankings", "none.trec"], "there is no none.trec"),
    "unknown item": (
        ["--rankings", "twice.trec", *IDS],
        "has item 'a', which is not among",
    ),
    "whole ranking": (["--rankings", "run.trec", "--metric", "AP"], "'AP' needs the whole ranking"),
    "no reference": (
        ["--rankings", "run.trec", "--metric", "overlap@2"],
        "reference must be given",
    ),
    "reference of numbers": (
        ["--rankings", "run.trec", "--reference", "top.npy"],
        "top.npy must be a TREC run",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line(trec, tmp_path, case):
    (tmp_path / "bad.trec").write_text("q0 doc-1 0.5")
    (tmp_path / "nan.trec").write_text("q0 Q0 doc-1 1 nan e")
    (tmp_path / "twice.trec").write_text("q0 Q0 a 1 2 e\nq0 Q0 a 2 1 e")
    arguments, reason = BAD_INPUT[case]
    judged = ["--judgements", "test.qrels", "--metric", "P@1"]
    assert_one_line(evaluate_command(*arguments, *judged), reason)


BAD_USAGE = {
    "two kinds": ["--similarity", "ip", "--rankings", "run.trec"],
    "rankings and codes": ["--rankings", "run.trec", "--queries", "q.npy"],
    "weights and vectors": [*VECTORS, "--by", "weights", "--database", "d.npy"],
    "weights alone": ["--queries", "q.npy", "--by", "weights"],
    "vectors alone": VECTORS,
    "a histogram of lists": ["--rankings", "run.trec", "--save-histogram", "ties.npz"],
    "labels of a run": ["--rankings", "run.trec", *LABELS],
    "a word that is no metric": [
        "--queries",
        "q.npy",
        "--database",
        "x.npy",
        "--similarity",
        "dot",
    ],
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_exits_with_2(trec, case):
    done = CliRunner().invoke(app, ["evaluate", *BAD_USAGE[case]])
    assert (done.exit_code, done.stdout) == (2, ""), done.output


def test_vectors_in_two_files_are_refused(run):
    files = [*VECTORS, "--database", "x.npy", "--database", "x.npy"]
    done = evaluate_command(*files, *LABELS)
    assert done.exit_code == 2
    assert "given once" in " ".join(done.stderr.split())
