"""rankbits.open opens whatever rankbits wrote, by what a folder holds."""

import numpy as np
import pytest

import rankbits
from rankbits import methods
from rankbits._open import RESULT
from rankbits.compress import _folder
from rankbits.errors import InputError
from rankbits.index import Collection


def test_a_result_has_the_name_that_compress_gives_it():
    assert RESULT == _folder.RESULT


def test_a_collection_is_opened_to_search_or_to_write(tmp_path):
    with Collection.create(tmp_path / "c", 8) as made:
        made.add(np.array([[1], [2]], np.uint8))
    with rankbits.open(tmp_path / "c") as opened:
        assert len(opened) == 2
    with rankbits.open(tmp_path / "c", writable=True, kind="scan") as opened:
        opened.remove([0])
        assert opened.kind == "scan"


def test_a_model_is_loaded(tmp_path, rng):
    x = rng.standard_normal((20, 4))
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(x)
    hasher.save(tmp_path / "model")
    assert rankbits.open(tmp_path / "model").encode(x) == hasher.encode(x)
    with pytest.raises(InputError, match="writable must go with a collection"):
        rankbits.open(tmp_path / "model", writable=True)


def test_a_compression_is_searched_by_its_plan(tmp_path, rng):
    from rankbits.compress import compress

    x = rng.standard_normal((300, 8)).astype(np.float32)
    made = compress(x[30:], x[:30], out=tmp_path / "out", n_bytes=(1,))
    opened = rankbits.open(tmp_path / "out")
    assert opened.plan == made.plan
    expected = opened.plan.search(opened.index, opened.model.as_queries(x[:3]), 5, opened.vectors)
    assert np.array_equal(opened.search(x[:3], 5).ids, expected.ids)


@pytest.mark.parametrize(
    ("name", "advice"), [("notes.txt", "none of them"), ("shards.json", "distributed")]
)
def test_anything_else_is_refused(tmp_path, name, advice):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=advice):
        rankbits.open(tmp_path)
