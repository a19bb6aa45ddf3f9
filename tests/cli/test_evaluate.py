import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from commands import interrupted_after
from rankbits import BinaryCodes, TieHistogram, affinity, count_ties, evaluate
from rankbits.cli import app

N_BITS = 20


class Files:
    """A run on disk: queries and database in several forms, with their labels."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.folder = folder
        self.query_bits = rng.integers(0, 2, (6, N_BITS), dtype=np.uint8)
        self.bits = rng.integers(0, 2, (40, N_BITS), dtype=np.uint8)
        self.query_labels, self.labels = rng.integers(0, 4, 6), rng.integers(0, 4, 40)
        self.queries = BinaryCodes.from_bits(self.query_bits)
        self.database = BinaryCodes.from_bits(self.bits)
        self.save("q.npy", self.queries.packed)
        self.save("d.npy", self.database.packed)
        self.save("yq.npy", self.query_labels)
        self.save("yd.npy", self.labels)
        for name, part in (("1", slice(15)), ("2", slice(15, None))):
            self.save(f"d{name}.npy", self.database.packed[part])
            self.save(f"yd{name}.npy", self.labels[part])

    def save(self, name, array):
        np.save(self.folder / name, array)
        return name

    @property
    def affinity(self):
        return affinity.classes(self.query_labels, self.labels)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Files(tmp_path)


CODES = ["--queries", "q.npy", "--database", "d.npy", "--bits", "20"]
LABELS = ["--query-labels", "yq.npy", "--database-labels", "yd.npy"]
SHARDS = [
    *("--queries", "q.npy", "--database", "d1.npy", "--database", "d2.npy", "--bits", "20"),
    *("--query-labels", "yq.npy", "--database-labels", "yd1.npy", "--database-labels", "yd2.npy"),
]


def call(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def printed(*arguments):
    done = call(*arguments)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_prints_what_the_function_returns(files):
    names = ["AP", "nDCG@10", "P@r6", "LGAP@r2"]
    options = [word for name in names for word in ("--metric", name)]
    wanted = evaluate(files.queries, files.database, files.affinity, names).to_dict()
    assert printed(*CODES, *LABELS, *options) == {**wanted, "shards": 1}
    assert set(wanted["metrics"]["AP"]) >= {"mean", "queries", "skipped", "conventions"}


def test_ap_is_the_metric_if_none_is_named(files):
    assert list(printed(*CODES, *LABELS)["metrics"]) == ["AP"]


@pytest.mark.parametrize("names", [["AP", "P@r6"], ["AP", "LGAP@r6"]])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_shards_give_what_the_whole_gives(files, names, exclude_self):
    options = [word for name in names for word in ("--metric", name)]
    whole, shards = [*CODES, *LABELS], SHARDS
    if exclude_self:
        options.append("--exclude-self")
        swap = {"q.npy": "d.npy", "yq.npy": "yd.npy"}
        whole, shards = ([swap.get(word, word) for word in words] for words in (whole, shards))
    one, two = printed(*whole, *options), printed(*shards, *options)
    assert (one.pop("shards"), two.pop("shards")) == (1, 2)
    assert one == two
    assert one["database"] == 40 - exclude_self


@pytest.mark.parametrize("form", ["auto", "bits", "logits"])
def test_unpacked_codes_and_keys_give_the_same(files, form):
    rng = np.random.default_rng(1)
    signs = np.where(files.query_bits, 1, -1)
    scale = rng.uniform(0.1, 2, signs.shape) if form == "logits" else 1.0
    np.savez("both.npz", q=signs * scale, d=files.bits)
    arguments = ["--queries", "both.npz:q", "--database", "both.npz:d", "--codes", form, *LABELS]
    assert printed(*arguments) == printed(*CODES, *LABELS)


def test_tags_are_graded_on_demand(files):
    rng = np.random.default_rng(2)
    mine, theirs = rng.integers(0, 2, (6, 5)), rng.integers(0, 2, (40, 5))
    files.save("yq.npy", mine)
    files.save("yd.npy", theirs)
    for flags in ([], ["--graded"]):
        wanted = evaluate(
            files.queries, files.database, affinity.tags(mine, theirs, graded=bool(flags)), "nDCG"
        )
        found = printed(*CODES, *LABELS, "--metric", "nDCG", *flags)
        assert found["metrics"]["nDCG"]["mean"] == wanted.mean["nDCG"]


@pytest.mark.parametrize("name", ["AP", "LGAP@r9"])
def test_judgements_stand_in_for_labels_and_number_items_through_the_shards(files, name):
    rows = [(0, 3, 1), (1, 39, 2), (4, 15, 1), (4, 14, 3)]
    (files.folder / "j.tsv").write_text("".join(f"{q}\t{i}\t{v}\n" for q, i, v in rows))
    shards = SHARDS[: SHARDS.index("--query-labels")]
    judged = affinity.judgements(rows, 6, 40)
    wanted = evaluate(files.queries, files.database, judged, [name])
    for codes in (CODES, shards):
        found = printed(*codes, "--judgements", "j.tsv", "--metric", name)
        assert found["metrics"][name]["mean"] == wanted.mean[name]
        assert found["levels"] == [0, 1, 2, 3]


def test_queries_left_out_are_counted_and_warned_of(files):
    files.save("yq.npy", np.array([0, 1, 2, 3, 77, 78]))
    done = call(*CODES, *LABELS)
    assert json.loads(done.stdout)["metrics"]["AP"]["skipped"] == 2
    assert done.stderr.startswith("warning: 2 of 6 queries have nothing relevant")
    assert done.stderr.count("\n") == 1
    zero = call(*CODES, *LABELS, "--empty", "zero")
    assert json.loads(zero.stdout)["metrics"]["AP"]["skipped"] == 0
    assert zero.stderr == ""
    assert_one_line(call(*CODES, *LABELS, "--empty", "error"), "query 4 has no relevant item")


def test_a_mean_over_no_query_is_null(files):
    files.save("yq.npy", np.full(6, 99))
    assert printed(*CODES, *LABELS)["metrics"]["AP"]["mean"] is None
    assert " - " in call(*CODES, *LABELS, "--format", "table").stdout


def test_the_table_shows_each_mean(files):
    wanted = evaluate(files.queries, files.database, files.affinity, ["AP", "P@r6"]).mean
    done = call(*CODES, *LABELS, "--metric", "AP", "--metric", "P@r6", "--format", "table")
    lines = done.stdout.splitlines()
    for name, mean in wanted.items():
        assert any(line.split()[:2] == [name, f"{mean:.6f}"] for line in lines if line.split())
    assert "6 queries, 40 items, 20 bits" in done.stdout


def test_a_saved_histogram_answers_later_and_histograms_of_shards_add(files):
    wanted = printed(*CODES, *LABELS, "--metric", "AP", "--save-histogram", "h.npz")
    whole = count_ties(files.queries, files.database, files.affinity)
    np.testing.assert_array_equal(TieHistogram.load("h.npz").counts, whole.counts)
    assert printed("--histogram", "h.npz") == wanted
    for part in "12":
        one = [*CODES, *LABELS, "--save-histogram", f"h{part}.npz"]
        swap = {"d.npy": f"d{part}.npy", "yd.npy": f"yd{part}.npy"}
        printed(*[swap.get(word, word) for word in one])
    later = printed("--histogram", "h1.npz", "--histogram", "h2.npz")
    assert later == {**wanted, "shards": 2}


def test_per_query_values_are_written(files):
    printed(*CODES, *LABELS, "--metric", "AP", "--per-query", "v.parquet")
    wanted = evaluate(files.queries, files.database, files.affinity).per_query["AP"]
    table = pq.read_table("v.parquet")
    assert table["query"].to_pylist() == list(range(6))
    np.testing.assert_array_equal(table["AP"].to_numpy(), wanted)


def assert_one_line(done, *parts):
    """Exit 1, nothing on standard output, one line on standard error."""
    assert done.exit_code == 1, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


BAD_INPUT = {
    "no such file": (None, None, ["--queries", "absent.npy"], "absent.npy"),
    "wrong width": ("q.npy", np.zeros((6, 7), np.uint8), [], "must hold codes of 20 bits"),
    "wrong dtype": ("q.npy", np.array([["a"] * 20] * 6), [], "numbers of shape"),
    "wrong shape": ("q.npy", np.zeros((6, 3, 1), np.uint8), [], "(6, 3, 1)"),
    "stray bits": ("q.npy", np.full((6, 3), 255, np.uint8), [], "must end in 4 zero bits"),
    "nan logits": ("q.npy", np.full((6, 20), np.nan), [], "real values such as nan"),
    "no queries": ("q.npy", np.zeros((0, 3), np.uint8), [], "n > 0"),
    "no items": ("d.npy", np.zeros((0, 3), np.uint8), [], "d.npy must hold codes"),
    "too few labels": ("yd.npy", np.zeros(39, int), [], "39 labels and d.npy has 40 codes"),
    "labels of other kind": ("yd.npy", np.array(["a"] * 40), [], "integers and database_labels"),
    "labels of other rank": ("yd.npy", np.ones((40, 2), int), [], "both must be classes"),
    "float labels": ("yd.npy", np.full(40, 0.5), [], "must hold classes"),
    "object labels": ("yd.npy", np.array([{}] * 40), [], "yd.npy is not a readable .npy"),
    "bits beyond": (None, None, ["--bits", "4097"], "n_bits must be an integer from 1 to 4096"),
    "k = 0": (None, None, ["--metric", "AP@0"], "must be an integer >= 1, got 0"),
    "radius > b": (None, None, ["--metric", "P@r21"], "radius from 0 to 20"),
    "unknown metric": (None, None, ["--metric", "mAP"], "did you mean AP?"),
    "graded classes": (None, None, ["--graded"], "--graded needs multi-hot labels"),
    "self of others": (None, None, ["--exclude-self"], "6 queries and 40 items"),
    "folder for output": (None, None, ["--per-query", "."], "must name a file"),
    "no such folder": (None, None, ["--save-histogram", "no/h.npz"], "must name a file"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_exits_1_with_one_line_and_writes_nothing(files, case):
    name, array, arguments, reason = BAD_INPUT[case]
    if name is not None:
        np.save(name, array, allow_pickle=True)
    before = sorted(os.listdir())
    outputs = ["--per-query", "v.parquet", "--save-histogram", "h.npz"]
    done = call(*CODES, *LABELS, *outputs, *arguments)
    assert_one_line(done, reason)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("name", ["q.npy", "d.npy", "yq.npy", "yd.npy"])
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"hello"])
def test_truncated_and_foreign_files_exit_1(files, name, content):
    (files.folder / name).write_bytes(content)
    assert_one_line(call(*CODES, *LABELS), name)


@pytest.mark.parametrize("shard_bits", [16, 24])
def test_unequal_bits_exit_1(files, shard_bits):
    BinaryCodes.from_bits(np.zeros((40, shard_bits), int)).save("d.npy")
    BinaryCodes.from_bits(files.query_bits).save("q.npy")
    arguments = ["--queries", "q.npy", "--database", "d.npy", *LABELS]
    assert_one_line(call(*arguments), f"20 bits and d.npy has {shard_bits}")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(6, 0, 1)], "query from 0 to 5"),
        ([(0, 40, 1)], "item from 0 to 39"),
        ([(0, 0, -1)], "non-negative"),
        ([(0, 0, 1), (0, 0, 2)], "judge a pair once"),
    ],
)
def test_judgements_that_do_not_fit_exit_1(files, rows, reason):
    files.save("j.npy", np.array(rows))
    assert_one_line(call(*CODES, "--judgements", "j.npy"), reason)


def test_gains_beyond_any_number_exit_1_or_are_exact(files):
    files.save("j.npy", np.array([(0, 0, 5000)]))
    done = call(*CODES, "--judgements", "j.npy", "--metric", "nDCG")
    if done.exit_code:
        assert_one_line(done)
    else:
        assert 0 < json.loads(done.stdout)["metrics"]["nDCG"]["mean"] <= 1


def test_a_damaged_histogram_and_one_of_other_queries_exit_1(files):
    printed(*CODES, *LABELS, "--save-histogram", "h.npz")
    TieHistogram(np.zeros((2, 21, 2), int), np.array([0, 1])).save("other.npz")
    assert_one_line(call("--histogram", "h.npz", "--histogram", "other.npz"), "shards must share")
    assert_one_line(call("--histogram", "h.npz", "--metric", "LGAP@r2"), "needs the codes")
    (files.folder / "h.npz").write_bytes((files.folder / "h.npz").read_bytes()[:100])
    assert_one_line(call("--histogram", "h.npz"), "h.npz")


BAD_USAGE = {
    "no codes": [],
    "no labels": CODES,
    "labels of one side": [*CODES, *LABELS[:2]],
    "labels and judgements": [*CODES, *LABELS, "--judgements", "j.tsv"],
    "a label file too few": SHARDS[:-2],
    "histogram and codes": [*CODES, *LABELS, "--histogram", "h.npz"],
    "histogram without itself": ["--histogram", "h.npz", "--exclude-self"],
    "unknown option": [*CODES, *LABELS, "--metrics", "AP"],
    "unknown policy": [*CODES, *LABELS, "--empty", "drop"],
    "unknown format": [*CODES, *LABELS, "--format", "xml"],
    "no thread": [*CODES, *LABELS, "--threads", "0"],
    "bits as words": [*CODES, *LABELS, "--bits", "many"],
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_exits_2(files, case):
    done = call(*BAD_USAGE[case])
    assert done.exit_code == 2
    assert done.stdout == ""


@pytest.mark.parametrize("option", ["--per-query", "--save-histogram"])
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(files, option):
    for path in (".", "no/file"):
        done = call("--queries", "absent.npy", *CODES[2:], *LABELS, option, path)
        assert_one_line(done, f"{path} must name a file in an existing folder")


def test_a_failed_write_exits_1_and_leaves_no_part(files, monkeypatch):
    def half(table, file):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", half)
    before = sorted(os.listdir())
    done = call(*CODES, *LABELS, "--per-query", "v.parquet", "--save-histogram", "h.npz")
    assert_one_line(done, "No space left on device")
    assert sorted(os.listdir()) == before


def test_the_installed_command_keeps_its_streams_apart(files):
    files.save("yq.npy", np.array([0, 1, 2, 3, 0, 78]))
    command = [sys.executable, "-c", "from rankbits.cli import main; main()", "evaluate"]
    done = subprocess.run([*command, *CODES, *LABELS], capture_output=True, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["metrics"]["AP"]["queries"] == 5
    assert done.stderr.splitlines()[0].startswith("warning: 1 of 6")
    bad = subprocess.run([*command, *CODES[:4], *LABELS], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (1, "", 1)


def test_an_interrupt_exits_130_without_a_traceback(files):
    rng = np.random.default_rng(0)
    files.save("q.npy", rng.integers(0, 256, (20_000, 32), dtype=np.uint8))
    files.save("d.npy", rng.integers(0, 256, (400_000, 32), dtype=np.uint8))
    files.save("yq.npy", np.zeros(20_000, int))
    files.save("yd.npy", np.zeros(400_000, int))
    arguments = [*CODES[:4], "--bits", "256", *LABELS, "--threads", "1", "--per-query", "v.parquet"]
    assert interrupted_after(0.5, "evaluate", *arguments) == (130, "", "interrupted\n")
    assert not os.path.exists("v.parquet")
