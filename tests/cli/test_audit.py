import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from rankbits import BinaryCodes, affinity
from rankbits.cli import app
from rankbits.evaluation._audit import audit

N_BITS = 8


class Files:
    """A run on disk, whole and in two shards, with classes, tags and judgements."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.queries, self.database = (
            BinaryCodes.from_bits(rng.integers(0, 2, (n, N_BITS))) for n in (6, 40)
        )
        self.query_labels, self.labels = rng.integers(0, 3, 6), rng.integers(0, 3, 40)
        self.query_tags, self.tags = rng.integers(0, 2, (6, 4)), rng.integers(0, 2, (40, 4))
        self.rows = np.column_stack([np.arange(12) // 2, np.arange(12) * 3, np.arange(12) % 3 + 1])
        arrays = {
            "q": self.queries.packed,
            "d": self.database.packed,
            "d1": self.database.packed[:15],
            "d2": self.database.packed[15:],
            "yq": self.query_labels,
            "yd": self.labels,
            "yd1": self.labels[:15],
            "yd2": self.labels[15:],
            "tq": self.query_tags,
            "td": self.tags,
            "rows": self.rows,
        }
        for name, array in arrays.items():
            np.save(f"{name}.npy", array)

    @property
    def classes(self):
        return affinity.classes(self.query_labels, self.labels)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Files()


CODES = ["--queries", "q.npy", "--database", "d.npy", "--bits", "8"]
CLASSES = ["--query-labels", "yq.npy", "--database-labels", "yd.npy"]


def call(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments])


def printed(*arguments):
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def as_json(found):
    return json.loads(json.dumps(found.to_dict()))


def test_the_command_prints_what_the_function_returns(files):
    options = ["--name", "mine", "--cutoff", "3", "--cutoff", "9", "--shuffles", "4", "--seed", "7"]
    wanted = audit(
        files.queries,
        files.database,
        files.classes,
        name="mine",
        ks=[3, 9],
        n_shuffles=4,
        random_state=7,
    )
    assert printed(*CODES, *CLASSES, *options) == as_json(wanted)


def test_the_defaults_are_those_of_the_function(files):
    assert printed(*CODES, *CLASSES) == as_json(audit(files.queries, files.database, files.classes))


def test_shards_are_joined_in_the_order_given(files):
    first, second = (
        ["--database", f"d{part}.npy", "--database-labels", f"yd{part}.npy"] for part in (1, 2)
    )
    shared = ["--queries", "q.npy", "--bits", "8", "--query-labels", "yq.npy"]
    whole = printed(*CODES, *CLASSES)
    assert printed(*shared, *first, *second) == whole
    turned = printed(*shared, *second, *first)
    assert turned["ap"]["expected"] == pytest.approx(whole["ap"]["expected"], abs=1e-15)
    assert turned["ap"]["rows"] != whole["ap"]["rows"]


def test_tags_judgements_conventions_and_self_exclusion_reach_the_audit(files):
    tags = ["--query-labels", "tq.npy", "--database-labels", "td.npy", "--graded"]
    known = affinity.tags(files.query_tags, files.tags, graded=True)
    assert printed(*CODES, *tags, "--gain", "linear", "--discount", "rsh") == as_json(
        audit(files.queries, files.database, known, gain="linear", discount="rsh")
    )
    known = affinity.judgements(files.rows, 6, 40)
    assert printed(*CODES, "--judgements", "rows.npy") == as_json(
        audit(files.queries, files.database, known)
    )
    same = ["--queries", "d.npy", "--database", "d.npy", "--bits", "8", "--exclude-self"]
    known = affinity.classes(files.labels, files.labels)
    assert printed(*same, "--query-labels", "yd.npy", "--database-labels", "yd.npy") == as_json(
        audit(files.database, files.database, known, exclude_self=True)
    )


def test_the_page_is_written_and_its_path_said_on_standard_error(files):
    done = call(*CODES, *CLASSES, "--html", "page.html", "--name", "a <b> name")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["name"] == "a <b> name"
    assert done.stderr == "wrote page.html\n"
    with open("page.html", encoding="utf-8") as file:
        assert "Audit of <b>a &lt;b&gt; name</b>" in file.read()
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_the_table_shows_every_row_and_any_name(files):
    done = call(*CODES, *CLASSES, "--format", "table", "--name", "[/red] odd [b]name")
    assert done.exit_code == 0
    found = audit(files.queries, files.database, files.classes)
    assert "[/red] odd [b]name: 6 queries, 40 items, 8 bits" in done.stdout
    for metric in (found.ap, found.ndcg):
        for row in metric.rows:
            line = next(line for line in done.stdout.splitlines() if row.title in line)
            assert f"{row.value:.4f}" in line
            assert f"{row.points:+.2f}" in line
    for row in found.cutoffs:
        assert f"{row.index_order:.4f}" in done.stdout


def test_skipped_queries_are_a_warning(files):
    np.save("yq.npy", np.append(files.query_labels[:5], 99))
    done = call(*CODES, *CLASSES)
    assert json.loads(done.stdout)["n_skipped"] == 1
    assert done.stderr == (
        "warning: 1 of 6 queries have nothing relevant and are left out of every mean\n"
    )


BAD_INPUT = {
    "no such file": (["--queries", "none.npy", *CODES[2:], *CLASSES], "none.npy"),
    "labels out of step": (
        [*CODES, "--query-labels", "yd.npy", *CLASSES[2:]],
        "one label per code",
    ),
    "page in no folder": ([*CODES, *CLASSES, "--html", "no/page.html"], "no/page.html"),
    "page is a folder": ([*CODES, *CLASSES, "--html", "."], "file"),
    "graded classes": ([*CODES, *CLASSES, "--graded"], "--graded"),
    "wrong bits": (["--queries", "q.npy", "--database", "d.npy", "--bits", "33", *CLASSES], "33"),
}


@pytest.mark.parametrize(("arguments", "says"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_exits_1_with_one_line_and_writes_nothing(files, arguments, says):
    before = sorted(os.listdir())
    page = [] if "--html" in arguments else ["--html", "page.html"]
    done = call(*arguments, *page)
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_nothing_relevant_exits_1_and_keeps_the_old_page(files):
    np.save("yq.npy", np.full(6, 99))
    with open("page.html", "w", encoding="utf-8") as file:
        file.write("old")
    done = call(*CODES, *CLASSES, "--html", "page.html")
    assert done.exit_code == 1
    assert "relevant" in done.stderr
    with open("page.html", encoding="utf-8") as file:
        assert file.read() == "old"


BAD_USAGE = {
    "no queries": CODES[2:] + CLASSES,
    "no labels": CODES,
    "half the labels": CODES + CLASSES[:2],
    "k of 0": [*CODES, *CLASSES, "--cutoff", "0"],
    "no shuffles": [*CODES, *CLASSES, "--shuffles", "0"],
    "negative seed": [*CODES, *CLASSES, "--seed", "-1"],
    "unknown gain": [*CODES, *CLASSES, "--gain", "cubic"],
    "unknown format": [*CODES, *CLASSES, "--format", "yaml"],
    "unknown option": [*CODES, *CLASSES, "--metric", "AP"],
}


@pytest.mark.parametrize("arguments", BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_exits_2(files, arguments):
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")


def test_without_matplotlib_only_the_page_is_refused_and_before_the_work(files, hide_package):
    hide_package("matplotlib")
    done = call("--queries", "none.npy", *CODES[2:], *CLASSES, "--html", "page.html")
    assert done.exit_code == 1
    assert "rankbits[report]" in done.stderr
    assert printed(*CODES, *CLASSES)["n_bits"] == N_BITS
