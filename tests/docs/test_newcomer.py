"""From a fresh clone, what the README says works; the environment is the one of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from newcomer import ROOT, clone, run_snippets, snippets

pytest.importorskip("torch")
pytest.importorskip("jinja2")

PREFIX = Path(sys.prefix)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    folder = tmp_path_factory.mktemp("newcomer") / "rankbits"
    clone(folder)
    return folder


def make(folder, *arguments):
    """Run make, without the installation."""
    command = ["make", *arguments, f"VENV={PREFIX}", "-o", str(PREFIX / ".installed")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_make_demo_writes_the_page(folder):
    printed = make(folder, "demo")
    assert "talr-ap" in printed
    assert "<svg" in (folder / "out" / "demo" / "index.html").read_text()


def test_make_test_runs_linters_types_and_tests(folder):
    planned = make(folder, "--dry-run", "test")
    assert all(tool in planned for tool in ("ruff", "mypy", "lint-imports", "pytest"))


def test_continuous_integration_runs_the_test_command_of_the_readme_and_the_slow_tests(folder):
    commands = (folder / ".ci" / "run").read_text().splitlines()
    assert {"make test", "make test-slow"} <= set(commands)
    assert '-m "not slow"' in make(folder, "--dry-run", "test")
    assert "-m slow" in make(folder, "--dry-run", "test-slow")


@pytest.mark.slow
def test_the_snippets_of_the_readme_run_as_printed(folder, tmp_path):
    readme = (ROOT / "README.md").read_text()
    printed = run_snippets(readme, tmp_path, PREFIX / "bin")
    assert printed.splitlines() == [
        "BinaryCodes(n=297, n_bits=32)",
        "True",
        "True",
        "True",
        "(297, 10) int64",
    ]
    assert (tmp_path / "nearest.npz").exists()


def test_all_code_of_a_page_is_taken():
    page = "```python\na = 1\n```\n```console\n$ rankbits fit \\\n    x\n{\n$ rankbits y\n```\n"
    assert snippets(page) == ("a = 1\n", "rankbits fit \\\n    x\nrankbits y")


def test_the_picture_of_the_readme_is_small():
    assert (ROOT / "docs" / "figures" / "demo.png").stat().st_size < 200_000
