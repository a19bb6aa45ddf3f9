"""`rankbits evaluate` and `audit` on qrels files with ids of their own."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import BinaryCodes, affinity, evaluate
from rankbits.cli import app
from rankbits.evaluation import audit

N_QUERIES, N_ITEMS = 4, 30
QUERY_IDS = [f"q{number}" for number in range(N_QUERIES)]
ITEM_IDS = [f"doc-{number}" for number in range(N_ITEMS)]
JUDGED = [(0, 3, 2), (0, 29, 1), (1, 17, 1), (2, 16, 3), (3, 5, 1)]
CODES = ["--queries", "q.npy", "--database", "d.npy", "--judgements", "test.qrels"]
IDS = ["--query-ids", "q.txt", "--database-ids", "d.txt"]
SHARDS = [
    *("--queries", "q.npy", "--database", "d1.npy", "--database", "d2.npy"),
    *("--judgements", "test.qrels"),
]
SHARD_IDS = ["--query-ids", "q.txt", "--database-ids", "d1.txt", "--database-ids", "d2.txt"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run on disk, whole and in two shards: codes, ids, and a qrels file in TREC's layout."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (N_QUERIES, 12)))
    database = BinaryCodes.from_bits(rng.integers(0, 2, (N_ITEMS, 12)))
    queries.save(tmp_path / "q.npy")
    database.save(tmp_path / "d.npy")
    (tmp_path / "q.txt").write_text("\n".join(QUERY_IDS))
    (tmp_path / "d.txt").write_text("\n".join(ITEM_IDS))
    for name, part in (("1", slice(0, 17)), ("2", slice(17, None))):
        database[part].save(tmp_path / f"d{name}.npy")
        (tmp_path / f"d{name}.txt").write_text("\n".join(ITEM_IDS[part]))
    lines = [f"{QUERY_IDS[q]} 0 {ITEM_IDS[i]} {level}\n" for q, i, level in JUDGED]
    (tmp_path / "test.qrels").write_text("".join(lines))
    return queries, database, affinity.judgements(JUDGED, N_QUERIES, N_ITEMS), tmp_path


def call(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", ["AP", "nDCG@5", "LGAP@r4"])
@pytest.mark.parametrize("arguments", [CODES + IDS, SHARDS + SHARD_IDS], ids=["whole", "shards"])
def test_ids_give_what_row_numbers_give(run, name, arguments):
    queries, database, judged, _ = run
    done = call("evaluate", *arguments, "--metric", name)
    assert (done.exit_code, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    expected = evaluate(queries, database, judged, [name])
    assert result["metrics"][name]["mean"] == expected.mean[name]
    assert result["judgements"] == {
        "pairs": 5,
        "used": 5,
        "unknown_queries": 0,
        "unknown_items": 0,
        "negative": 0,
    }


def test_an_audit_takes_ids_too(run):
    queries, database, judged, _ = run
    done = call("audit", *SHARDS, *SHARD_IDS, "--cutoff", "5")
    expected = audit(queries, database, judged, ks=[5])
    assert json.loads(done.stdout)["ap"]["expected"] == expected.ap.expected


def test_unknown_ids_and_negative_grades_are_reported(run):
    folder = run[-1]
    with open(folder / "test.qrels", "a") as file:
        file.write("q9 0 doc-1 1\nq8 0 doc-1 1\nq0 0 lost 2\nq1 0 doc-0 -2\n")
    done = call("evaluate", *CODES, *IDS)
    assert done.stderr == (
        "warning: test.qrels: 6 of 9 judged pairs are used; 2 query ids and 1 item ids are not "
        "among the given ids\n"
    )
    counts = {"pairs": 9, "used": 6, "unknown_queries": 2, "unknown_items": 1, "negative": 1}
    assert json.loads(done.stdout)["judgements"] == counts


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"q.txt": "q0\nq1\n"}, "q.txt has 2 ids and q.npy has 4 codes; ids and codes must go"),
        ({"d.txt": "\n".join(["x", *ITEM_IDS[:-2], "x"])}, "database_ids must be different"),
        ({"q.txt": "a\nb\nc\nd"}, "test.qrels must judge some of these queries and items"),
        ({"test.qrels": "q0 doc-1 high\n"}, "test.qrels, line 1 must be query, item, level or"),
    ],
)
def test_files_that_do_not_fit_are_refused_in_one_line(run, change, reason):
    for name, text in change.items():
        (run[-1] / name).write_text(text)
    done = call("evaluate", *CODES, *IDS)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {reason}")
    assert done.stderr.count("\n") == 1


def test_string_ids_without_files_of_ids_are_refused_with_the_options_to_give(run):
    done = call("evaluate", *CODES)
    assert done.exit_code == 1
    assert "--query-ids and --database-ids" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [*CODES, "--query-ids", "q.txt"],
        [*CODES, "--database-ids", "d.txt"],
        [*SHARDS, *IDS],
        ["--queries", "q.npy", "--database", "d.npy", *IDS],
        ["--histogram", "h.npz", *IDS],
    ],
)
def test_ids_without_their_other_half_or_without_judgements_are_bad_usage(run, arguments):
    assert call("evaluate", *arguments).exit_code == 2
