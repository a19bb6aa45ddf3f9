"""NumPy: codes, ids and the number of bits in one .npz file, written and read block by block.

The file holds `codes` (uint8, packed), `ids` (int64), `n_bits` and, if it is known, the fingerprint
`model`, so np.load() reads it too.
"""

from rankbits._files import require_file, write_atomically
from rankbits.codes import npz
from rankbits.index.hamming import HammingIndex
from rankbits.index.interop.blocks import (
    CodeSource,
    Path,
    blocks,
    index_of,
    note_of,
    require_source,
)


def to_npz(index: CodeSource, path: Path) -> None:
    """Write ids and packed codes as a .npz file; a file of that name is replaced at the end.

    Parameters
    ----------
    index : HammingIndex or Collection
        Index whose ids and codes are written.
    path : str or path-like
        File to write. Its name is used as it is, so no ending is added to it.
    """
    require_source(index)
    ids = index.ids
    packed = (packed for _, packed in blocks(index))
    with write_atomically(path) as file:
        npz.write(file, note_of(index), len(ids), packed, ids)


def from_npz(path: Path, kind: str = "auto", *, n_bits: int | None = None) -> HammingIndex:
    """A HammingIndex of a .npz file.

    Parameters
    ----------
    path : str or path-like
        File with the array `codes`, uint8 of shape (n, bytes). It may also have `ids` (integers;
        without them items are numbered from 0), `n_bits` (one integer) and `model` (one text).
    kind : str, default="auto"
        How the new index searches: "auto", "scan", "mih" or "ivf", as in `HammingIndex`.
    n_bits : int or None, default=None
        Code length, for a file that does not say it. None then takes 8 bits for each byte.
    """
    with npz.open_codes(require_file(path, "a .npz file")) as content:
        return index_of(content, n_bits, kind)
