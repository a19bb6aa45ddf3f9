"""Files of ids: one per line, one JSON object per line, or an array."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbits.datasets import load_ids
from rankbits.errors import FileFormatError, InputError

IDS = ["q1", "MED-10", "été 7"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_text_file_has_one_id_per_line(tmp_path, end, last):
    text = end.join(IDS) + (end if last else "")
    (tmp_path / "ids.txt").write_bytes(text.encode())
    assert load_ids(tmp_path / "ids.txt").tolist() == IDS


@pytest.mark.parametrize("key", ["_id", "id"])
def test_a_jsonl_file_has_one_object_per_line_as_in_beir(tmp_path, key):
    lines = [json.dumps({"title": "", key: name, "text": "a\nb"}) for name in IDS]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    assert load_ids(tmp_path / "corpus.jsonl").tolist() == IDS
    (tmp_path / "numbers.jsonl").write_text(f'{{"{key}": 7}}\n')
    assert load_ids(tmp_path / "numbers.jsonl").tolist() == ["7"]


def test_an_array_or_a_column_holds_ids(tmp_path):
    np.save(tmp_path / "ids.npy", np.array(IDS))
    np.save(tmp_path / "numbers.npy", np.arange(3))
    pq.write_table(pa.table({"name": IDS, "other": [1, 2, 3]}), tmp_path / "ids.parquet")
    assert load_ids(tmp_path / "ids.npy").tolist() == IDS
    assert load_ids(tmp_path / "numbers.npy").tolist() == [0, 1, 2]
    assert load_ids(f"{tmp_path}/ids.parquet:name").tolist() == IDS
    assert load_ids(tmp_path / "ids.parquet", key="other").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("ids.txt", b"", "must have one id per line, it has none"),
        ("ids.txt", b"\n\n", "must have one id per line, it has none"),
        ("ids.txt", b"a\n\nb\n", r"ids\.txt, line 2 must be an id, got an empty line"),
        ("ids.txt", b"a\n\xff\n", "must be UTF-8 text"),
        ("ids.jsonl", b'{"_id": "a"}\n{"name": "b"}\n', "line 2 must be a JSON object with"),
        ("ids.jsonl", b'{"_id": "a"}\n["b"]\n', "line 2 must be a JSON object with"),
        ("ids.jsonl", b'{"_id": true}\n', "line 1 must be a JSON object with"),
        ("ids.jsonl", b"{\n", "line 1 must be a JSON object with"),
        ("ids.jsonl", b"[" * 100_000, "line 1 must be a JSON object with"),
    ],
)
def test_a_line_without_an_id_is_named(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=reason):
        load_ids(tmp_path / name)


@pytest.mark.parametrize("array", [np.zeros((2, 2), int), np.array([0.5]), np.zeros(0, int)])
def test_an_array_of_something_else_is_refused(tmp_path, array):
    np.save(tmp_path / "ids.npy", array)
    with pytest.raises(InputError, match=r"ids\.npy must hold ids, strings or integers"):
        load_ids(tmp_path / "ids.npy")


@pytest.mark.parametrize("name", ["absent.txt", "absent.jsonl", "absent.npy"])
def test_a_file_that_does_not_exist_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="there is no"):
        load_ids(tmp_path / name)


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_one_long_id_costs_its_own_length(tmp_path, ending):
    ids = ["x" * 50_000, *map(str, range(2000))]
    lines = ids if ending == "txt" else [json.dumps({"id": name}) for name in ids]
    (tmp_path / f"ids.{ending}").write_text("\n".join(lines))
    tracemalloc.start()
    loaded = load_ids(tmp_path / f"ids.{ending}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.tolist() == ids
    assert peak < 3_000_000  # as texts of one width they would be 400 MB
