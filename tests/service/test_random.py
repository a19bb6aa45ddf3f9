"""Thousands of random requests, and what the description of the API allows: never a 500."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from rankbits.service import create_app
from service.conftest import TOKEN, running
from service.random_requests import run


@pytest.fixture
def url(folder, tmp_path):
    place = folder.copy(tmp_path / "collection")
    with running(create_app(place, token=TOKEN, **folder.settings)) as address:
        yield address


def test_random_requests_are_answered_or_refused(url):
    statuses = run(url, 600, seed=1, token=TOKEN)
    assert statuses[200] > 50
    assert statuses[422] > 100
    assert httpx.get(url + "/readyz").status_code == 200


@pytest.mark.slow
def test_schemathesis_finds_nothing(url, tmp_path):
    pytest.importorskip("schemathesis")
    command = [
        sys.executable,
        "-c",
        "from schemathesis.cli import schemathesis; schemathesis()",
        "--config-file",
        str(Path(__file__).parent / "schemathesis.toml"),
        "run",
        f"{url}/openapi.json",
        "--max-examples",
        "30",
        "--seed",
        "7",
        "-H",
        f"Authorization: Bearer {TOKEN}",
        "--checks",
        "all",
    ]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
