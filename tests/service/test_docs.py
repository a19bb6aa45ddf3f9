"""The examples of docs/serve.md: curl and Python run against a server of the digits."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rankbits.service import create_app
from service.conftest import TOKEN, running

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
ADDRESS = "http://127.0.0.1:8000"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands():
    """Every curl command of the page, on one line."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("curl")]


@pytest.fixture(scope="module")
def url(folder, tmp_path_factory):
    place = folder.copy(tmp_path_factory.mktemp("docs") / "collection")
    with running(create_app(place, token=TOKEN, **folder.settings)) as address:
        yield address


def test_there_are_examples_of_every_route():
    routes = {re.search(r"8000(/\w+)", line)[1] for line in commands()}
    assert routes == {"/search", "/items", "/stats", "/metrics", "/readyz"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", commands())
def test_a_curl_example_is_answered(url, tmp_path, command):
    done = subprocess.run(
        ["bash", "-c", command.replace(ADDRESS, url) + " --fail-with-body"],
        env={**os.environ, "RANKBITS_TOKEN": TOKEN},
        cwd=tmp_path,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout
    if "/search" in command:
        assert {"ids", "milliseconds"} <= set(json.loads(done.stdout))
    if "--output" in command:
        assert (tmp_path / "digit.png").read_bytes().startswith(b"\x89PNG")


def test_the_python_examples_run(url, folder, monkeypatch):
    client, application = blocks("py")
    printed = []
    names = {"x": folder.data.query_x, "print": lambda *values: printed.append(values)}
    exec(client.replace(ADDRESS, url), names)
    assert printed[0][0].shape == (297, 10)
    assert names["codes"] == folder.hasher.encode(folder.data.query_x)

    monkeypatch.chdir(folder.path)
    served = []
    source = application.replace("items.parquet", "items.jsonl")
    names = {"embed": lambda texts: folder.data.query_x[: len(texts)]}
    monkeypatch.setattr("rankbits.service.serve", lambda app, port: served.append((app, port)))
    exec(source, names)
    ((app, port),) = served
    assert port == 8000
    assert app.state.parts.limits.k == 100
    assert "texts" in app.state.parts.accepts
    app.state.parts.close()
