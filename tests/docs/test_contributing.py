"""The recipes show how to add things; this does what they show, file by file, line by line."""

import importlib
import json
import re
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rankbits
from rankbits import BinaryCodes, affinity, benchmark, evaluate, methods, metrics
from rankbits.benchmark import _protocols
from rankbits.cli import app
from rankbits.datasets import digits
from rankbits.errors import InputError
from rankbits.index import HammingIndex, engines
from rankbits.index.engines import cache
from rankbits.methods import registry
from rankbits.metrics import _names

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "contributing" / "recipes.md").read_text()
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"`(src/[\w/]+\.py)`[^\n]*:\n\n```python\n(.*?)```", re.DOTALL)
SECTIONS = {title: BLOCK.findall(text) for title, text in SECTION.findall(TEXT)}
MOST_LINES = 13


@pytest.fixture
def add_file(tmp_path, monkeypatch):
    """Write a file of the package beside it, where it is imported as if it were there."""

    def add(path, source):
        *folders, name = Path(path).relative_to("src").with_suffix("").parts
        package = importlib.import_module(".".join(folders))
        folder = tmp_path / "added" / Path(*folders)
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(source)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        full_name = ".".join([*folders, name])
        monkeypatch.setitem(sys.modules, full_name, None)  # forgotten after the test
        del sys.modules[full_name]
        return importlib.import_module(full_name)

    return add


def line_of(path, line, namespace):
    """What a line of a list or of a table stands for."""
    assert (ROOT / path).exists()
    brackets = "{}" if re.match(r'"[\w-]+":', line) else "[]"
    return eval(f"{brackets[0]}{line}{brackets[1]}", namespace)


def clustered_rows(n=60):
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    return (4 * rng.standard_normal((3, 6)))[y] + rng.standard_normal((n, 6)), y


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_is_about_ten_lines(title):
    (_, source), *_ = SECTIONS[title]
    lines = [line for line in source.splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("import ", "from "))]) <= MOST_LINES


def test_a_method_without_gradients(add_file, monkeypatch, tmp_path):
    (file, source), (table, line) = SECTIONS["A method without gradients"]
    add_file(file, source)
    ((name, method),) = line_of(table, line, vars(registry)).items()
    monkeypatch.setitem(registry.METHODS, name, method)
    assert name in methods.names()
    x, _ = clustered_rows()
    hasher = methods.get(name, n_bits=6).fit(x)
    assert np.array_equal(hasher.encode(x).bits(), x > np.median(x, axis=0))
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(x) == hasher.encode(x)
    with pytest.raises(InputError, match="quantile must be a number from 0 and below 1, got 2"):
        methods.get(name, n_bits=6, quantile=2).fit(x)


def test_a_method_trained_by_gradients_with_a_loss_of_its_own(add_file, monkeypatch, tmp_path):
    pytest.importorskip("rankbits.methods.training")
    (file, source), (table, line) = SECTIONS[
        "A method trained by gradients, with a loss of its own"
    ]
    add_file(file, source)
    ((name, method),) = line_of(table, line, vars(registry)).items()
    monkeypatch.setitem(registry.METHODS, name, method)
    x, y = clustered_rows(240)
    hasher = methods.get(name, n_bits=16, encoder="linear", random_state=0, n_threads=1).fit(x, y)
    codes = hasher.encode(x)
    scores = evaluate(codes, codes, affinity.classes(y, y), exclude_self=True)
    assert scores.mean["AP"] > 0.95
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(x) == codes


def test_a_kind_of_encoder(add_file, monkeypatch, tmp_path):
    kinds = pytest.importorskip("rankbits.methods.training.kinds")
    (file, source), (table, line) = SECTIONS["A kind of encoder"]
    add_file(file, source)
    ((name, kind),) = line_of(table, line, vars(kinds)).items()
    monkeypatch.setitem(kinds.KINDS, name, kind)
    y = np.arange(60) % 3
    images = (
        np.random.default_rng(0).integers(0, 99, (60, 4, 4, 3))
        + 99 * np.eye(3, dtype=int)[y, None, None]
    )
    hasher = methods.get("talr-ap", n_bits=8, encoder=name, random_state=0, n_threads=1)
    codes = hasher.fit(images.astype(np.uint8), y).encode(images.astype(np.uint8))
    assert evaluate(codes, codes, affinity.classes(y, y), exclude_self=True).mean["AP"] > 0.95
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(images.astype(np.uint8)) == codes


