"""Files that are mapped may be cut or changed by others: an error, never the end of the process."""

import mmap
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from rankbits._mapped import map_npy, reads_unchanged, unchanged
from rankbits.errors import FileFormatError, RankbitsError

unsanitized = pytest.mark.unsanitized  # a process that ends by a signal on purpose


@pytest.fixture
def path(tmp_path):
    """A file of several pages that was written long ago."""
    path = tmp_path / "x.npy"
    np.save(path, np.arange(5000.0))
    os.utime(path, (1e9, 1e9))
    return path


def read(array, damage):
    """The last number of an array, of which the file is damaged while it is read."""
    with unchanged(array):
        damage()
        return array[-1]


def test_a_block_that_reads_a_file_which_is_cut_meanwhile_fails(path):
    array = map_npy(path)
    message = r"x\.npy was truncated while it was in use: it had 40128 bytes, it has 4096;"
    with pytest.raises(FileFormatError, match=message):
        read(array, lambda: os.truncate(path, 4096))
    assert array[-1] == 0.0  # the page is gone, the process is not


def test_what_a_block_concluded_from_lost_bytes_gives_way_to_the_error(path):
    array = map_npy(path)

    def conclude():
        os.truncate(path, 0)
        raise ValueError(f"the array ends in {array[-1]}")

    with pytest.raises(FileFormatError, match="truncated"):
        read(array, conclude)


def test_a_block_that_reads_a_file_which_is_written_to_meanwhile_fails(path):
    array = map_npy(path)[7:]
    with pytest.raises(FileFormatError, match=r"x\.npy was written to while it was in use"):
        read(array, lambda: np.save(path, np.ones(5000)))


def test_a_file_that_was_written_a_moment_before_is_taken_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(5000))
    array = map_npy(tmp_path / "x.npy")
    for _ in range(3):
        with unchanged(array):
            assert array.all()


def test_a_file_that_loses_its_name_or_gives_it_to_another_stays_readable(path, tmp_path):
    array = map_npy(path)
    np.save(tmp_path / "other.npy", np.zeros(5000))
    os.replace(tmp_path / "other.npy", path)
    with unchanged(array):
        assert array[-1] == 4999.0


def test_who_maps_a_file_to_write_may_write(path):
    array = np.load(path, mmap_mode="r+")
    with unchanged(array):
        array[:] = 1.0
        array.flush()
        os.utime(path)
    with pytest.raises(FileFormatError, match="truncated"):
        read(array, lambda: os.truncate(path, 4096))


def test_arguments_of_a_function_are_looked_at_before_and_after(path):
    @reads_unchanged
    def total(x, *, weights=None):
        os.truncate(path, 4096)
        return x.sum() + weights.sum()

    with pytest.raises(FileFormatError, match="truncated"):
        total(map_npy(path), weights=np.ones(1))


def test_memory_of_no_file_and_what_is_no_array_are_left_alone():
    anonymous = np.frombuffer(mmap.mmap(-1, 4096), np.uint8)
    with unchanged(anonymous, [1, 2], None, "x", np.ones(3)[1:]):
        pass


def test_mappings_that_come_and_go_use_few_descriptors(path):
    def n_open():
        return len(os.listdir("/proc/self/fd"))

    before = n_open()
    for _ in range(50):
        with unchanged(map_npy(path)):
            pass
    assert n_open() <= before + 2


SCRIPT = """
import faulthandler, os, signal, sys
import numpy as np
from rankbits._mapped import map_npy, unchanged
from rankbits.errors import FileFormatError
path, way = sys.argv[1:]
array = map_npy(path)
if way.startswith("handlers"):
    faulthandler.enable()
    array = map_npy(path)
    faulthandler.disable(), faulthandler.enable()
if way.endswith("foreign"):  # a mapping that nobody watches
    import mmap
    file = open(path, "rb")
    foreign = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    os.truncate(path, 0)
    foreign[20000]
if way.endswith("sent"):
    os.kill(os.getpid(), signal.SIGBUS)
os.truncate(path, 0)
try:
    with unchanged(array):
        array.sum()
except FileFormatError as error:
    print(error)
"""


def run(path, way):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), way], capture_output=True, text=True, timeout=60
    )


