"""storage.c from Python: load it into this process, plan what it does, read its trace.

A tool calls `load_storage()` first, which starts the tool again with the library preloaded. Its
child processes are forks, and each tells its own copy of the library what to do.
"""

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

KILL_BEFORE, KILL_WITHIN, FAIL_ONCE, FAIL_ON, SHORTEN = range(1, 6)
_ENTRY = struct.Struct("<16sqqiii")


class Call(NamedTuple):
    """One entry of a trace: a call that changes a file, or a mark (its text is the path)."""

    name: str  # write, sync, truncate, create, rename, link, symlink, unlink, mkdir, mark
    path: str
    other: str  # the second name of rename and link
    at: int  # offset of a write, size of a truncate, flags of an unlink
    result: int  # negative if the call failed
    data: bytes


def load_storage():
    """The library; a tool that runs without it is started again, and ends with that run."""
    if hasattr(ctypes.CDLL(None), "storage_watch"):
        library = ctypes.CDLL(None)
        library.storage_hit.restype = ctypes.c_char_p
        library.storage_calls.restype = library.storage_hits.restype = ctypes.c_long
        library.storage_plan.argtypes = (ctypes.c_int, ctypes.c_long, ctypes.c_int)
        return library
    with tempfile.TemporaryDirectory() as folder:
        path = build_storage(Path(folder))
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        before = os.environ.get("LD_PRELOAD", "")
        environment = {**os.environ, **one_thread, "LD_PRELOAD": f"{before} {path}".strip()}
        raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


def build_storage(folder):
    """Compile the library into a folder."""
    source, path = Path(__file__).with_name("storage.c"), folder / "storage.so"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", path, source]
    subprocess.run([*map(str, command), "-ldl", "-lpthread"], check=True)
    return path


def read_trace(path):
    """The calls of a trace, in order."""
    raw, at, calls = memoryview(path.read_bytes()), 0, []
    while at < len(raw):
        name, offset, result, *sizes = _ENTRY.unpack_from(raw, at)
        at += _ENTRY.size
        texts = []
        for size in sizes:
            texts.append(bytes(raw[at : at + size]))
            at += size
        first, second, data = texts
        label = name.rstrip(b"\0").decode()
        calls.append(Call(label, os.fsdecode(first), os.fsdecode(second), offset, result, data))
    return calls
