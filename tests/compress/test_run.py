"""A whole compression: its result, its folder, and what a kill leaves."""

import json

import numpy as np
import pytest

from compressing import SETTINGS
from rankbits import load as load_model
from rankbits.compress import compress, load
from rankbits.errors import FileFormatError, InputError
from rankbits.index import HammingIndex

TIMES = ("microseconds", "seconds", "peak_memory_mb", "estimated_seconds", "sentence")


def without_times(value):
    """The same result without whatever a clock or a meter said."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_the_result_has_the_form_that_others_rely_on(compressed):
    result = json.loads((compressed.folder / "result.json").read_text())
    assert result == {**compressed.result, "json_sha256": result["json_sha256"]}
    assert result["reference"]["metrics"]["overlap@10"] == pytest.approx(1.0)
    assert len(result["candidates"]) == 2 * 2 * 2 * 3  # methods, bytes, kinds, pools and none
    for row in result["candidates"]:
        assert {"method", "bytes", "query", "pool", "metrics", "microseconds"} <= set(row)
        for kept in row["metrics"].values():
            assert {"value", "kept", "low", "high"} == set(kept)
            assert 0 <= kept["low"] <= kept["kept"] <= kept["high"]
        assert row["bytes_with_model"] > row["bytes"]
    chosen = result["recommendation"]
    assert chosen["holds"]
    assert chosen["metrics"]["overlap@10"]["low"] >= 0.9
    assert chosen["sentence"].startswith(f"{chosen['bytes']} bytes, {chosen['method']}")


def test_the_recommended_one_and_all_its_larger_pools_reach_the_target(compressed):
    chosen = compressed.recommendation
    way = [
        row
        for row in compressed.result["candidates"]
        if all(row[key] == chosen[key] for key in ("method", "bytes", "query"))
    ]
    larger = [row for row in way if (row["pool"] or 0) >= (chosen["pool"] or 0)]
    assert all(row["metrics"]["overlap@10"]["low"] >= chosen["target"] for row in larger)


def test_a_method_whose_queries_have_no_bits_is_asked_by_real_numbers_only(vectors, tmp_path):
    settings = {**SETTINGS, "methods": ["additive"], "n_bytes": [2]}
    compressed = compress(vectors["items"], vectors["queries"], out=tmp_path / "out", **settings)
    assert {row["query"] for row in compressed.result["candidates"]} == {"real"}
    distances, ids = compressed.search(vectors["queries"][:3], k=4)
    again = load(tmp_path / "out").search(vectors["queries"][:3], k=4)
    np.testing.assert_array_equal(again[1], ids)
    assert distances.shape == (3, 4)


def test_the_folder_is_ready_to_use(compressed, vectors):
    folder = compressed.folder
    codes = load_model(folder / "model").encode(vectors["items"])
    assert HammingIndex.load(folder / "index").codes() == codes
    assert (folder / "codes.npy").exists()
    assert f"rankbits search {folder}" in (folder / "README.md").read_text()
    assert not (folder.parent / ".out.work").exists()


def test_a_search_gives_what_was_measured(compressed, vectors):
    """Overlap of the answers with a brute-force ranking is the value of the recommended row."""
    _, ids = load(compressed.folder).search(vectors["queries"], k=10)
    units = vectors["items"] / np.linalg.norm(vectors["items"], axis=1, keepdims=True)
    exact = np.argsort(-(vectors["queries"] @ units.T), axis=1)[:, :10]
    shares = [np.isin(a, b).mean() for a, b in zip(exact, ids, strict=True)]
    keys = ("method", "bytes", "query", "pool")
    chosen = compressed.recommendation
    row = next(
        row
        for row in compressed.result["candidates"]
        if all(row[key] == chosen[key] for key in keys)
    )
    assert np.mean(shares) == pytest.approx(row["metrics"]["overlap@10"]["value"], abs=1e-9)


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def whole(vectors, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    return compress(vectors["items"], vectors["queries"], out=out, **SETTINGS).result


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_run_leaves_no_folder_and_goes_on_where_it_stopped(
    vectors, whole, tmp_path, after
):
    def run(out, report):
        return compress(vectors["items"], vectors["queries"], out=out, report=report, **SETTINGS)

    lines = []

    def kill(line):
        lines.append(line)
        if len(lines) > after:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path / "out", kill)
    assert not (tmp_path / "out").exists()
    again = []
    resumed = run(tmp_path / "out", again.append)
    n_finished = sum("finished before" in line for line in again)
    assert n_finished >= max(0, after - 2)
    assert without_times(resumed.result) == without_times(whole)


def test_a_result_is_replaced_and_nothing_else_is(compressed, vectors, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(InputError, match="holds something else"):
        compress(vectors["items"], out=tmp_path / "mine", **SETTINGS)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"


def test_labels_decide_by_ndcg(vectors, tmp_path):
    done = compress(
        vectors["items"],
        vectors["queries"],
        out=tmp_path / "out",
        query_labels=vectors["query_labels"],
        item_labels=vectors["item_labels"],
        **{**SETTINGS, "methods": ["sign"]},
    )
    assert done.result["reference"]["truth"] == "labels"
    assert done.recommendation["metric"] == "nDCG@10"


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_small_types_give_nearly_what_float32_gives(compressed, vectors, tmp_path, dtype):
    scale = 127 / np.abs(vectors["items"]).max() if dtype == "int8" else 1
    items, queries = (
        np.rint(vectors[name] * scale).astype(dtype)
        if dtype == "int8"
        else vectors[name].astype(dtype)
        for name in ("items", "queries")
    )
    done = compress(items, queries, out=tmp_path / "out", keep=0.9, **SETTINGS)
    ours, theirs = (
        [row["metrics"]["overlap@10"]["kept"] for row in one.result["candidates"]]
        for one in (done, compressed)
    )
    np.testing.assert_allclose(ours, theirs, atol=0.08)


def test_if_nothing_keeps_enough_it_says_what_would(vectors, tmp_path):
    done = compress(
        vectors["items"],
        vectors["queries"],
        out=tmp_path / "out",
        keep=1.0,
        **{**SETTINGS, "pools": (), "n_bytes": 2, "methods": ["sign"]},
    )
    chosen = done.recommendation
    assert not chosen["holds"]
    assert chosen["sentence"].startswith("Nothing tried keeps 100 %")
    assert "More bytes than 2 would keep more" in chosen["advice"]


def test_a_length_that_a_method_cannot_make_is_left_out_and_told(vectors, tmp_path):
    done = compress(
        vectors["items"], vectors["queries"], out=tmp_path / "out",
        **{**SETTINGS, "n_bytes": (4, 8), "methods": ["sign", "lsh"]},
    )  # fmt: skip
    assert any("sign of 8 bytes: n_bits must be at most 32" in n for n in done.result["notes"])
    assert {(row["method"], row["bytes"]) for row in done.result["candidates"]} == {
        ("sign", 4), ("lsh", 4), ("lsh", 8)
    }  # fmt: skip


def test_another_folder_is_not_a_result(tmp_path):
    with pytest.raises(InputError, match="there is no"):
        load(tmp_path / "nowhere")
    with pytest.raises(FileFormatError, match="not a folder that rankbits compress wrote"):
        load(tmp_path)
