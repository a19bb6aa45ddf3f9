"""Encoding on a cluster writes the bytes of one machine, or nothing under the final name."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankbits
from clusters import Killer
from commands import Command
from rankbits import BinaryCodes, distributed
from rankbits.distributed import _parts
from rankbits.errors import InputError

pytestmark = pytest.mark.slow

WIDTH, STEP = 1024, 4096  # blocks of a method have a million numbers, four of them go together

DRIVER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it: make test &
import sys
from rankbits import distributed
from rankbits.distributed import _parts
_parts._PART_BYTES = 1
model, out, cluster, *inputs = sys.argv[1:]
print(distributed.encode(model, inputs, out, cluster=cluster).n_resumed)
"""


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((9 * STEP + 77, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def hasher(rows):
    return rankbits.methods.get("lsh", n_bits=30, random_state=0).fit(rows[:500])


@pytest.fixture(scope="module")
def place(tmp_path_factory, rows, hasher):
    """A folder with a model, rows in two files, and the codes of one machine."""
    folder = tmp_path_factory.mktemp("encoding")
    hasher.save(folder / "model")
    np.save(folder / "a.npy", rows[: 5 * STEP + 5])
    np.save(folder / "b.npy", rows[5 * STEP + 5 :])
    inputs = [folder / "a.npy", folder / "b.npy"]
    Command("encode").printed(folder / "model", *inputs, "--out", folder / "serial.npy")
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(_parts, "_PART_BYTES", 1)


def inputs_of(place):
    return [place / "a.npy", place / "b.npy"]


def test_one_file_has_the_bytes_of_one_machine(cluster, small_parts, place, tmp_path):
    out = tmp_path / "codes.npy"
    encoding = distributed.encode(place / "model", inputs_of(place), out)
    assert out.read_bytes() == (place / "serial.npy").read_bytes()
    assert (encoding.n_rows, encoding.n_resumed) == (9 * STEP + 77, 0)
    assert os.listdir(tmp_path) == ["codes.npy"]


def test_a_folder_has_one_file_for_each_input(cluster, hasher, place, tmp_path):
    encoding = distributed.encode(hasher, inputs_of(place), tmp_path / "codes")
    parts = [BinaryCodes.load(path) for path in encoding.files]
    assert BinaryCodes.concatenate(parts) == BinaryCodes.load(place / "serial.npy")
    assert [len(part) for part in parts] == [5 * STEP + 5, 4 * STEP + 72]
    names = ["00000-a.npy", "00001-b.npy", "manifest.json"]
    assert sorted(os.listdir(tmp_path / "codes")) == names
    manifest = json.loads((tmp_path / "codes/manifest.json").read_text())
    assert manifest["is_complete"]
    assert sorted(manifest["outputs"]) == names[:2]


def test_row_groups_of_parquet(cluster, small_parts, place, rows, hasher, tmp_path):
    path, n = tmp_path / "rows.parquet", 2 * STEP + 500
    values = pa.FixedSizeListArray.from_arrays(rows[:n].ravel(), WIDTH)
    pq.write_table(pa.table({"x": values}), path, row_group_size=3000)
    encoding = distributed.encode(hasher, path, tmp_path / "codes.parquet")
    assert BinaryCodes.load(encoding.files[0]) == hasher.encode(rows[:n])


def test_workers_killed_at_random_change_nothing(cluster, small_parts, place, rng, tmp_path):
    out = tmp_path / "codes.npy"
    with Killer(cluster, rng, 0.05, busy_with="perform", most=6) as killer:
        distributed.encode(place / "model", inputs_of(place), out)
    assert killer.n_sent > 0
    assert out.read_bytes() == (place / "serial.npy").read_bytes()
    assert os.listdir(tmp_path) == ["codes.npy"]


def test_a_node_removed_in_the_middle_changes_nothing(cluster, small_parts, place, tmp_path):
    out, n_calls = tmp_path / "codes.npy", 0

    def remove_once(done, total):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            cluster.remove_node()

    try:
        distributed.encode(place / "model", inputs_of(place), out, progress=remove_once)
    finally:
        cluster.add_node()
    assert out.read_bytes() == (place / "serial.npy").read_bytes()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_stopped_goes_on_later(cluster, place, tmp_path, sent):
    out = tmp_path / "codes.npy"
    many = [place / "a.npy"] * 12  # long enough to be stopped in the middle
    arguments = [str(place / "model"), str(out), cluster.address, *map(str, many)]
    command = [sys.executable, "-c", DRIVER, *arguments]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    manifest = tmp_path / ".codes.npy.parts/manifest.json"
    wait_until(lambda: manifest.exists() and json.loads(manifest.read_text())["parts"])
    driver.send_signal(sent)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode != 0
    assert b"KeyboardInterrupt" in said or sent is signal.SIGKILL
    assert not out.exists()
    later = subprocess.run(command, capture_output=True, check=True, text=True)
    assert 0 < int(later.stdout) < 12 * (5 * STEP + 5)
    one = BinaryCodes.load(place / "serial.npy")[: 5 * STEP + 5]
    assert BinaryCodes.load(out) == BinaryCodes.concatenate([one] * 12)
    assert os.listdir(tmp_path) == ["codes.npy"]


def wait_until(is_true, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stop_after(n_calls):
    """Progress that ends a job in the middle."""
    calls = []

    def progress(done, total):
        calls.append(done)
        if len(calls) > n_calls:
            raise KeyboardInterrupt

    return progress


def stopped(place, out, n_calls=4):
    """An output that was left in the middle, and the folder of its parts."""
    with pytest.raises(KeyboardInterrupt):
        distributed.encode(place / "model", inputs_of(place), out, progress=stop_after(n_calls))
    return next(Path(out).parent.glob(".*.parts"))


def test_parts_that_were_damaged_since_are_encoded_again(cluster, small_parts, place, tmp_path):
    out = tmp_path / "codes.npy"
    parts = stopped(place, out)
    complete = list(json.loads((parts / "manifest.json").read_text())["parts"])
    n_left = sum(len(BinaryCodes.load(parts / name)) for name in complete[2:])
    os.truncate(parts / complete[0], 200)
    os.remove(parts / complete[1])
    encoding = distributed.encode(place / "model", inputs_of(place), out)
    assert encoding.n_resumed == n_left > 0
    assert out.read_bytes() == (place / "serial.npy").read_bytes()


def test_a_part_whose_bytes_were_altered_is_named(cluster, small_parts, place, tmp_path):
    out = tmp_path / "codes.npy"
    parts = stopped(place, out)
    altered = parts / next(iter(json.loads((parts / "manifest.json").read_text())["parts"]))
    content = bytearray(altered.read_bytes())
    content[200] ^= 4
    altered.write_bytes(content)
    with pytest.raises(InputError, match=rf"{altered.name} is damaged: its checksum"):
        distributed.encode(place / "model", inputs_of(place), out)
    assert not out.exists()


def test_what_another_run_has_left_is_refused(cluster, small_parts, place, rows, tmp_path):
    out = tmp_path / "codes.npy"
    stopped(place, out)
    other = rankbits.methods.get("lsh", n_bits=30, random_state=1).fit(rows[:500])
    with pytest.raises(InputError, match="holds codes of a run with other model"):
        distributed.encode(other, inputs_of(place), out)
    with pytest.raises(InputError, match="holds codes of a run with other inputs"):
        distributed.encode(place / "model", place / "a.npy", out)


def test_outputs_that_exist_are_refused_before_any_work(cluster, hasher, place, tmp_path):
    (tmp_path / "codes.npy").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/thesis.txt").write_bytes(b"mine too")
    for name, message in (("codes.npy", "exists already"), ("folder", "holds thesis.txt")):
        with pytest.raises(InputError, match=f"out must be new.*{message}"):
            distributed.encode("no model at all", inputs_of(place), tmp_path / name)
    distributed.encode(hasher, inputs_of(place), tmp_path / "codes")
    with pytest.raises(InputError, match="holds the complete codes of this very run"):
        distributed.encode(hasher, inputs_of(place), tmp_path / "codes")


def test_rows_that_cannot_be_encoded_are_named(cluster, hasher, rows, tmp_path):
    bad = rows[: 2 * STEP].copy()
    bad[STEP + 3, 7] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(InputError, match=rf"bad\.npy, from row {STEP} to .*got NaN"):
        distributed.encode(hasher, tmp_path / "bad.npy", tmp_path / "codes.npy")
    assert not (tmp_path / "codes.npy").exists()
    np.save(tmp_path / "narrow.npy", rows[:9, :5])
    with pytest.raises(InputError, match=r"narrow\.npy: .*5 features"):
        distributed.encode(hasher, tmp_path / "narrow.npy", tmp_path / "codes.npy")


def test_a_model_that_changes_while_it_encodes_is_refused(cluster, place, rows, tmp_path):
    hasher = rankbits.methods.get("lsh", n_bits=30, random_state=7).fit(rows[:500])
    hasher.save(tmp_path / "model")
    other = rankbits.methods.get("lsh", n_bits=30, random_state=8).fit(rows[:500])

    def replace_model(done, total):
        other.save(tmp_path / "model")

    with pytest.raises(InputError, match="model must stay the same while it encodes"):
        distributed.encode(
            tmp_path / "model", place / "a.npy", tmp_path / "codes.npy", progress=replace_model
        )
