"""The site builds offline without a warning, and has a place for every public name."""

import inspect
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from oracles.public_names import public_methods, public_objects

pytest.importorskip("torch")
pytest.importorskip("mkdocstrings_handlers.python")

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow  # the site is built once


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def documented(site):
    """The names that the site has, as its inventory lists them for other sites."""
    *_, content = (site / "objects.inv").read_bytes().split(b"\n", 4)
    return {line.split()[0] for line in zlib.decompress(content).decode().splitlines()}


def test_every_public_name_and_method_is_in_the_reference(documented):
    objects = public_objects()
    classes = {path: cls for path, cls in objects.items() if inspect.isclass(cls)}
    methods = {f"{path}.{name}" for path, cls in classes.items() for name in public_methods(cls)}
    missing = {*objects, *methods} - documented
    assert not missing, sorted(missing)


def test_the_site_asks_nobody_else_for_anything(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    foreign = [
        str(page)
        for page in pages
        if any(mark in page.read_text() for mark in ('src="http', 'stylesheet" href="http'))
    ]
    assert pages
    assert foreign == []
