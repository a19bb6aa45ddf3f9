"""Every command, in a folder with files of the user's: each of them stays byte for byte."""

import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from made_results import made_result, write_result
from rankbits import methods
from rankbits.cli import app
from rankbits.index import HammingIndex

COMMANDS = {
    "fit": "fit {x} --method lsh --bits 8 --out {out}",
    "fit over": "fit {x} --method lsh --bits 8 --out {out} --overwrite",
    "encode": "encode {model} {x} --out {out}/codes.npy",
    "index build": "index build {codes} --out {out}",
    "index build over": "index build {codes} --out {out} --overwrite",
    "index build shards": "index build {codes} --out {out} --shards 2",
    "index add": "index add {out} {codes}",
    "index search": "index search {index} {codes} --out {out}/nearest.npz",
    "compress": "compress {x} --bytes 1 --method lsh --pool 20 --no-onnx --out {out}",
    "compress over": "compress {x} --bytes 1 --method lsh --pool 20 --no-onnx --out {out} "
    "--overwrite",
    "report": "report {out} --format html --format markdown --format latex --format csv",
    "figures": "report {out} --format svg",
    "papers": "papers talr-fig1 --out {out}",
}
NAMES = [
    "notes.txt", "index.html", "tables.md", "tables.tex", "cells.csv", "exact-talr-fig1.json",
    "README.md", "result.json", "vectors.npy", "model/notes.txt", "index/notes.txt", "model.bak",
    "shard-00000/notes.txt", "segments/notes.txt", "figures/talr-fig1.svg", ".hidden",
    "collection.sqlite.bak", "model.json.bak", "items.npy",
]  # fmt: skip
OWN = ("nothing", "model", "index", "result", "report")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Inputs, and folders as commands leave them."""
    place = tmp_path_factory.mktemp("place")
    rows = np.random.default_rng(0).standard_normal((150, 6)).astype(np.float32)
    np.save(place / "x.npy", rows)
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(rows)
    hasher.encode(rows).save(place / "codes.npy")
    for name in OWN:
        (place / name).mkdir()
    hasher.save(place / "model")
    index = HammingIndex(8)
    index.add(hasher.encode(rows))
    index.save(place / "index")
    assert run(place, "compress", place / "result").exit_code == 0
    write_result(place / "report", made_result("clinc150", "itq", 16))
    assert run(place, "report", place / "report").exit_code == 0
    return place


def run(place, command, out):
    names = {name: place / name for name in ("model", "index")}
    names |= {"x": place / "x.npy", "codes": place / "codes.npy", "out": out}
    return CliRunner().invoke(app, [word.format(**names) for word in COMMANDS[command].split()])


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(OWN), st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_what_the_user_has_put_there_stays(tmp_path_factory, place, command, own, names):
    tmp_path = tmp_path_factory.mktemp("there")
    out = tmp_path / "out"
    shutil.copytree(place / own, out)
    contents = {}
    for name in names:
        path = out / name
        if path.exists() and own != "nothing":  # our own, which it may replace
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(12))
        contents[path] = path.read_bytes()
    done = run(place, command, out)
    assert done.exit_code in (0, 1), done.output
    assert {path: path.read_bytes() for path in contents if path.exists()} == contents
    if done.exit_code == 1:
        assert done.stderr.splitlines()[-1].startswith("error: ")
