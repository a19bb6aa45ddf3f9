"""A disk that may lose what was not synced: files, names, and what a power loss makes of them.

The docstring of power_loss.py says which losses are possible, and why.
"""

from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

SECTOR = 512
FOLDER = "folder"  # stands for a folder among names


@dataclass(eq=False)
class File:
    """What is in a file for sure, what came later, and both together as a process sees it."""

    durable: bytes = b""
    pending: list = field(default_factory=list)  # (offset, data), or (size, None) for a truncation
    current: bytearray = field(default_factory=bytearray)

    def change(self, at, data):
        self.pending.append((at, data))
        write(self.current, at, data)

    def sync(self):
        self.durable, self.pending = bytes(self.current), []

    def random(self, rng):
        """The file after a power loss."""
        content, chance = bytearray(self.durable), rng.choice([0.2, 0.5, 0.9])
        for at, data in self.pending:
            fate = rng.random()
            if fate < chance:
                write(content, at, data)
            elif data is not None and fate < chance + 0.5 * (1 - chance):
                tear(content, at, data, rng)
            elif data is not None and rng.random() < 0.3:
                write(content, max(len(content), at + len(data)), b"")  # longer, but only zeros
        return bytes(content)


def write(content, at, data):
    """Apply a write, or a truncation."""
    content.extend(bytes(max(at - len(content), 0)))
    if data is None:
        del content[at:]
    else:
        content[at : at + len(data)] = data


def tear(content, at, data, rng):
    """Write some sectors only."""
    start = at
    while start < at + len(data):
        stop = min((start // SECTOR + 1) * SECTOR, at + len(data))
        if rng.random() < 0.5:
            write(content, start, data[start - at : stop - at])
        start = stop


class Disk:
    """Files and names, those that are durable and those that are not yet."""

    def __init__(self, root):
        self._root = root
        self.names = {}  # as processes see them
        self._durable_names = {}
        self._journal = []  # operations on names that a power loss may undo, from the newest back

    def apply(self, call):
        """Take in one call of the trace."""
        path, other = self._relative(call.path), self._relative(call.other)
        if call.result < 0 or path is None:
            return
        if call.name == "sync":
            self._sync(path)
        elif call.name in ("write", "truncate"):
            if path in self.names:  # a file that was deleted is of no interest
                self.names[path].change(call.at, call.data if call.name == "write" else None)
        else:
            new = FOLDER if call.name == "mkdir" else File() if call.name == "create" else None
            operation = (call.name, path, other, new)
            rename(self.names, operation)
            self._journal.append(operation)

    def _relative(self, path):
        if path == self._root:
            return ""
        return path[len(self._root) + 1 :] if path.startswith(f"{self._root}/") else None

    def _sync(self, path):
        if path and self.names.get(path) is not FOLDER:
            if path in self.names:
                self.names[path].sync()
            return
        touching = [
            number
            for number, (_, *paths, _) in enumerate(self._journal, start=1)
            if any(name and str(PurePath(name).parent) == (path or ".") for name in paths)
        ]
        for operation in self._journal[: max(touching, default=0)]:
            rename(self._durable_names, operation)
        del self._journal[: max(touching, default=0)]

    def states(self, rng, n_random, *, is_ordered=True):
        """What may be there after a power loss now: names, and bytes of each file."""
        old, new = self._durable_names, self.names
        yield old, lambda file: file.durable
        yield new, lambda file: bytes(file.current)
        yield new, lambda file: file.durable
        yield old, lambda file: bytes(file.current)
        for _ in range(n_random):
            names, is_there = dict(old), rng.random(len(self._journal)) < 0.5
            if is_ordered:
                is_there[:] = np.arange(len(is_there)) < rng.integers(0, len(is_there) + 1)
            for number in np.flatnonzero(is_there):
                rename(names, self._journal[number])
            yield names, lambda file: file.random(rng)


def rename(names, operation):
    """Apply an operation on names."""
    kind, path, other, new = operation
    if kind in ("create", "mkdir"):
        if str(PurePath(path).parent) in (".", *names):
            names[path] = new
    elif kind == "link":
        if path in names:
            names[other] = names[path]
    elif kind == "unlink":
        names.pop(path, None)
    elif kind == "rename":
        for name in [name for name in names if name == path or name.startswith(f"{path}/")]:
            names[other + name[len(path) :]] = names.pop(name)
    else:
        raise NotImplementedError(f"the model of a disk does not know {kind}")
