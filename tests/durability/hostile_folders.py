"""What a stranger may put in the place of the files of a model, and beside them."""

import json
import os
import pickle
import shutil
import struct

from hostile_rows import pick

HUGE = 100 << 30  # bytes of a file that takes none of the disk
_LONG = 700 << 20


class Bomb:
    """A pickle that runs a command when it is loaded."""

    def __init__(self, canary):
        self.command = f"touch {canary}"

    def __reduce__(self):
        return os.system, (self.command,)


def change_files(case, rng):
    """One of the two files is something else, or there is more in the folder than they."""
    file = case.folder / pick(rng, ("model.json", "model.safetensors"))
    change = pick(rng, (*_OF_A_FILE, *_OF_THE_FOLDER))
    case.say(f"{file.name}: {change.__name__}")
    if change in _OF_THE_FOLDER:
        change(case)
        return
    content = file.read_bytes()
    file.unlink()
    change(case, file, content)


def missing(case, file, content):
    pass


def pipe(case, file, content):
    os.mkfifo(file)


def folder(case, file, content):
    (file / "inner").mkdir(parents=True)


def loop(case, file, content):
    file.symlink_to(file.name)


def link_to_a_stranger(case, file, content):
    file.symlink_to(case.victim)


def link_to_the_same(case, file, content):
    other = case.place / "elsewhere"
    other.write_bytes(content)
    file.symlink_to(other)


def device(case, file, content):
    file.symlink_to("/dev/zero")


def huge(case, file, content):
    file.write_bytes(content)
    os.truncate(file, HUGE)


def long(case, file, content):
    file.write_bytes(content)
    os.truncate(file, _LONG)


def pickled(case, file, content):
    file.write_bytes(pickle.dumps(Bomb(case.canary)))


def unreadable(case, file, content):
    file.write_bytes(content)
    file.chmod(0)


def two_pipes(case):
    for file in case.folder.iterdir():
        file.unlink()
        os.mkfifo(file)


def code_beside(case):
    """What other libraries would load, and run."""
    for name in ("model.pkl", "pytorch_model.bin", "model.npy", "vectors.npy"):
        (case.folder / name).write_bytes(pickle.dumps(Bomb(case.canary)))
    for name in ("__init__.py", "model.py", "numpy.py", "sitecustomize.py"):
        (case.folder / name).write_text(f"open({str(case.canary)!r}, 'w')\n")


def nothing(case):
    shutil.rmtree(case.folder)


def linked(case):
    case.folder.rename(case.place / "real")
    case.folder.symlink_to(case.place / "real")


def linked_in_a_loop(case):
    shutil.rmtree(case.folder)
    case.folder.symlink_to(case.folder.name)


def huge_as_described(case):
    """A file of 100 GB whose header says that it is right, and that takes a few bytes of disk."""
    n_rows = HUGE // 96
    entry = {"dtype": "F64", "shape": [n_rows, 12], "data_offsets": [0, 96 * n_rows]}
    header = json.dumps({"mean": entry}).encode()
    header += b" " * (-len(header) % 8)
    file = case.folder / "model.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(file, 8 + len(header) + 96 * n_rows)


_OF_A_FILE = (
    missing,
    pipe,
    folder,
    loop,
    link_to_a_stranger,
    link_to_the_same,
    device,
    huge,
    long,
    pickled,
    unreadable,
)
_OF_THE_FOLDER = (two_pipes, code_beside, nothing, linked, linked_in_a_loop, huge_as_described)
