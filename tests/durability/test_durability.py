"""A short slice of each tool of this folder; `make soak` runs them for longer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
unsanitized = pytest.mark.unsanitized  # an alarm, a preloaded library or a fork of its own


def run(tool, tmp_path, *arguments):
    """What a tool counts and its exit code; files in memory do, as nothing here cuts the power."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    command = [sys.executable, HERE / f"{tool}.py", "--folder", folder, *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.stdout.count("\n") == 1, done.stderr
    return json.loads(done.stdout), done.stderr


def holds(tool, tmp_path, *arguments):
    counts, errors = run(tool, tmp_path, *arguments)
    assert counts["violations"] == 0, errors
    return counts


@needs_compiler
@unsanitized
def test_a_writer_killed_at_many_of_its_writes_loses_nothing_it_told(tmp_path):
    assert holds("killing", tmp_path, "--every", 61)["kills_at_calls"] >= 15


@needs_compiler
@unsanitized
def test_a_writer_killed_at_random_loses_nothing_it_told(tmp_path):
    counts = holds("killing", tmp_path, "--random", 15)
    assert counts["kills_at_random"] == 15
    assert counts["told"] > 0


@needs_compiler
@unsanitized
def test_storage_that_fails_leaves_a_state_that_its_writer_can_explain(tmp_path):
    counts = holds("failing", tmp_path, "--every", 71, "--seed", 3)
    assert counts["runs_hit"] > 40


@needs_compiler
@unsanitized
def test_any_call_that_fails_leaves_a_state_that_its_writer_can_explain(tmp_path):
    counts = holds("failing", tmp_path, "--looks", "--random", 10, "--saves", 7, "--seed", 5)
    assert counts["runs_hit"] > 7
    assert counts.get("saves_hit", 0) + counts.get("loads_hit", 0) > 5


@pytest.mark.slow
@needs_compiler
@unsanitized
@pytest.mark.parametrize("error", ["EIO", "EMFILE", "EMFILE on"])
def test_a_call_that_fails_for_a_moment_while_opening_leaves_nothing_behind(tmp_path, error):
    arguments = ("--looks", "--random", 60, "--seed", 6, "--error", error, "--way", "onward")
    assert holds("failing", tmp_path, *arguments)["runs_hit"] > 40


@pytest.mark.slow
@needs_compiler
@unsanitized
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_no_sync_that_fails_at_a_commit_costs_a_segment_that_recovery_needs(tmp_path, error):
    """The writer opens again and sweeps; then it is killed, and its reader too."""
    ways = ("--error", error, "--way", "reopen and stop", "--reader", "yes", "--syncs")
    assert holds("failing", tmp_path, *ways)["runs_hit"] > 20


@unsanitized
def test_files_that_are_cut_or_changed_in_use_give_right_answers_or_errors(tmp_path):
    counts = holds("cutting", tmp_path, "--cases", 80, "--seed", 40)
    assert counts["answered"] > 20
    assert counts["refused"] > 20


@needs_compiler
@unsanitized
def test_a_power_loss_takes_back_nothing_that_was_acknowledged(tmp_path):
    assert holds("power_loss", tmp_path, "--steps", 6, "--random", 3)["distinct_folders"] > 100


@needs_compiler
@unsanitized
@pytest.mark.parametrize("names", ["in order", "unordered"])
def test_a_creation_that_a_power_loss_cut_is_absent_and_can_be_repeated(tmp_path, names):
    options = ["--unordered"] if names == "unordered" else []
    assert holds("power_loss", tmp_path, "--steps", 0, "--random", 40, *options)["absent"] > 20


@pytest.mark.slow
@needs_compiler
@unsanitized
def test_a_power_loss_is_noticed_if_nothing_is_synced(tmp_path):
    """Shows that the model of a disk loses what it should."""
    counts, _ = run(
        "power_loss", tmp_path, "--steps", 6, "--random", 3, "--without-sync", "--keep-going"
    )
    assert counts["by_sort"]["what was acknowledged cannot be opened"] > 20


def test_folders_made_by_strangers_are_read_or_refused_in_one_sentence(tmp_path):
    assert holds("hostile", tmp_path, "--cases", 150)["cases"] == 150


@pytest.mark.slow
def test_models_made_by_strangers_encode_or_are_refused_in_one_sentence(tmp_path):
    counts = holds("hostile_models", tmp_path, "--cases", 168, "--quick", "--seed", 7)
    assert counts["cases"] == 168
    assert len(counts["by_model"]) == 56
    assert counts["served"] > 100
    assert counts["refused"] > 50


def test_a_few_models_made_by_strangers_encode_or_are_refused(tmp_path):
    only = ("--few", "--cases", 60, "--seed", 7)
    assert holds("hostile_models", tmp_path, *only)["cases"] == 60


@unsanitized
def test_an_interrupt_is_a_keyboard_interrupt_and_leaves_a_whole_collection(tmp_path):
    counts = holds("interrupts", tmp_path, "--interrupts", 12, "--commands", 2, "--items", 100_000)
    assert counts["interrupts"] == 12


@pytest.mark.slow
@unsanitized
def test_an_interrupt_while_mih_tables_are_built_is_a_keyboard_interrupt(tmp_path):
    holds("interrupts", tmp_path, "--interrupts", 20, "--commands", 0, "--only", "mih")


@unsanitized
@pytest.mark.parametrize("attack", ["lock", "fork", "reader", "foreign", "link"])
def test_writers_readers_and_strangers_cannot_harm_each_other(tmp_path, attack):
    holds("writers", tmp_path, "--rounds", 8, "--only", attack)
