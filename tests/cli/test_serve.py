"""`rankbits serve` and `rankbits demo --serve`: one command, and there is a page."""

import json
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

from commands import Command, assert_one_line
from rankbits.index import Collection

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")
call = Command("serve")
MAIN = "from rankbits.cli import main; main()"


@pytest.fixture
def place(tmp_path):
    with Collection.create(tmp_path / "c", 16) as collection:
        collection.add(np.arange(40, dtype=np.uint8).reshape(20, 2))
    return tmp_path / "c"


def start(*arguments):
    """A process, and the JSON that it printed once it was ready."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes)
    text = ""
    while not text.endswith("\n}\n"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        text += line
    return process, text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_where_it_is_and_ends_quietly(place, number):
    process, text = start("serve", place, "--port", "0")
    printed = json.loads(text)
    assert printed["url"].startswith("http://127.0.0.1:")
    assert (printed["items"], printed["bits"], printed["writable"]) == (20, 16, False)
    assert printed["accepts"] == ["codes", "ids"]
    answer = httpx.post(printed["url"] + "/search", json={"ids": [3], "k": 1})
    assert answer.json()["ids"] == [[3]]
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == "open the address in a browser; Ctrl-C ends the server\n"


def test_a_port_that_is_taken_is_one_line(place):
    process, text = start("serve", place, "--port", "0", "--quiet")
    port = json.loads(text)["url"].rsplit(":", 1)[1]
    assert_one_line(call(place, "--port", port), f"127.0.0.1:{port} cannot be listened on")
    process.terminate()
    assert process.communicate(timeout=30)[1] == ""


def test_bad_input_is_one_line(place, tmp_path, monkeypatch):
    monkeypatch.delenv("RANKBITS_TOKEN", raising=False)
    assert_one_line(call(tmp_path / "nothing"), "nothing")
    assert_one_line(call(place, "--model", tmp_path / "nothing"), "nothing")
    assert_one_line(call(place, "--items", tmp_path / "x.jsonl"), "x.jsonl")
    assert_one_line(call(place, "--images", tmp_path / "none"), "none")
    assert_one_line(call(place, "--writable"), "RANKBITS_TOKEN must hold a token")
    assert_one_line(call(place, "--limit", "hours=1"), "--limit must name one of body_bytes, batch")
    assert_one_line(call(place, "--limit", "k=0"), "k must be an integer from 1")
    assert_one_line(call(place, "--writable", "--token-file", tmp_path / "t"), "t")
    np.save(tmp_path / "x.npy", np.zeros((20, 3)))
    assert_one_line(call(place, "--vectors", tmp_path / "x.npy"), "vectors must have the shape")
    with Collection.open(place, writable=True):
        monkeypatch.setenv("RANKBITS_TOKEN", "a-token-of-a-test")
        assert_one_line(call(place, "--writable"), "one writer at a time")


def test_bad_usage_exits_2(place, tmp_path):
    assert call(place, "--port", "99999").exit_code == 2
    assert call(place, "--limit", "k").exit_code == 2
    assert call(place, "--token-file", tmp_path / "t").exit_code == 2


def test_a_missing_extra_is_named(place, hide_package):
    hide_package("uvicorn")
    assert_one_line(call(place, "--port", "0"), "pip install 'rankbits[serve]'")


@pytest.mark.slow
def test_the_demo_serves_its_digits_in_one_step(tmp_path):
    pytest.importorskip("torch")
    process, text = start("demo", "--out", tmp_path / "demo", "--serve", "--port", "0")
    results, address = json.loads(text), ""
    try:
        while not address.endswith("\n}\n"):
            address += process.stdout.readline()
        url = json.loads(address)["url"]
        stats = httpx.get(url + "/stats").json()
        assert (stats["items"], stats["method"], stats["has_vectors"]) == (1500, "talr-ap", True)
        body = {"ids": [0], "include": ["fields"], "by": "weights"}
        fields = httpx.post(url + "/search", json=body).json()["fields"][0]
        assert fields[0]["title"].startswith("A handwritten ")
        assert httpx.get(url + "/items/0/image").headers["content-type"] == "image/png"
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
    served, address = start(*shlex.split(results["serve"])[1:], "--port", "0")
    assert json.loads(address)["items"] == 1500
    served.terminate()
    served.communicate(timeout=30)
