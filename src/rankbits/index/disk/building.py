"""Parts of a collection: small ones are rows of its database, large ones are files."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rankbits.index.disk import layout
from rankbits.index.disk.segment_file import Header, read_segment, write_segment
from rankbits.index.store.merge import extent, merged_chunks, merged_in_memory
from rankbits.index.store.part import Part

SEAL_AT = 1 << 16  # items: a part of as many is a file, a smaller one is in the database


def build_part(
    folder: Path, number: int, parts: Sequence[Part], *, always_file: bool = False
) -> Part:
    """What is left of parts as one, with this number or the next that has no file.

    A file that is written is named by no state yet.
    """
    n, first, last = extent(parts)
    if n < SEAL_AT and not always_file:
        return Part.of(number, merged_in_memory(parts))
    header = Header(parts[0].segment.n_bits, n, first, last, is_range=last - first == n - 1)
    with layout.failures(folder, "written"):
        while True:
            number = layout.free_number(folder, number)
            path = layout.segment_path(folder, number)
            with suppress(FileExistsError):  # one that came since
                write_segment(path, header, merged_chunks(parts))
                return Part.of(number, read_segment(path, verify=False))
