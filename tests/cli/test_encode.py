"""`rankbits encode`: the codes of the model, however the work was cut up."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankbits
from commands import Command, assert_one_line, interrupted_after
from rankbits import BinaryCodes, methods
from rankbits.cli import _stream
from rankbits.codes import files
from rankbits.datasets import load_codes
from rankbits.methods import base

N_BITS = 21
X = np.random.default_rng(4).standard_normal((1000, 6)).astype(np.float32)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    methods.get("lsh", n_bits=N_BITS, random_state=0).fit(X).save("model")
    np.save("x.npy", X)
    monkeypatch.setattr(base, "_BLOCK_CELLS", 21 * 16)  # 16 rows a block of 21 bits, 64 a step
    monkeypatch.setattr(_stream, "_MARK_SECONDS", 0.0)
    return tmp_path


def wanted(x=X):
    return rankbits.load("model").encode(x)


call = Command("encode")
printed = call.printed


def test_the_file_holds_the_codes_of_the_model_byte_for_byte(folder):
    found = printed("model", "x.npy", "--out", "codes.npy")
    wanted().save("wanted.npy")
    assert BinaryCodes.load("codes.npy") == wanted()
    assert (folder / "codes.npy").read_bytes() == (folder / "wanted.npy").read_bytes()
    assert found.pop("seconds") >= 0
    assert found == {
        "model": "model",
        "fingerprint": wanted().model,
        "out": "codes.npy",
        "as": "items",
        "bits": N_BITS,
        "items": 1000,
        "resumed_from": 0,
    }


def test_nothing_but_the_codes_is_left(folder):
    printed("model", "x.npy", "--out", "codes.npy")
    assert sorted(os.listdir()) == ["codes.npy", "model", "x.npy"]


def test_several_files_of_several_kinds_are_one_after_the_other(folder):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X[:500].ravel()), 6)
    pq.write_table(pa.table({"x": lists}), "a.parquet", row_group_size=77)
    np.savez("b.npz", x=X[500:700], y=X[:1])
    np.save("c.npy", X[700:])
    printed("model", "a.parquet", "b.npz:x", "c.npy", "--out", "codes.npy")
    assert BinaryCodes.load("codes.npy") == wanted()


@pytest.mark.parametrize("ending", files.ENDINGS)
def test_codes_of_every_format_come_back_with_their_length_and_their_model(folder, ending):
    printed("model", "x.npy", "--out", f"codes{ending}")
    for load in (load_codes, BinaryCodes.load):
        codes = load(f"codes{ending}")
        assert (codes, codes.n_bits, codes.model) == (wanted(), N_BITS, wanted().model)
    assert sorted(os.listdir()) == [f"codes{ending}", "model", "x.npy"]


def interrupted(monkeypatch, n_blocks, error=KeyboardInterrupt, inputs=("x.npy",)):
    """Let the run end after so many blocks."""
    real, seen = _stream.ResumeMark.keep_up, []

    def keep_up(self, file, n_rows):
        real(self, file, n_rows)
        seen.append(n_rows)
        if len(seen) == n_blocks:
            raise error

    monkeypatch.setattr(_stream.ResumeMark, "keep_up", keep_up)
    done = call("model", *inputs, "--out", "codes.npy")
    monkeypatch.setattr(_stream.ResumeMark, "keep_up", real)
    return done


def test_a_run_that_was_cut_off_goes_on_where_it_stopped(folder, monkeypatch):
    assert interrupted(monkeypatch, 5).exit_code == 130
    assert not os.path.exists("codes.npy")
    assert printed("model", "x.npy", "--out", "codes.npy")["resumed_from"] == 5 * 64
    assert BinaryCodes.load("codes.npy") == wanted()
    assert sorted(os.listdir()) == ["codes.npy", "model", "x.npy"]


@pytest.mark.parametrize("n_blocks", [2, 5, 8])
def test_a_run_over_several_files_goes_on_in_the_right_one(folder, monkeypatch, n_blocks):
    parts = [X[:100], X[100:300], X[300:]]  # in blocks of 64: 2, 4 and 11
    inputs = [f"{k}.npy" for k in range(3)]
    for path, part in zip(inputs, parts, strict=True):
        np.save(path, part)
    interrupted(monkeypatch, n_blocks, inputs=inputs)
    found = printed("model", *inputs, "--out", "codes.npy")
    assert found["resumed_from"] == {2: 100, 5: 292, 8: 428}[n_blocks]
    assert BinaryCodes.load("codes.npy") == wanted()


def test_a_longer_partial_file_of_another_run_leaves_no_trace(folder):
    (folder / ".codes.npy.partial").write_bytes(b"\xff" * 100_000)
    printed("model", "x.npy", "--out", "codes.npy")
    wanted().save("wanted.npy")
    assert (folder / "codes.npy").read_bytes() == (folder / "wanted.npy").read_bytes()


def test_rows_that_were_not_known_to_be_on_the_disk_are_encoded_again(folder, monkeypatch):
    interrupted(monkeypatch, 5)
    with open(".codes.npy.partial", "r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"\xff" * 40)
    assert printed("model", "x.npy", "--out", "codes.npy")["resumed_from"] == 5 * 64
    assert BinaryCodes.load("codes.npy") == wanted()


def test_a_full_disk_leaves_what_was_encoded(folder, monkeypatch):
    done = interrupted(monkeypatch, 3, OSError(28, "No space left on device"))
    assert_one_line(done, "No space left on device")
    assert printed("model", "x.npy", "--out", "codes.npy")["resumed_from"] == 3 * 64
    assert BinaryCodes.load("codes.npy") == wanted()


def other_model():
    methods.get("lsh", n_bits=N_BITS, random_state=1).fit(X).save("model")


def other_content():
    np.save("x.npy", X[::-1])
    os.utime("x.npy", ns=(1, 1))


def cut_partial():
    os.truncate(".codes.npy.partial", 200)


def other_head():
    with open(".codes.npy.partial", "r+b") as file:
        file.write(b"\x93NUMPX")


def broken_note():
    with open(".codes.npy.partial.json", "w") as file:
        file.write('{"rows": 64')


def false_note():
    with open(".codes.npy.partial.json") as file:
        note = json.load(file)
    with open(".codes.npy.partial.json", "w") as file:
        json.dump({**note, "rows": "many"}, file)


@pytest.mark.parametrize(
    "change", [other_model, other_content, cut_partial, other_head, broken_note, false_note]
)
def test_what_is_not_of_the_same_model_and_input_is_not_gone_on_with(folder, monkeypatch, change):
    interrupted(monkeypatch, 5)
    change()
    assert printed("model", "x.npy", "--out", "codes.npy")["resumed_from"] == 0
    assert BinaryCodes.load("codes.npy") == wanted(np.load("x.npy"))


SCRIPT = """
import sys
from rankbits.cli import _stream, main
from rankbits.methods import base
base._BLOCK_CELLS, _stream._MARK_SECONDS = 21 * 16, 0.0
print("ready", file=sys.stderr, flush=True)
main()
"""


def test_kills_at_random_moments_lose_nothing(folder):
    big = np.tile(X, (40, 1)) + np.arange(40_000, dtype=np.float32)[:, None] % 7
    np.save("x.npy", big)
    command = [sys.executable, "-c", SCRIPT, "encode", "model", "x.npy", "--out", "codes.npy"]
    dice, resumed = random.Random(2), []
    for _ in range(3):
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as work:
            assert work.stderr.readline() == b"ready\n"
            while not os.path.exists(".codes.npy.partial.json"):
                assert work.poll() is None
                time.sleep(0.001)
            time.sleep(dice.uniform(0, 0.1))
            work.send_signal(signal.SIGKILL)
        with open(".codes.npy.partial.json") as note:
            resumed.append(json.load(note)["rows"])
    assert resumed == sorted(resumed)
    assert printed("model", "x.npy", "--out", "codes.npy")["resumed_from"] == resumed[-1] > 0
    assert BinaryCodes.load("codes.npy") == wanted(big)


def test_a_target_that_another_process_writes_is_refused(folder):
    with _stream._partial_file("codes.npy"):
        done = call("model", "x.npy", "--out", "codes.npy")
    assert_one_line(done, "codes.npy is being written by another process")


@pytest.mark.parametrize("kind", ["link", "dangling link", "other name", "pipe", "folder"])
def test_nothing_is_written_through_what_lies_at_the_name_of_the_partial_file(folder, kind):
    """Its name can be guessed, so somebody else may have put something there."""
    (folder / "thesis.tex").write_text("years of work")
    partial = folder / ".codes.npy.partial"
    if kind == "link":
        partial.symlink_to("thesis.tex")
    elif kind == "dangling link":
        partial.symlink_to("new.tex")
    elif kind == "other name":
        os.link("thesis.tex", partial)
    elif kind == "pipe":
        os.mkfifo(partial)
    else:
        partial.mkdir()
    before = sorted(os.listdir())
    assert_one_line(call("model", "x.npy", "--out", "codes.npy"), "codes.npy.partial must be a")
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert sorted(os.listdir()) == before


def test_a_partial_file_of_another_user_is_not_continued(folder, monkeypatch):
    (folder / ".codes.npy.partial").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert_one_line(call("model", "x.npy", "--out", "codes.npy"), "belongs to another user")


def test_codes_have_the_permissions_that_the_umask_leaves(folder):
    for umask, ending in ((0o002, "npy"), (0o027, "parquet"), (0o077, "npz")):
        before = os.umask(umask)
        try:
            printed("model", "x.npy", "--out", f"codes.{ending}")
        finally:
            os.umask(before)
        assert os.stat(f"codes.{ending}").st_mode & 0o777 == 0o666 & ~umask


def test_bad_rows_are_named_and_nothing_is_left(folder):
    bad = X.copy()
    bad[300, 2] = np.nan
    np.save("bad.npy", bad)
    done = call("model", "x.npy", "bad.npy", "--out", "codes.npy")
    assert_one_line(done, "bad.npy, from row 256 to 319", "NaN in row 44")
    assert sorted(os.listdir()) == ["bad.npy", "model", "x.npy"]


BAD_INPUT = {
    "no model": (["absent", "x.npy", "--out", "c.npy"], "there is no absent"),
    "no rows": (["model", "absent.npy", "--out", "c.npy"], "there is no absent.npy"),
    "other width": (["model", "x5.npy", "--out", "c.npy"], "5 features"),
    "other widths": (["model", "x.npy", "x5.npy", "--out", "c.npy"], "x5.npy has (5,)"),
    "empty": (["model", "x0.npy", "--out", "c.npy"], "at least one row"),
    "over the input": (["model", "x.npy", "--out", "x.npy"], "must not be one of the inputs"),
    "ending": (
        ["model", "x.npy", "--out", "c.bin"],
        "must end in .npy, .npz, .parquet, .safetensors",
    ),
    "no folder": (["model", "x.npy", "--out", "no/c.npy"], "must name a file"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_exits_1_with_one_line(folder, case):
    np.save("x5.npy", X[:, 1:])
    np.save("x0.npy", X[:0])
    before = sorted(os.listdir())
    arguments, reason = BAD_INPUT[case]
    assert_one_line(call(*arguments), reason)
    assert sorted(os.listdir()) == before


def test_bad_usage_exits_2(folder):
    for arguments in (["model", "x.npy"], ["model", "--out", "c.npy"]):
        assert call(*arguments).exit_code == 2


@pytest.mark.unsanitized
def test_a_large_file_is_encoded_in_the_memory_of_a_few_blocks(folder, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    big = np.lib.format.open_memmap("big.npy", "w+", np.float32, (1_000_000, 64))  # sparse on disk
    methods.get("lsh", n_bits=8, random_state=0).fit(np.eye(64)).save("wide")
    tracemalloc.start()
    printed("wide", "big.npy", "--out", "codes.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < big.nbytes / 4
    assert len(BinaryCodes.load("codes.npy")) == len(big)


@pytest.mark.parametrize("seconds", [0.0, 0.1, 1.0])
def test_an_interrupt_exits_130_with_one_line(folder, seconds):
    big = np.lib.format.open_memmap("big.npy", "w+", np.float32, (30_000_000, 6))  # sparse on disk
    big.flush()
    arguments = ["model", *["big.npy"] * 20, "--out", "codes.npy"]
    assert interrupted_after(seconds, "encode", *arguments) == (130, "", "interrupted\n")
    assert not os.path.exists("codes.npy")
