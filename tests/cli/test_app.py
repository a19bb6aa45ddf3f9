import signal
import sys
import warnings

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import rankbits
from rankbits import BinaryCodes
from rankbits.cli import app, main
from rankbits.cli._inputs import input_errors_exit_1
from rankbits.cli._output import note, progress_bar, quiet_if


def test_the_version_is_printed():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"{rankbits.__version__}\n")


def test_quiet_leaves_nothing_on_standard_error_but_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes, labels = BinaryCodes.from_bits(np.eye(3)), np.array([0, 1, 2])
    codes.save("q.npy")
    codes[:2].save("d.npy")
    np.save("yq.npy", labels)
    np.save("yd.npy", labels[:2])
    arguments = ["evaluate", "--queries", "q.npy", "--database", "d.npy"]
    arguments += ["--query-labels", "yq.npy", "--database-labels", "yd.npy"]
    loud = CliRunner().invoke(app, arguments)
    silent = CliRunner().invoke(app, [*arguments, "--quiet"])
    assert loud.stderr.startswith("warning: 1 of 3 queries")
    assert (silent.exit_code, silent.stderr, silent.stdout) == (0, "", loud.stdout)
    assert CliRunner().invoke(app, arguments).stderr == loud.stderr
    wrong = CliRunner().invoke(app, [*arguments, "--quiet", "--database", "none.npy"])
    assert wrong.exit_code == 2
    wrong = CliRunner().invoke(app, ["encode", "none", "x.npy", "--out", "c.npy", "--quiet"])
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (1, 1)


def test_quiet_silences_warnings_and_bars(monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with quiet_if(True), progress_bar("counting") as progress:
        warnings.warn("nobody should see this", stacklevel=1)
        note("nor this")
        assert progress is None
    assert capfd.readouterr().err == ""
    note("but this")
    assert capfd.readouterr().err == "but this\n"


def test_an_unknown_command_is_bad_usage():
    assert CliRunner().invoke(app, ["evalute"]).exit_code == 2


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the parent of the tests ignores it, as `make test &` does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_outside_a_command_exits_130(monkeypatch, capsys, interruptible):
    def interrupted():
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys.modules["rankbits.cli._app"], "app", interrupted)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize("code", [0, 1, 2])
def test_other_endings_are_left_as_they_are(monkeypatch, capsys, code):
    monkeypatch.setattr(sys.modules["rankbits.cli._app"], "app", lambda: sys.exit(code))
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == code
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_inside_a_command_exits_130_quietly(capsys, interruptible):
    with pytest.raises(typer.Exit) as caught, input_errors_exit_1():
        signal.raise_signal(signal.SIGINT)
    assert caught.value.exit_code == 130
    assert capsys.readouterr() == ("", "")


def test_the_bar_is_silent_unless_standard_error_is_a_terminal(capfd):
    with progress_bar("counting") as progress:
        assert progress is None
    assert capfd.readouterr().err == ""


def test_the_bar_shows_up_only_after_a_while(monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("counting") as progress:
        progress(1, 2)
    assert "counting" not in capfd.readouterr().err
    monkeypatch.setattr("rankbits.cli._output._SECONDS_BEFORE_BAR", -1.0)
    with progress_bar("counting") as progress:
        progress(1, 2)
    shown = capfd.readouterr()
    assert "counting" in shown.err
    assert shown.out == ""
