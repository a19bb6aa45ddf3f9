"""Segment files that are wrong, with all their checksums repaired, and named by the manifest."""

import struct
import zlib

import numpy as np
from hostile_rows import NUMBERS, damaged_blob, pick

FIELDS = struct.Struct("<8sIIQQqqQQQQQQI")
NAMES = ("magic", "version", "n_bits", "n", "is_range", "first", "last", "block", "planes_at")
NAMES += ("planes_size", "ids_at", "table_at", "n_blocks", "table_crc")
PAGE = 4096


class Segment:
    """A segment file, taken apart; put together again it has the right checksums."""

    def __init__(self, case, path):
        self._case, self._path = case, path
        raw = path.read_bytes()
        self.fields = dict(zip(NAMES, FIELDS.unpack_from(raw), strict=True))
        self.data = bytearray(raw[PAGE : self.fields["table_at"]])
        self.table = None  # instead of the right one
        self.padding = bytes(PAGE - 4 - FIELDS.size)

    def __enter__(self):
        return self

    def lay_out(self, *, is_consistent):
        """Make sizes and offsets those that follow from the number of codes and their length."""
        fields = self.fields
        ids = bytes(self.data[fields["ids_at"] - PAGE :])
        width = -(-fields["n_bits"] // 8)
        size = -(-fields["n"] // 64) * 64 * width
        if size > 1 << 24:
            return
        fields["planes_size"] = size
        if is_consistent:
            planes = bytes(self.data[: fields["ids_at"] - PAGE])[:size].ljust(
                -(-size // PAGE) * PAGE, b"\0"
            )
            ids = (
                b""
                if fields["is_range"]
                else ids[: 8 * fields["n"]].ljust(-(-8 * fields["n"] // PAGE) * PAGE, b"\0")
            )
            self.data = bytearray(planes + ids)
            fields["ids_at"] = PAGE + len(planes)
            fields["table_at"] = fields["ids_at"] + len(ids)

    def _blocks(self):
        """As the header tells; as one block if that makes no sense."""
        block, ids_at = self.fields["block"], self.fields["ids_at"] - PAGE
        if not 512 <= block <= 1 << 30 or not 0 <= ids_at <= len(self.data):
            block, ids_at = len(self.data) or 1, 0
        for region in (self.data[:ids_at], self.data[ids_at:]):
            for at in range(0, len(region), block):
                yield bytes(region[at : at + block])

    def __exit__(self, *error):
        crcs = [zlib.crc32(block) for block in self._blocks()]
        table = struct.pack(f"<{len(crcs)}I", *crcs) if self.table is None else self.table
        if self._case.rng.random() < 0.8:
            self.fields["n_blocks"] = len(table) // 4
        self.fields["table_crc"] = zlib.crc32(table)
        values = []
        for code, name in zip("sIIQQqqQQQQQQI", NAMES, strict=True):
            value, size = self.fields[name], {"I": 32, "Q": 64, "q": 64}.get(code)
            if code in "IQ":
                value &= (1 << size) - 1
            elif code == "q":
                value = (value + 2**63) % 2**64 - 2**63
            values.append(value)
        header = FIELDS.pack(*values) + self.padding
        crc = zlib.crc32(header)
        self._path.write_bytes(header + struct.pack("<I", crc) + bytes(self.data) + table)
        self._case.name_segment(self._path, crc, self.fields["n"])


def mutate_header(case, rng):
    """A field of a segment's header."""
    path = pick(rng, case.segments())
    with Segment(case, path) as segment:
        name = pick(rng, NAMES[1:-1])
        old = segment.fields[name]
        near = (old + 1, old - 1, old * 2, old + 64, old + 4096, old ^ 1)
        new = pick(rng, (*near, *near, *NUMBERS))
        segment.fields[name] = new
        case.say(f"{path.name}: {name} {old} -> {new}")
        if rng.random() < 0.5 and 0 <= segment.fields["n"] < 2**32 and segment.fields["n_bits"] > 0:
            segment.lay_out(is_consistent=rng.random() < 0.7)
        if rng.random() < 0.1:
            segment.padding = rng.bytes(len(segment.padding))


def mutate_data(case, rng):
    """Codes and ids of a segment."""
    path = pick(rng, case.segments())
    with Segment(case, path) as segment:
        fields, data = segment.fields, segment.data
        ids_at = min(max(fields["ids_at"] - PAGE, 0), len(data))  # it may have been changed before
        choice = int(rng.integers(7))
        if choice == 0:  # bits beyond n_bits, and rows behind the last one
            data[:ids_at] = b"\xff" * ids_at
        elif choice == 1:
            data[:ids_at] = rng.bytes(ids_at)
        elif choice == 2 and not fields["is_range"]:
            ids = np.frombuffer(data[ids_at : ids_at + 8 * fields["n"]], "<i8").copy()
            blob = damaged_blob("ids", ids.tobytes(), rng)
            data[ids_at : ids_at + len(blob)] = blob
        elif choice == 3:  # ids that are listed although they follow one another
            fields["is_range"] = 1 - fields["is_range"]
            segment.lay_out(is_consistent=True)
        elif choice == 4:
            segment.table = pick(rng, (b"", b"\xff" * 4, bytes(4096), b"\1\2\3"))
        elif choice == 5:
            del data[int(rng.integers(len(data))) :]
        else:
            data += rng.bytes(int(rng.integers(1, 9000)))
        case.say(f"{path.name}: data changed, way {choice}")


def mutate_bits(case, rng):
    """Another length of code, everywhere where it is written, or only in the database."""
    old = new = None
    with case.rows() as rows:
        for row, fields in rows.of("state"):
            old = rows.value("state", fields, "n_bits")
            if not isinstance(old, int):
                return
            new = pick(
                rng, (old + 1, old - 1, old + 8, old * 2, old + 7 & ~7, 1, 4096, 5000, 0, 64)
            )
            rows.set("state", fields, "n_bits", new)
            rows.put("state", row, fields)
    if new is None:  # an earlier mutation took the row away
        return
    case.say(f"n_bits {old} -> {new}")
    if rng.random() < 0.6 and 0 < new < 2**32:
        for path in case.segments():
            with Segment(case, path) as segment:
                segment.fields["n_bits"] = new
                segment.lay_out(is_consistent=rng.random() < 0.7)
