"""The few things these tools take from inside of rankbits.

Everything else goes through the public API, so this is the only module to adjust when the inside
of `rankbits.index` changes.
"""

import re

from rankbits import _native
from rankbits.index.disk import building, connection
from rankbits.index.store import changes

DATABASE = "collection.sqlite"
COUNTED = {"n_parts": "parts"}  # in table state
MANIFEST = "parts"  # the table that names the files


def seal_early():
    """Let a few dozen codes become a segment file, so that short scripts reach every path."""
    building.SEAL_AT, changes.SMALL = 40, 8


def wait_briefly():
    """SQLite waits a minute for a lock of others, and takes one that fails for such a lock."""
    connection._BUSY_SECONDS = 2.0


def write_planes(codes, planes):
    """Run a kernel that writes an array without holding the lock of the interpreter."""
    _native.to_planes(codes, planes)


def says_unchanged(message):
    """Whether an error promises that the call changed nothing."""
    return re.search(r"as it was before|nothing (was|has been) changed", message) is not None


def says_unreadable(message):
    """Whether an error leaves open whether a file is damaged or its storage fails."""
    return "cannot be read" in message


def says_unfinished(message):
    """Whether an error tells a reader that there is no collection (yet), rather than damage."""
    return re.search(r"must hold a collection|never finished|there is no", message) is not None