@unsanitized
@pytest.mark.parametrize("way", ["alone", "handlers"])
def test_a_process_survives_a_lost_page_of_a_watched_file(path, way):
    done = run(path, way)
    assert (done.returncode, done.stderr) == (0, "")
    assert "was truncated while it was in use" in done.stdout


@unsanitized
@pytest.mark.parametrize("cause", ["foreign", "sent"])
@pytest.mark.parametrize("way", ["alone", "handlers"])
def test_every_other_bus_error_ends_the_process_as_it_always_did(path, way, cause):
    done = run(path, f"{way} {cause}")
    assert done.returncode == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in done.stderr) == (way == "handlers")


def run_script(text, *arguments):
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@unsanitized
def test_a_handler_of_python_gets_each_bus_error_that_is_sent(path):
    done = run_script(
        """
import os, signal, sys
from rankbits._mapped import map_npy, unchanged
signal.signal(signal.SIGBUS, lambda *_: print("handled"))
array = map_npy(sys.argv[1])
for _ in range(3):
    os.kill(os.getpid(), signal.SIGBUS)
    with unchanged(array):
        array.sum()
signal.raise_signal(signal.SIGBUS)
os.truncate(sys.argv[1], 0)
print(array[-1])
""",
        path,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["handled"] * 4 + ["0.0"]), done.stderr


@unsanitized
def test_a_bus_error_that_was_ignored_when_sent_stays_so(path):
    done = run_script(
        """
import os, signal, sys
from rankbits._mapped import map_npy
signal.signal(signal.SIGBUS, signal.SIG_IGN)
array = map_npy(sys.argv[1])
os.kill(os.getpid(), signal.SIGBUS)
os.kill(os.getpid(), signal.SIGBUS)
print("alive")
""",
        path,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n")


@unsanitized
@pytest.mark.parametrize("way", ["fork", "forkserver threads"])
def test_a_forked_process_survives_lost_pages_too(path, way):
    done = run_script(
        """
import os, sys, threading
import numpy as np
from rankbits._mapped import map_npy, unchanged
from rankbits.errors import FileFormatError
path, way = sys.argv[1:]
array, is_over = map_npy(path), threading.Event()
def look():
    while not is_over.is_set():
        with unchanged(array):
            pass
threads = [threading.Thread(target=look) for _ in range(3 if "threads" in way else 0)]
for thread in threads:
    thread.start()
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        with unchanged(array):
            pass
        other = map_npy(path)
        os._exit(0 if other[-1] == 4999 else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
is_over.set()
child = os.fork()
if child == 0:
    os.truncate(path, 0)
    try:
        with unchanged(array):
            array.sum()
    except FileFormatError:
        os._exit(7)
    os._exit(8)
print(codes, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), array.sum())
""",
        path,
        way,
    )
    assert (done.returncode, done.stdout) == (0, f"{[0] * 20} 7 0.0\n"), done.stderr


@unsanitized
def test_threads_that_read_lost_pages_while_others_map_and_let_go_survive(tmp_path):
    """Watches are used again while the handler looks for the one that a page belongs to."""
    done = run_script(
        """
import os, sys, threading
import numpy as np
from rankbits._mapped import map_npy, unchanged
from rankbits.errors import FileFormatError
def work(number):
    rng, n_cut = np.random.default_rng(number), 0
    for turn in range(120):
        path = f"{sys.argv[1]}/{number}.npy"
        np.save(path, np.full(int(rng.integers(2000, 60000)), float(number)))
        array = map_npy(path)
        if turn % 2:
            assert array[-1] == number
            continue
        os.truncate(path, 4096)
        try:
            with unchanged():
                assert array[-1] == 0
            with unchanged(array):
                pass
        except FileFormatError:
            n_cut += 1
        os.unlink(path)
    counts[number] = n_cut
counts = [0] * 6
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts)
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, f"{[60] * 6}\n"), done.stderr


def test_storage_that_does_not_tell_about_a_file_is_an_error(path, monkeypatch):
    array = map_npy(path)
    monkeypatch.setattr("rankbits._native.look_at_mapping", lambda watch: 4)
    with pytest.raises(RankbitsError, match="could not be compared with what was mapped: its sta"):
        read(array, lambda: None)


def test_a_mapping_that_dies_runs_no_python_code_that_ctrl_c_could_be_lost_in(path):
    array = map_npy(path)
    calls = []
    sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
    try:
        del array
    finally:
        sys.setprofile(None)
    assert calls == []
