"""The folder of a result: what replaces it, what spares it, and what reads it."""

import copy
import json
import os
import random
import shutil
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compressing import SETTINGS, WIDTH, clusters
from rankbits._json import seal
from rankbits.compress import check, compress, load
from rankbits.compress._inputs import open_vectors
from rankbits.compress._record import FORMAT, VERSION
from rankbits.errors import FileFormatError, InputError, RankbitsError
from rankbits.index import Collection, HammingIndex
from rankbits.report import compress_page

CHEAP = {**SETTINGS, "n_bytes": 2, "methods": ["sign"], "pools": (20,)}


@pytest.fixture
def folder(compressed, tmp_path):
    """A result that a test may change."""
    shutil.copytree(compressed.folder, tmp_path / "out")
    return tmp_path / "out"


def again(vectors, folder, **options):
    return compress(vectors["items"], vectors["queries"], out=folder, **CHEAP, **options)


def files_in(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix[:4] != ".sql"}


def test_a_result_with_a_file_of_the_users_is_refused_by_its_name(vectors, folder):
    for name in ("notes.txt", "model/notes.txt", "photos/cat.jpg"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("keep me")
        before = files_in(folder)
        for overwrite in (False, True):
            with pytest.raises(InputError, match=f"holds something else, {name}; choose another"):
                again(vectors, folder, overwrite=overwrite)
        assert files_in(folder) == before
        (folder / name).unlink()
    (folder / "photos").rmdir()
    assert again(vectors, folder).recommendation["method"] == "sign"


def test_a_result_whose_index_was_changed_is_refused_unless_that_is_said(vectors, folder):
    with Collection.open(folder / "index", writable=True) as collection:
        collection.remove([3])
    with pytest.raises(InputError, match=r"was changed: index/collection\.sqlite .*--overwrite"):
        again(vectors, folder)
    with Collection.open(folder / "index") as collection:
        assert 3 not in collection
    again(vectors, folder, overwrite=True)
    assert 3 in HammingIndex.load(folder / "index")


def test_a_folder_that_only_mentions_us_is_refused(vectors, tmp_path):
    """Such a file made a folder an earlier result, which was removed with all that is in it."""
    (tmp_path / "result.json").write_text('{"rankbits_compress": 1}')
    (tmp_path / "notes.txt").write_text("keep me")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="holds something else"):
            again(vectors, tmp_path, overwrite=overwrite)
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "result.json"]


def test_a_folder_that_holds_what_is_read_is_refused(vectors, folder):
    items = folder / "vectors.npy"
    for source in (items, str(items), np.load(folder / "codes.npy", mmap_mode="r")):
        with pytest.raises(InputError, match="out must not hold what is read"):
            compress(source, vectors["queries"], out=folder, **CHEAP)


def test_a_result_that_a_kill_left_aside_can_be_opened(folder, vectors):
    expected = load(folder).search(vectors["queries"][:3], k=4)[1]
    os.rename(folder, folder.parent / ".out.old")
    np.testing.assert_array_equal(load(folder).search(vectors["queries"][:3], k=4)[1], expected)


def test_a_result_is_found_after_the_process_went_elsewhere(folder, vectors, monkeypatch, tmp_path):
    monkeypatch.chdir(folder.parent)
    opened = load("out")
    monkeypatch.chdir("/")
    assert opened.search(vectors["queries"][:3], k=4)[1].shape == (3, 4)


def test_a_copy_of_another_file_is_not_taken_for_that_of_this_one(tmp_path):
    """A killed run leaves its copy; the next run may read other vectors."""
    for number in range(2):
        rows = pa.FixedSizeListArray.from_arrays(pa.array(np.full(12, float(number))), 3)
        pq.write_table(pa.table({"x": rows}), tmp_path / f"{number}.parquet")
    (tmp_path / "work").mkdir()
    for number in (0, 1):
        path = tmp_path / f"{number}.parquet"
        assert (open_vectors("items", path, tmp_path / "work") == number).all()


def places_in(value, path=()):
    """The path of every value in nested lists and dicts."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(inner, (*path, key))


STRANGE = (None, True, -1, 0, 2**70, 1e308, float("inf"), "", "x" * 3000, [], {}, [[[]]], {"a": 1})


def altered(result, path, value):
    """A copy with one value replaced, or removed if that is Ellipsis."""
    if not path:
        return value if isinstance(value, dict) else {}
    new = copy.deepcopy(result)
    inner = new
    for key in path[:-1]:
        inner = inner[key]
    if value is Ellipsis:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return new


def write_result(folder, result, *, is_sealed):
    content = {k: v for k, v in result.items() if k not in ("format", "version", "json_sha256")}
    data = json.dumps({**result, "json_sha256": "0" * 64}).encode()
    if is_sealed:
        with suppress(ValueError):  # a number that is not finite
            data = seal(FORMAT, VERSION, content)
    (folder / "result.json").write_bytes(data)


def is_refused_in_one_line(function, *arguments):
    """Whether a function refuses its arguments; any other error is the test's."""
    message = ""
    try:
        function(*arguments)
    except RankbitsError as error:
        message = str(error)
    assert "\n" not in message
    return bool(message)


def use(folder, vectors):
    opened = load(folder)
    opened.search(vectors["queries"][:2], k=3)
    repr(opened)


def alterations(result):
    dice = random.Random(4)
    short = {**result, "candidates": result["candidates"][:2], "losers": result["losers"][:1]}
    for path in places_in(short):
        yield altered(short, path, Ellipsis)
        for value in dice.sample(STRANGE, 3):
            yield altered(short, path, value)


def test_a_changed_result_is_refused_in_one_sentence(folder, vectors):
    for result in alterations(load(folder).result):
        write_result(folder, result, is_sealed=False)
        with pytest.raises(FileFormatError, match=r"result\.json") as refusal:
            load(folder)
        assert "\n" not in str(refusal.value)


def test_a_result_that_somebody_has_made_up_is_read_or_refused_in_one_sentence(folder, vectors):
    n_refused = 0
    for result in alterations(load(folder).result):
        write_result(folder, result, is_sealed=True)
        n_refused += is_refused_in_one_line(use, folder, vectors)
    assert n_refused > 100


def test_a_page_of_a_result_that_somebody_has_made_up_is_drawn_or_refused(compressed):
    dice = random.Random(0)
    n_refused = 0
    for result in dice.sample(list(alterations(compressed.result)), 12):
        n_refused += is_refused_in_one_line(compress_page, result)
    assert n_refused


def test_a_made_up_result_is_checked_for_drift_or_refused(folder):
    items, queries = clusters(150, 11)[0], clusters(25, 12)[0]
    result = load(folder).result
    for path, value in (
        (("recommendation", "method"), "no such method"),
        (("recommendation", "bytes"), 2**40),
        (("recommendation", "metrics"), {"overlap@10": {"value": 1}}),
        (("plan", "training_rows"), "many"),
        (("plan",), None),
        (("data", "width"), WIDTH + 1),
        (("similarity",), ["cosine"]),
    ):
        write_result(folder, altered(result, path, value), is_sealed=True)
        with pytest.raises(RankbitsError):
            check(folder, items, queries, n_threads=1)


def test_a_file_without_a_checksum_is_refused(folder):
    for data in (b"", b"[]", b"{}", b"[" * 10**5, b'{"rankbits_compress": 1}', b"\xff"):
        (folder / "result.json").write_bytes(data)
        with pytest.raises(FileFormatError, match=r"result\.json"):
            load(folder)
    (folder / "result.json").unlink()
    with pytest.raises(FileFormatError, match=r"it has no result\.json"):
        load(folder)
