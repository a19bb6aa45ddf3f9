"""On the command line, codes of two models do not meet, and embeddings are not taken for codes."""

import numpy as np
import pytest

from commands import Command, assert_one_line
from rankbits import BinaryCodes, methods

X = np.random.default_rng(3).standard_normal((50, 6)).astype(np.float32)
ENDINGS = (".npy", ".npz", ".parquet", ".safetensors")
encode, evaluate, index = Command("encode"), Command("evaluate"), Command("index")
LABELS = ["--query-labels", "y.npy", "--database-labels", "y.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", np.arange(50) % 5)
    for seed, name in enumerate(("first", "second")):
        methods.get("lsh", n_bits=12, random_state=seed).fit(X).save(name)
    return tmp_path


@pytest.mark.parametrize("ending", ENDINGS)
def test_codes_of_two_models_do_not_meet(folder, ending):
    models = [
        encode.printed(name, "x.npy", "--out", f"{name}{ending}")["fingerprint"]
        for name in ("first", "second")
    ]
    first, second = f"first{ending}", f"second{ending}"
    named = [f"model {model[:12]}..." for model in models]
    index.printed("build", first, "--out", "live")
    assert index.printed("info", "live")["model"] == models[0]
    assert_one_line(index("search", "live", second), *named, "encode both with the same model")
    assert_one_line(index("add", "live", second), *named)
    assert_one_line(index("build", first, second, "--out", "both"), *named)
    assert_one_line(evaluate("--queries", first, "--database", second, *LABELS), *named)
    assert index.printed("search", "live", first, "-k", 1)["distances"] == [[0]] * 50
    evaluate.printed("--queries", first, "--database", first, *LABELS)


def test_codes_without_a_fingerprint_are_searched_as_before(folder):
    encode.printed("first", "x.npy", "--out", "codes.npy")
    codes = BinaryCodes.load("codes.npy")
    np.save("plain.npy", codes.packed)
    index.printed("build", "codes.npy", "--out", "live")
    found = index.printed("search", "live", "plain.npy", "-k", 1)
    assert found["distances"] == [[0]] * 50


def test_embeddings_are_codes_only_if_that_is_said(folder):
    files = ["--queries", "x.npy", "--database", "x.npy", *LABELS]
    for refused in (
        index("build", "x.npy", "--out", "live"),
        index("build", "x.npy", "--bits", 6, "--out", "live"),
        evaluate(*files),
        evaluate(*files, "--bits", 6),
        Command("audit")(*files),
    ):
        assert_one_line(refused, "x.npy must hold codes, got real values", "--codes logits")
    assert not (folder / "live").exists()
    signs = BinaryCodes.from_logits(X)
    signs.save("signs.npy")
    said = evaluate.printed(*files, "--codes", "logits")
    assert said == evaluate.printed("--queries", "signs.npy", "--database", "signs.npy", *LABELS)
    index.printed("build", "x.npy", "--codes", "logits", "--out", "live")
    assert_one_line(index("search", "live", "x.npy"), "--codes logits")
    index.printed("search", "live", "x.npy", "--codes", "logits")
