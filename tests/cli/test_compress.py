"""`rankbits compress` from files, and what `compress-check` and `search` make of its folder."""

import json

import numpy as np
import pytest

from commands import Command, assert_one_line
from rankbits.compress import load

WIDTH = 16


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((30, WIDTH))
    labels = rng.integers(30, size=330)
    rows = (centers[labels] + 0.5 * rng.standard_normal((330, WIDTH))).astype(np.float32)
    np.save(folder / "items.npy", rows[:300])
    np.save(folder / "queries.npy", rows[300:])
    ids = [f"d{i}" for i in range(300)], [f"q{i}" for i in range(30)]
    for name, lines in zip(("items.txt", "queries.txt"), ids, strict=True):
        (folder / name).write_text("\n".join(lines))
    pairs = [
        f"q{query}\td{item}\t1"
        for query in range(30)
        for item in np.flatnonzero(labels[:300] == labels[300 + query])
    ]
    header = "query-id\tcorpus-id\tscore"
    (folder / "qrels.tsv").write_text("\n".join([header, *pairs, "q0\tnobody\t1"]))
    return folder


compress, check, search = Command("compress"), Command("compress-check"), Command("search")


def options(files, *more):
    queries = ["--queries", files / "queries.npy"]
    cheap = ["--bytes", 2, "--method", "sign", "--pool", 20, "--threads", 1, "--no-onnx"]
    return [files / "items.npy", *queries, *cheap, *more]


@pytest.fixture(scope="module")
def out(files):
    folder = files / "out"
    ids = ["--query-ids", files / "queries.txt", "--item-ids", files / "items.txt"]
    done = compress(*options(files, "--judgements", files / "qrels.tsv", *ids, "--out", folder))
    assert done.exit_code == 0, done.output
    assert "plan, about" in done.stderr
    assert "1 item ids are not among the given ids" in done.stderr
    return folder


def test_a_folder_is_written_and_the_recommendation_printed(files, tmp_path):
    printed = compress.printed(*options(files, "--out", tmp_path / "out", "--quiet"))
    chosen = printed["recommendation"]
    assert (chosen["method"], chosen["bytes"], chosen["metric"]) == ("sign", 2, "overlap@10")
    assert printed["out"] == str(tmp_path / "out")
    names = {"README.md", "codes.npy", "index", "index.html", "model", "result.json"}
    assert names <= {path.name for path in (tmp_path / "out").iterdir()}


def test_a_table_ends_with_the_sentence(files, tmp_path):
    done = compress(*options(files, "--out", tmp_path / "out", "--format", "table", "--keep", 0.2))
    assert done.exit_code == 0, done.output
    *_, sentence, page = done.stdout.strip().splitlines()
    assert "keeps" in sentence
    assert page.endswith("index.html")


def test_a_folder_is_searched_as_it_recommends(files, out, tmp_path):
    printed = search.printed(out, files / "queries.npy", "-k", 3, "--threads", 1)
    assert np.shape(printed["ids"]) == (30, 3)
    assert (printed["index"], printed["items"]) == (str(out), 300)
    _, ids = load(out).search(np.load(files / "queries.npy"), 3)
    assert printed["ids"] == ids.tolist()
    target = tmp_path / "nearest.npz"
    search.printed(out, files / "queries.npy", "-k", 3, "--out", target)
    assert np.load(target)["ids"].tolist() == printed["ids"]


def test_new_data_is_checked(files, out):
    printed = check.printed(out, files / "items.npy", files / "queries.npy")
    assert printed["drifted"] is False
    assert printed["now"]["value"] == pytest.approx(printed["before"]["value"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--queries", "nowhere.npy"], "there is no nowhere.npy"),
        (["--judgements", "nowhere.tsv"], "there is no nowhere.tsv"),
        (["--method", "itg"], "did you mean 'itq'"),
        (["--keep", "2"], "keep must be a share"),
        (["--metric", "AP"], "cut by a rank"),
    ],
)
def test_bad_input_is_one_line_and_exit_1(files, tmp_path, more, message):
    done = compress(*options(files, "--out", tmp_path / "out", *more))
    assert_one_line(done, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["items.npy"],  # where to?
        ["items.npy", "more.npy", "--out", "out"],
        ["items.npy", "--out", "out", "--item-labels", "a.npy", "--item-labels", "b.npy"],
        ["items.npy", "--out", "out", "--query-ids", "ids.txt"],
    ],
)
def test_bad_usage_is_exit_2(arguments):
    assert compress(*arguments).exit_code == 2


def test_options_stand_in_place_of_the_plan_of_a_compressed_folder(files, out):
    compressed = load(out)
    x = np.load(files / "queries.npy")
    queries = compressed.model.as_queries(x)
    how = ("--by", "weights", "--rerank", "none", "-k", 4)
    answer = json.loads(search(out, files / "queries.npy", *how).stdout)
    assert answer["ids"] == compressed.index.search(queries, 4, by="weights").ids.tolist()
    answer = json.loads(search(out, files / "queries.npy", "--radius", 2).stdout)
    found = compressed.index.within(queries, 2)
    ends = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    assert answer["ids"] == [found.ids[a:b].tolist() for a, b in ends]
    answer = json.loads(search(out, files / "queries.npy", "-k", 5).stdout)
    assert answer["ids"] == compressed.search(x, 5).ids.tolist()
    assert answer["plan"] == compressed.plan.sentence
