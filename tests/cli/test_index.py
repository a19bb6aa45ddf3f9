"""`rankbits index`: a folder made, changed and searched from files finds what brute force finds."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from commands import Command, assert_one_line
from rankbits import BinaryCodes, methods
from rankbits.cli import _index_files, app
from rankbits.index import Collection
from rankbits.index.disk import building, writing

N_BITS = 21
BITS = np.random.default_rng(7).integers(0, 2, (300, N_BITS)).astype(np.uint8)
CODES, QUERIES = BinaryCodes.from_bits(BITS), BITS[:5] ^ (np.arange(N_BITS) % 6 == 0)
IDS = np.random.default_rng(8).permutation(1000)[:300]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CODES.save("codes.npy")
    np.save("bits.npy", BITS)
    np.save("ids.npy", IDS)
    np.save("q.npy", QUERIES)
    return tmp_path


def act(name, *arguments):
    return Command("index")(name, *arguments)


def printed(name, *arguments):
    done = act(name, *arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return json.loads(done.stdout)


def ranked(bits=BITS, ids=None):
    """Every item of each query as (distance, id), nearest first."""
    ids = range(len(bits)) if ids is None else ids.tolist()
    return [
        sorted((int((query != item).sum()), i) for item, i in zip(bits, ids, strict=True))
        for query in QUERIES
    ]


def pairs(found):
    return [
        list(zip(near, ids, strict=True))
        for near, ids in zip(found["distances"], found["ids"], strict=True)
    ]


def held(path="index"):
    """Ids of the collection, and the bits that each has."""
    with Collection.open(path) as collection:
        return dict(zip(collection.ids.tolist(), collection.codes().bits().tolist(), strict=True))


def wanted(ids, bits):
    return dict(zip(np.asarray(ids).tolist(), bits.tolist(), strict=True))


def test_what_is_built_is_found(folder):
    made = printed("build", "codes.npy", "--out", "index")
    assert made.pop("seconds") >= 0
    assert made == {"index": "index", "bits": N_BITS, "added": 300, "items": 300}
    assert sorted(os.listdir()) == ["bits.npy", "codes.npy", "ids.npy", "index", "q.npy"]
    found = printed("search", "index", "q.npy", "-k", 7)
    assert found.pop("seconds") >= 0
    assert pairs(found) == [row[:7] for row in ranked()]
    del found["distances"], found["ids"]
    counts = {"queries": 5, "items": 300, "plan": "queries as bits"}
    assert found == {"index": "index", **counts, "k": 7, "ties": "id"}
    assert held() == wanted(range(300), BITS)


def test_ten_are_found_where_no_number_is_given(folder):
    printed("build", "bits.npy", "--bits", N_BITS, "--ids", "ids.npy", "--out", "index/")
    assert pairs(printed("search", "index/", "q.npy")) == [row[:10] for row in ranked(ids=IDS)]


@pytest.mark.parametrize("kind", ["auto", "scan", "mih"])
def test_radius_ties_filters_and_kinds_are_those_of_the_index(folder, kind):
    printed("build", "codes.npy", "--ids", "ids.npy", "--out", "index")
    how = ["index", "q.npy", "--kind", kind, "--threads", 2, "--no-verify"]
    within = printed("search", *how, "--radius", 6)
    assert pairs(within) == [[pair for pair in row if pair[0] <= 6] for row in ranked(ids=IDS)]
    assert (within["radius"], "k" in within, "ties" in within) == (6, False, False)
    complete = printed("search", *how, "-k", 3, "--ties", "complete")
    assert pairs(complete) == [
        [pair for pair in row if pair <= (row[2][0], 2000)] for row in ranked(ids=IDS)
    ]
    allowed = np.sort(IDS)[::3]
    np.save("allowed.npy", allowed)
    np.save("mask.npy", np.isin(np.sort(IDS), allowed))
    near = printed("search", *how, "--radius", 9, "--allowed", "allowed.npy")
    assert pairs(near) == [
        [pair for pair in row if pair[1] in allowed and pair[0] <= 9] for row in ranked(ids=IDS)
    ]
    for name in ("allowed.npy", "mask.npy"):
        some = printed("search", *how, "-k", 200, "--allowed", name)
        assert pairs(some) == [
            [pair for pair in row if pair[1] in allowed] for row in ranked(ids=IDS)
        ]


def test_results_go_to_an_archive_instead(folder):
    printed("build", "codes.npy", "--out", "index")
    found = printed("search", "index", "q.npy", "-k", 400, "--out", "found.npz")
    assert (found["out"], "ids" in found) == ("found.npz", False)
    with np.load("found.npz") as arrays:
        assert sorted(arrays) == ["distances", "ids"]
        assert arrays["ids"].shape == arrays["distances"].shape == (5, 300)
        assert arrays["ids"].tolist() == [[i for _, i in row] for row in ranked()]
    printed("search", "index", "q.npy", "--radius", 5, "--out", "found.npz")
    near = [[pair for pair in row if pair[0] <= 5] for row in ranked()]
    with np.load("found.npz") as arrays:
        assert arrays["offsets"].tolist() == np.cumsum([0, *map(len, near)]).tolist()
        assert arrays["distances"].tolist() == [d for row in near for d, _ in row]
        assert arrays["ids"].tolist() == [i for row in near for _, i in row]


@pytest.fixture
def fitted(folder):
    """A model, the index of what it encodes, and vectors of queries."""
    rng = np.random.default_rng(3)
    x, q = rng.standard_normal((120, 9)), rng.standard_normal((5, 9))
    hasher = methods.get("itq", n_bits=8, random_state=0).fit(x)
    hasher.save("model")
    hasher.encode(x).save("items.npy")
    np.save("vectors.npy", q)
    np.save("items_x.npy", x)
    printed("build", "items.npy", "--out", "index")
    return hasher, 2.0 * hasher.encode(x).bits() - 1, q


@pytest.mark.parametrize("block", [1 << 12, 2])
def test_vectors_are_searched_by_the_weights_that_a_model_gives_them(fitted, monkeypatch, block):
    hasher, signs, q = fitted
    monkeypatch.setattr(_index_files, "_BLOCK_QUERIES", block)
    answer = printed("search", "index", "vectors.npy", "--model", "model", "-k", 7)
    assert answer.pop("seconds") >= 0
    products = (hasher.project_queries(q) @ signs.T).astype(np.float32)
    order = np.lexsort((np.broadcast_to(np.arange(120), products.shape), -products), axis=1)[:, :7]
    assert answer.pop("ids") == order.tolist()
    expected = np.take_along_axis(products, order, axis=1)
    np.testing.assert_allclose(
        [[-d for d in row] for row in answer.pop("distances")], expected, rtol=1e-6
    )
    counts = {"queries": 5, "items": 120, "plan": "real-valued queries"}
    assert answer == {"index": "index", **counts, "k": 7, "ties": "id"}


def test_one_function_answers_search_and_index_search(fitted):
    _, _, q = fitted
    np.save("weights.npy", fitted[0].project_queries(q))
    fitted[0].encode_queries(q).save("q.npy")
    both = [
        lambda *words: printed("search", "index", *words),
        lambda *words: Command("search").printed("index", *words),
    ]
    for search in both:
        by_model = search("vectors.npy", "--model", "model", "-k", 4)
        assert (
            search("weights.npy", "--by", "weights", "-k", 4)["distances"] == by_model["distances"]
        )
        by_bits = search("vectors.npy", "--model", "model", "--by", "bits", "-k", 4)
        assert by_bits["distances"] == search("q.npy", "-k", 4)["distances"]


def test_distances_go_to_an_archive_under_their_name(fitted):
    how = ["index", "vectors.npy", "--model", "model"]
    np.save("allowed.npy", np.arange(4))
    printed("search", *how, "--allowed", "allowed.npy", "--out", "answer.npz")
    with np.load("answer.npz") as arrays:
        assert sorted(arrays) == ["distances", "ids"]
        assert (np.sort(arrays["ids"][:, :4], axis=1) == np.arange(4)).all()
        assert (arrays["ids"][:, 4:] == -1).all()


def test_a_pool_is_re_ranked_by_vectors(fitted):
    hasher, _, q = fitted
    items = np.load("items_x.npy")
    answer = printed(
        "search",
        "index",
        "vectors.npy",
        "--model",
        "model",
        "-k",
        3,
        "--rerank",
        "items_x.npy",
        "--pool",
        20,
        "--similarity",
        "l2",
    )
    with Collection.open("index") as index:
        pools = index.search(hasher.as_queries(q), 20, by="weights").ids
    for row, pool, ids in zip(q, pools, answer["ids"], strict=True):
        gaps = np.linalg.norm(items[pool] - row, axis=1).astype(np.float32)
        assert ids == pool[np.lexsort((pool, gaps))][:3].tolist()
    assert answer["plan"] == "real-valued queries, 20 candidates re-ranked by vectors (l2)"
    near = printed("search", "index", "vectors.npy", "--model", "model", "-k", 3, "--radius", 2)
    assert near["plan"] == "queries as bits"
    assert max(max(row, default=0) for row in near["distances"]) <= 2


def test_vectors_of_another_model_are_refused(fitted):
    methods.get("lsh", n_bits=8, random_state=1).fit(fitted[2]).save("other")
    done = act("search", "index", "vectors.npy", "--model", "other")
    assert_one_line(done, "queries of --model come from model")


@pytest.mark.parametrize(
    "how",
    [
        [],
        ["weights.npy", "--by", "weights", "--radius", "3"],
        ["weights.npy", "--by", "weights", "--ties", "complete"],
    ],
)
def test_radius_and_ties_are_about_bits(folder, how):
    assert act("search", "index", *how).exit_code == 2


@pytest.mark.parametrize("how", [["-k", "7"], ["--radius", "8"], ["--ties", "complete"]])
def test_queries_in_blocks_are_all_answered(folder, monkeypatch, how):
    printed("build", "codes.npy", "--out", "index")
    whole = printed("search", "index", "q.npy", *how)
    monkeypatch.setattr(_index_files, "_BLOCK_QUERIES", 2)
    cut = printed("search", "index", "q.npy", *how)
    assert pairs(cut) == pairs(whole)


@pytest.mark.parametrize("block", [1 << 20, 64])
def test_files_of_every_kind_go_in_one_after_the_other(folder, monkeypatch, block):
    monkeypatch.setattr(_index_files, "_BLOCK_CODES", block)
    np.savez("a.npz", bits=BITS[:100], other=BITS)
    column = pa.array([bytes(row) for row in CODES.packed[100:200]], pa.binary(3))
    pq.write_table(pa.table({"codes": column}), "b.parquet")
    save_file({"bits": np.ascontiguousarray(BITS[200:])}, "c.safetensors")
    files = ["a.npz:bits", "b.parquet", "c.safetensors"]
    printed("build", *files, "--bits", N_BITS, "--ids", "ids.npy", "--out", "index")
    assert held() == wanted(IDS, BITS)
    assert printed("check", "index")["is_whole"] is True


@pytest.mark.parametrize("block", [1 << 20, 16])
def test_codes_are_added_replaced_and_removed(folder, monkeypatch, block):
    monkeypatch.setattr(_index_files, "_BLOCK_CODES", block)
    CODES[:200].save("first.npy")
    CODES[200:].save("rest.npy")
    printed("build", "first.npy", "--out", "index")
    added = printed("add", "index", "rest.npy")
    assert (added["added"], added["items"], added["bits"]) == (100, 300, N_BITS)
    assert held() == wanted(range(300), BITS)
    np.save("some.npy", np.arange(280, 380))
    changed = printed("add", "index", "rest.npy", "--ids", "some.npy", "--upsert")
    assert (changed["added"], changed["items"]) == (100, 380)
    removed = printed("remove", "index", "--ids", "some.npy")
    assert (removed["removed"], removed["items"]) == (100, 280)
    assert held() == wanted(range(280), BITS[:280])
    told = printed("info", "index")
    assert (told["index"], told["bits"], told["items"]) == ("index", N_BITS, 280)


def test_an_index_is_replaced_only_if_that_is_said(folder):
    printed("build", "codes.npy", "--out", "index")
    CODES[:9].save("nine.npy")
    refused = act("build", "nine.npy", "--out", "index")
    assert_one_line(refused, "index holds collection.sqlite", "--overwrite")
    assert len(held()) == 300
    printed("build", "nine.npy", "--out", "index", "--overwrite")
    assert held() == wanted(range(9), BITS[:9])
    printed("build", "nine.npy", "--out", "new", "--overwrite")
    (folder / "empty").mkdir()
    printed("build", "nine.npy", "--out", "empty")
    assert held("empty") == held("new") == held()


def test_a_build_that_fails_leaves_what_was_there(folder, monkeypatch):
    printed("build", "codes.npy", "--out", "index")
    before = sorted(os.listdir())

    def full(self, *_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Collection, "add", full)
    assert_one_line(act("build", "codes.npy", "--out", "index", "--overwrite"), "No space left")
    assert_one_line(act("build", "codes.npy", "--out", "other"), "No space left")
    assert sorted(os.listdir()) == before
    assert len(held()) == 300


@pytest.mark.parametrize("name", ["new", "empty"])
def test_a_build_that_fails_at_its_last_step_can_be_repeated(folder, monkeypatch, name):
    (folder / "empty").mkdir()
    with monkeypatch.context() as broken:

        def full(*_):
            raise OSError(28, "No space left on device")

        broken.setattr(writing.tables, "write_state", full)
        assert_one_line(act("build", "codes.npy", "--out", name), "No space left")
        assert not (folder / "new").exists()
    printed("build", "codes.npy", "--out", name, "--overwrite")
    assert held(name) == wanted(range(300), BITS)


def test_a_folder_of_something_else_is_never_replaced(folder):
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("mine")
    assert_one_line(act("build", "codes.npy", "--out", "notes", "--overwrite"), "notes holds a.txt")
    assert os.listdir("notes") == ["a.txt"]


def test_an_index_that_another_writes_is_refused_before_the_work(folder):
    printed("build", "codes.npy", "--out", "index")
    with Collection.open("index", writable=True):
        for arguments in (
            ["build", "absent.npy", "--out", "index", "--overwrite"],
            ["add", "index", "codes.npy"],
            ["remove", "index", "--ids", "ids.npy"],
        ):
            assert_one_line(act(*arguments), "one writer at a time")
        assert len(printed("search", "index", "q.npy")["ids"]) == 5


def test_damage_is_named_by_check_and_never_served(folder, monkeypatch):
    monkeypatch.setattr(building, "SEAL_AT", 100)
    printed("build", "codes.npy", "--out", "index")
    whole = printed("check", "index")
    (segment,) = (folder / "index" / "segments").iterdir()
    assert (whole["is_whole"], whole["items"]) == (True, 300)
    content = bytearray(segment.read_bytes())
    content[-5] ^= 1
    segment.write_bytes(content)
    for arguments in (["check", "index"], ["search", "index", "q.npy"]):
        assert_one_line(act(*arguments), segment.name)
    assert len(printed("search", "index", "q.npy", "--no-verify")["ids"]) == 5


def test_ids_that_do_not_fit_are_refused_before_a_block_is_added(folder, monkeypatch):
    monkeypatch.setattr(_index_files, "_BLOCK_CODES", 64)
    printed("build", "codes.npy", "--out", "index")
    before = held()
    for last, reason in ((1000, "comes more than once"), (-1, "got -1"), (7, "7 exists already")):
        np.save("new.npy", np.r_[1000:1299, last])
        assert_one_line(act("add", "index", "codes.npy", "--ids", "new.npy"), reason)
        assert held() == before


BAD_INPUT = {
    "no codes": (["build", "absent.npy", "--out", "new"], "there is no absent.npy"),
    "length": (["build", "codes.npy", "--bits", 20, "--out", "new"], "holds codes of 21 bits"),
    "unknown length": (["build", "bits8.npy", "--out", "new"], "say how many"),
    "lengths": (["build", "codes.npy", "wide.npy", "--out", "new"], "wide.npy has 30"),
    "names": (["build", "codes.npy", "--ids", "names.txt", "--out", "new"], "search as --names"),
    "few ids": (["build", "codes.npy", "--ids", "few.npy", "--out", "new"], "9 ids for 300 codes"),
    "real ids": (["build", "codes.npy", "--ids", "x.npy", "--out", "new"], "x.npy: ids must be"),
    "no folder": (["build", "codes.npy", "--out", "no/new"], "must lie in an existing folder"),
    "a file": (["build", "codes.npy", "--out", "q.npy"], "q.npy is a file"),
    "no index": (["search", "absent", "q.npy"], "must hold a collection"),
    "nothing to add to": (["add", "absent", "codes.npy"], "must hold a collection"),
    "other bits": (["add", "index", "wide.npy"], "30 bits"),
    "ids there": (["add", "index", "codes.npy", "--ids", "ids.npy"], "exists already"),
    "ids not there": (["remove", "index", "--ids", "many.npy"], "5000 is not"),
    "queries": (["search", "index", "wide.npy"], "30 bits"),
    "filter": (["search", "index", "q.npy", "--allowed", "x.npy"], "allowed must be ids or a mask"),
    "archive": (["search", "index", "q.npy", "--out", "found.npy"], "must end in .npz"),
    "no place": (["search", "index", "q.npy", "--out", "no/found.npz"], "must name a file in"),
    "no info": (["info", "absent"], "must hold a collection"),
    "no check": (["check", "absent"], "must hold a collection"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_exits_1_with_one_line_and_changes_nothing(folder, case):
    printed("build", "codes.npy", "--out", "index")
    BinaryCodes.from_bits(np.zeros((5, 30), int)).save("wide.npy")
    np.save("bits8.npy", CODES.packed)
    np.save("few.npy", IDS[:9])
    np.save("many.npy", [0, 5000])
    np.save("x.npy", np.ones(300))
    before = sorted(os.listdir())
    arguments, reason = BAD_INPUT[case]
    assert_one_line(act(*arguments), reason)
    assert sorted(os.listdir()) == before
    assert held() == wanted(range(300), BITS)


def test_bad_usage_exits_2(folder):
    printed("build", "codes.npy", "--out", "index")
    for arguments in (
        ["build", "codes.npy"],
        ["add", "index"],
        ["add", "index", "codes.npy", "--upsert"],
        ["remove", "index"],
        ["search", "index"],
        ["search", "index", "q.npy", "-k", "0"],
        ["search", "index", "q.npy", "--ties", "complete", "--radius", "2"],
        ["search", "index", "q.npy", "--kind", "flat"],
        ["search", "index", "q.npy", "--ties", "all"],
        ["compact", "index"],
    ):
        assert act(*arguments).exit_code == 2, arguments


def test_every_command_has_help():
    for name in ("build", "add", "remove", "search", "info", "check"):
        assert act(name, "--help").exit_code == 0
    assert "search" in CliRunner().invoke(app, ["index", "--help"]).stdout


def test_a_result_does_not_replace_what_is_read(folder):
    printed("build", "codes.npy", "--out", "index")
    np.savez("q.npz", q=np.load("q.npy"))
    before = (folder / "q.npz").read_bytes()
    for queries in ("q.npz", "q.npz:q", str(folder / "q.npz")):
        done = act("search", "index", queries, "--out", "q.npz")
        assert_one_line(done, "q.npz must not be one of the inputs")
    assert (folder / "q.npz").read_bytes() == before


def test_an_index_is_built_behind_a_link_but_not_over_the_folder_of_the_process(folder):
    (folder / "place").mkdir()
    (folder / "link").symlink_to("place")
    printed("build", "codes.npy", "--out", "link")
    assert (folder / "link").is_symlink()
    assert held("place") == wanted(range(300), BITS)
    (folder / "empty").mkdir()
    os.chdir("empty")
    assert_one_line(act("build", "../codes.npy", "--out", "."), "in which this process works")
    printed("build", "../codes.npy", "--out", "index")
    os.chdir("..")
