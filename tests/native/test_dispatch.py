"""Which instruction set runs, how many threads, and how the environment chooses both."""

import os
import subprocess
import sys

import pytest

from rankbits import _native
from rankbits.errors import InputError


def run(code, **environment):
    """Run Python code in a process of its own; returns (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout.strip(), done.stderr


ASK = "from rankbits import _native; print(_native.dispatch(), _native.threads(None))"


def test_the_portable_set_is_always_there():
    assert _native.dispatch_levels()[0] == "portable"


def test_a_block_runs_under_the_set_it_asks_for_and_the_one_before_comes_back(dispatch):
    before = _native.dispatch()
    assert before == dispatch
    with _native.dispatched("portable"):
        assert _native.dispatch() == "portable"
    assert _native.dispatch() == before


def test_an_error_in_the_block_brings_the_set_before_back():
    before = _native.dispatch()
    with pytest.raises(RuntimeError), _native.dispatched("portable"):
        raise RuntimeError
    assert _native.dispatch() == before


def test_an_unknown_set_is_refused_and_the_known_ones_named():
    with pytest.raises(InputError, match=r"must be one of portable.*got 'nonsense'"):
        _native.use_dispatch("nonsense")


@pytest.mark.parametrize("level", _native.dispatch_levels())
def test_the_environment_chooses_the_set(level):
    status, out, _ = run(ASK, RANKBITS_DISPATCH=level, RANKBITS_NUM_THREADS="7")
    assert (status, out) == (0, f"{level} 7")


def test_without_a_choice_the_best_set_runs():
    assert run(ASK, RANKBITS_DISPATCH="")[1].split()[0] == _native.dispatch_levels()[-1]


def test_a_set_that_the_environment_misspells_is_refused():
    status, _, err = run(ASK, RANKBITS_DISPATCH="nonsense")
    assert status == 1
    assert "InputError: RANKBITS_DISPATCH must be one of portable" in err


def test_a_misspelt_set_ends_a_command_with_one_line(tmp_path):
    code = f"from rankbits.cli import app; app(['demo', '--out', {str(tmp_path / 'out')!r}])"
    status, _, err = run(code, RANKBITS_DISPATCH="nonsense")
    assert status == 1
    assert err.splitlines()[-1].startswith("error: RANKBITS_DISPATCH must be one of portable")
    assert "Traceback" not in err


def test_threads_are_as_asked_else_as_the_environment_says(monkeypatch):
    monkeypatch.setenv("RANKBITS_NUM_THREADS", "5")
    assert _native.threads(2) == 2
    assert _native.threads(None) == 5
    monkeypatch.delenv("RANKBITS_NUM_THREADS")
    assert 1 <= _native.threads(None) <= os.cpu_count()


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "1025", " "])
def test_a_number_of_threads_that_the_environment_misspells_is_refused(monkeypatch, asked):
    monkeypatch.setenv("RANKBITS_NUM_THREADS", asked)
    with pytest.raises(InputError, match="RANKBITS_NUM_THREADS must be a number from 1 to 1024"):
        _native.threads(None)


@pytest.mark.parametrize("asked", [0, -1, 1025, 1.5, True, "2"])
def test_a_number_of_threads_out_of_range_is_refused(asked):
    with pytest.raises(InputError, match="n_threads must be an integer from 1 to 1024"):
        _native.threads(asked)
