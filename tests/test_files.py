"""A file is the old one or the new one, whatever happens while it is written."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from rankbits import _files
from rankbits._files import one_line, open_own, open_plain, write_atomically
from rankbits.errors import InputError

OLD, NEW = b"old content", b"new content, longer than the old"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(OLD)
    return path


def content_is(path, content):
    """The file holds just this, and nothing else lies beside it."""
    return path.read_bytes() == content and os.listdir(path.parent) == [path.name]


def test_a_block_that_ends_well_replaces_the_file(path):
    with write_atomically(path) as file:
        file.write(NEW)
        file.flush()
        assert path.read_bytes() == OLD
    assert content_is(path, NEW)


def test_a_new_file_appears_only_at_the_end(tmp_path):
    path = tmp_path / "new.bin"
    with write_atomically(str(path)) as file:
        file.write(NEW)
        assert not path.exists()
    assert content_is(path, NEW)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_in_the_block_keeps_the_old_file_and_leaves_nothing(path, error):
    def write_and_fail():
        with write_atomically(path) as file:
            file.write(NEW)
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert content_is(path, OLD)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_step_that_fails_keeps_the_old_file_and_leaves_nothing(path, monkeypatch, step):
    def fail(*args):
        raise OSError("disk on fire")

    monkeypatch.setattr(_files.os, step, fail)
    with pytest.raises(OSError, match="disk on fire"), write_atomically(path) as file:
        file.write(NEW)
    monkeypatch.undo()
    assert content_is(path, OLD)


def test_the_bytes_reach_the_disk_before_the_name_and_the_name_before_the_end(path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            _files.os, name, lambda *args, name=name, real=real: (steps.append(name), real(*args))
        )
    with write_atomically(path) as file:
        file.write(NEW)
    assert steps == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask_and_leave_it_as_it_was(path, umask, mode):
    before = os.umask(umask)
    try:
        with write_atomically(path) as file:
            file.write(NEW)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_threads_that_write_leave_the_umask_alone(tmp_path):
    """In a process of its own, as a umask belongs to the process."""
    script = """
import os, sys, threading, time
from rankbits._files import write_atomically
os.umask(0o022)
set_umask = os.umask
os.umask = lambda mask: (set_umask(mask), time.sleep(0.001))[0]  # threads meet between two calls
end, modes = time.monotonic() + 2, set()
def write(name):
    while time.monotonic() < end:
        with write_atomically(name) as file:
            file.write(b"x")
        modes.add(os.stat(name).st_mode & 0o777)
threads = [threading.Thread(target=write, args=(f"{sys.argv[1]}/{k}",)) for k in range(8)]
sys.setswitchinterval(1e-5)
for thread in threads: thread.start()
while time.monotonic() < end:  # a file of someone else, made meanwhile
    handle = os.open(sys.argv[1] + "/other", os.O_CREAT | os.O_WRONLY, 0o666)
    modes.add(os.fstat(handle).st_mode & 0o777)
    os.close(handle)
    os.unlink(sys.argv[1] + "/other")
for thread in threads: thread.join()
print([oct(mode) for mode in sorted(modes)], oct(os.umask(0)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("['0o644'] 0o22\n", "")


def test_a_temporary_name_that_exists_is_not_used(path, monkeypatch):
    names = iter(["00000000", "11111111"])
    monkeypatch.setattr(_files.secrets, "token_hex", lambda n: next(names))
    taken = path.with_name(f".{path.name}.00000000")
    taken.write_bytes(OLD)
    with write_atomically(path) as file:
        assert file.write(NEW)
        assert path.with_name(f".{path.name}.11111111").exists()
    assert taken.read_bytes() == OLD
    assert path.read_bytes() == NEW


def test_a_folder_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="is a folder"), write_atomically(tmp_path):
        pass
    absent = tmp_path / "absent" / "file.bin"
    with pytest.raises(InputError, match=f"there is no {absent.parent}"), write_atomically(absent):
        pass
    assert os.listdir(tmp_path) == []


def test_a_kill_while_writing_leaves_the_old_file_whole(path):
    script = f"""
from rankbits._files import write_atomically
with write_atomically({str(path)!r}) as file:
    while True:
        file.write(b"x" * 100_000)
        file.flush()
        print("writing", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        for _ in range(3):
            assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
        assert process.wait(timeout=10) == -signal.SIGKILL
    assert path.read_bytes() == OLD


def test_readers_see_a_whole_file_while_it_is_replaced_again_and_again(path):
    script = f"""
from rankbits._files import write_atomically
for k in range(60):
    with write_atomically({str(path)!r}) as file:
        for _ in range(50):
            file.write(b"%02d" % k * 500)
"""
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        while process.poll() is None:
            content = path.read_bytes()
            assert content == OLD or content == content[:2] * 25_000
            time.sleep(0.001)
        assert process.returncode == 0
    assert content_is(path, b"59" * 25_000)


def test_one_line_takes_the_line_breaks_out_of_a_message():
    assert one_line(ValueError("two\n  lines ")) == "two lines"


@pytest.mark.parametrize("open_it", [open_plain, open_own])
def test_a_file_whose_status_cannot_be_told_is_no_other_kind_of_file(
    tmp_path, monkeypatch, open_it
):
    opened = []

    def fail(handle):
        opened.append(handle)
        raise OSError(errno.ENOMEM, "no memory")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fail)
        with pytest.raises(OSError, match="no memory"):
            open_it(tmp_path / "lock", os.O_RDWR)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])