def test_a_metric(add_file, monkeypatch):
    (file, source), (listing, line) = SECTIONS["A metric"]
    monkeypatch.setattr(_names, "_METRICS", dict(_names._METRICS))
    module = add_file(file, source)
    (name,) = line_of(listing, line, {})
    assert name == Path(file).stem
    metrics.register(module.METRIC)
    query, items = BinaryCodes.from_bits([[0, 0]]), BinaryCodes.from_bits([[0, 0], [0, 1], [1, 0]])
    levels = [1, 0, 3]
    orders = [order for order in permutations(range(3)) if order[0] == 0]  # items 1 and 2 tie
    for k in (1, 2, 3):
        scores = evaluate(query, items, affinity.levels([levels]), f"CG@{k}")
        sums = [sum(levels[item] for item in order[:k]) for order in orders]
        assert scores.mean[f"CG@{k}"] == np.mean(sums)


def test_a_protocol(monkeypatch, tmp_path):
    ((listing, line),) = SECTIONS["A protocol"]
    (protocol,) = line_of(listing, line, vars(_protocols))
    monkeypatch.setattr(_protocols, "_BY_NAME", dict(_protocols._BY_NAME))
    benchmark.register(protocol)
    data = digits()
    x, y = np.concatenate([data.database_x, data.query_x]), [*data.database_y, *data.query_y]
    rows = {"x_train": x[:1500], "y_train": y[:1500], "x_test": x[1500:], "y_test": y[1500:]}
    np.savez(tmp_path / "digits.npz", **rows)
    done = CliRunner().invoke(app, ["bench", "digits", "--data", str(tmp_path), "--method", "lsh"])
    assert done.exit_code == 0, done.output

    split = protocol.split.draw(rankbits.datasets.load_features(tmp_path / "digits.npz"), 0)
    hasher = methods.get("lsh", n_bits=16, random_state=0).fit(x[split.training])
    relevant = affinity.classes(np.array(y)[split.queries], np.array(y)[split.database])
    codes = hasher.encode(x[split.queries]), hasher.encode(x[split.database])
    (row,) = json.loads(done.stdout)["summary"]
    assert row["metrics"]["AP"]["mean"] == evaluate(*codes, relevant).mean["AP"]


def test_a_kind_of_index(add_file, monkeypatch, rng):
    (file, source), (listing, line) = SECTIONS["A kind of index"]
    monkeypatch.setattr(engines, "_ENGINES", dict(engines._ENGINES))
    monkeypatch.setattr(cache, "FEW", 0)  # else few items are scanned whatever the kind
    (engine,) = line_of(listing, line, vars(add_file(file, source)))
    engines.register(engine)
    codes = BinaryCodes.from_bits(rng.integers(0, 2, (700, 12)))
    queries = BinaryCodes.from_bits(rng.integers(0, 2, (5, 12)))
    plain, scan = HammingIndex(12, engine.name), HammingIndex(12, "scan")
    for index in (plain, scan):
        index.add(codes)
        index.remove(range(0, 700, 9))
    for answer, expected in zip(answers(plain, queries), answers(scan, queries), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(answer, expected, strict=True))


def answers(index, queries):
    """What an index returns for every form of search."""
    yield index.search(queries, 10)
    yield index.search(queries, 10, ties="complete")
    yield index.search(queries, 10, allowed=np.array([1, 3, 5, 7, 11]))
    yield index.within(queries, 3)


def test_every_section_is_done_by_a_test():
    titles = {re.sub(r"\W+", "_", title).lower() for title in SECTIONS}
    assert {f"test_{title}" for title in titles} <= set(globals())
    assert len(titles) == 6
