"""A merge of parts holds what is left of them, in order of id, window by window."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankbits import BinaryCodes
from rankbits.index.store.merge import extent, merged_chunks, merged_in_memory
from rankbits.index.store.part import Part
from rankbits.index.store.segment import Segment


def random_codes(rng, n, n_bits):
    return BinaryCodes(np.packbits(rng.integers(0, 2, (n, n_bits)), axis=1), n_bits)


@st.composite
def parts_and_rest(draw):
    """Parts with distinct ids, some rows removed, and the dictionary of what is left."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    n, largest = draw(st.integers(0, 300)), draw(st.sampled_from([300, 2000]))
    ids = rng.choice(largest, n, replace=False).tolist()
    if draw(st.booleans()):
        ids.sort()  # so that segments follow one another
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
    parts, left = [], {}
    for start, stop in zip([0, *cuts], [*cuts, len(ids)], strict=True):
        part_ids = np.array(sorted(ids[start:stop]), np.int64)
        codes = random_codes(rng, len(part_ids), 12)
        removed = rng.random(len(part_ids)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
        segment = Segment.of(codes, part_ids)
        part = Part.of(start + 1, segment)
        parts.append(part.without(np.flatnonzero(removed)) if removed.any() else part)
        for row in np.flatnonzero(~removed):
            left[int(part_ids[row])] = codes.packed[row].tobytes()
    return parts, left


@given(parts_and_rest(), st.sampled_from([1, 300, 3000, 1 << 20]))
def test_a_merge_holds_what_was_left_in_order_of_id(drawn, window):
    parts, left = drawn
    chunks = list(merged_chunks(parts, window))
    ids = [int(i) for chunk in chunks for i in chunk.id_array()]
    assert ids == sorted(left)
    packed = [bytes(code) for chunk in chunks for code in chunk.codes().packed]
    assert packed == [left[i] for i in ids]
    assert all(len(chunk) % 64 == 0 for chunk in chunks[:-1])
    n, first, last = extent(parts)
    assert n == len(left)
    assert not left or (first, last) == (min(left), max(left))
    if left:
        whole = merged_in_memory([part for part in parts if part.n_alive])
        assert whole.id_array().tolist() == sorted(left)
        assert [bytes(code) for code in whole.codes().packed] == packed
