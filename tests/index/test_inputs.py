"""What comes in is checked at the door: an error names its argument, and nothing has changed."""

import numpy as np
import pytest

from oracles.search import codes_like, pairs_of_table
from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.index import HammingIndex

NAN = float("nan")
PACKED = np.arange(8, dtype=np.uint8).reshape(4, 2)  # four codes of 16 bits


@pytest.fixture
def index():
    """Six items in more than one part, some others since removed."""
    found = HammingIndex(16)
    found.add(np.full((30, 2), 7, np.uint8), np.arange(100, 130))
    found.remove(np.arange(100, 129))
    found.add(PACKED)
    found.remove([132])
    found.add(PACKED[:2], [10, 20])
    return found


def state(index):
    """All that can be seen of an index."""
    return (
        len(index),
        index.ids.tolist(),
        index.codes().packed.tolist(),
        pairs_of_table(index.search(PACKED, 9)),
        index.add(PACKED[:0]).tolist(),
    )


def refused(index, call, message):
    """The call raises the message and leaves the index as it was."""
    before = state(index)
    with pytest.raises(InputError, match=message):
        call(index)
    assert state(index) == before


BAD_CODES = {
    "float": (np.zeros((2, 2)), r"codes must be uint8 of shape \(n, 2\) for 16 bits, got float64"),
    "NaN": (np.full((2, 2), NAN), r"codes must be uint8 .* got float64"),
    "wrong width": (np.zeros((2, 3), np.uint8), r"codes must be uint8 .* of shape \(2, 3\)"),
    "unpacked bits": (np.zeros((2, 16), np.uint8), r"codes must be uint8 .* of shape \(2, 16\)"),
    "one code": (np.zeros(2, np.uint8), r"codes must be uint8 .* of shape \(2,\)"),
    "signed": (np.zeros((2, 2), np.int8), "codes must be uint8 .* got int8"),
    "words": ([["a", "b"]], "codes must be uint8"),
    "ragged": ([[1, 2], [3]], "codes must be an array of one shape"),
    "nothing": (None, "codes must be uint8"),
    "fewer bits": (
        BinaryCodes(np.zeros((2, 2), np.uint8), 15),
        "codes must have 16 bits as the index has, got 15",
    ),
    "more bits": (
        BinaryCodes(np.zeros((2, 3), np.uint8), 17),
        "codes must have 16 bits as the index has, got 17",
    ),
}
TAKES_CODES = {
    "add": lambda index, codes: index.add(codes),
    "upsert": lambda index, codes: index.upsert(codes, [1, 2]),
    "search": lambda index, codes: index.search(codes, 3),
    "within": lambda index, codes: index.within(codes, 3),
}


@pytest.mark.parametrize("codes", BAD_CODES)
@pytest.mark.parametrize("call", TAKES_CODES)
def test_codes_that_do_not_fit_are_refused(index, call, codes):
    bad, message = BAD_CODES[codes]
    refused(index, lambda found: TAKES_CODES[call](found, bad), message)


def test_stray_bits_behind_the_last_are_refused():
    index = HammingIndex(12)
    for call in TAKES_CODES.values():
        with pytest.raises(InputError, match="codes of 12 bits must end in 4 zero bits"):
            call(index, np.full((2, 2), 255, np.uint8))


BAD_IDS = {
    "float": ([1.0, 2.0], r"ids must be integers of shape \(n,\), got float64"),
    "NaN": ([1, NAN], r"ids must be integers of shape \(n,\), got float64"),
    "bool": ([True, False], "ids must be integers .* got bool"),
    "words": (["a", "b"], "ids must be integers"),
    "negative": ([3, -1], r"ids must be from 0 to 2\*\*63 - 2, got -1"),
    "too large": (
        np.array([1, 2**63 - 1]),
        r"ids must be from 0 to 2\*\*63 - 2, got 9223372036854775807",
    ),
    "larger still": (np.array([1, 2**64 - 1], np.uint64), "ids must be from 0"),
    "beyond integers": ([1, 2**70], "ids must be integers"),
    "two-dimensional": ([[1, 2]], r"ids must be integers of shape \(n,\)"),
    "one number": (1, r"ids must be integers of shape \(n,\)"),
    "ragged": ([[1], [2, 3]], "ids must be an array of one shape"),
    "repeated": ([7, 7], "ids must differ, 7 comes more than once"),
}
TAKES_IDS = {
    "add": lambda index, ids: index.add(PACKED[:2], ids),
    "upsert": lambda index, ids: index.upsert(PACKED[:2], ids),
    "remove": lambda index, ids: index.remove(ids),
    "codes": lambda index, ids: index.codes(ids),
}


@pytest.mark.parametrize(
    ("call", "ids"),
    [(call, ids) for call in TAKES_IDS for ids in BAD_IDS if (call, ids) != ("codes", "repeated")],
)
def test_ids_that_cannot_be_are_refused(index, call, ids):
    bad, message = BAD_IDS[ids]
    refused(index, lambda found: TAKES_IDS[call](found, bad), message)


@pytest.mark.parametrize("call", ["add", "upsert"])
@pytest.mark.parametrize("ids", [[], [40], [40, 41, 42]])
def test_as_many_ids_as_codes_are_wanted(index, call, ids):
    message = f"ids must be as many as codes, got {len(ids)} ids for 2 codes"
    refused(index, lambda found: TAKES_IDS[call](found, ids), message)


def test_ids_that_are_there_are_not_added_again(index):
    message = r"ids must be new, 10 exists already; call upsert\(\)"
    refused(index, lambda found: found.add(PACKED[:2], [55, 10]), message)


@pytest.mark.parametrize("gone", [100, 132, 5000])
@pytest.mark.parametrize("call", ["remove", "codes"])
def test_ids_that_are_not_there_or_no_more_are_not_found(index, call, gone):
    message = f"ids must be of items that exist, {gone} is not"
    refused(index, lambda found: TAKES_IDS[call](found, [10, gone, 20]), message)


BAD_K = {
    "zero": 0,
    "negative": -3,
    "float": 2.0,
    "NaN": NAN,
    "bool": True,
    "word": "3",
    "none": None,
}


@pytest.mark.parametrize("k", BAD_K)
@pytest.mark.parametrize("ties", ["id", "complete"])
def test_k_must_be_a_whole_number_from_1(index, k, ties):
    refused(index, lambda found: found.search(PACKED, BAD_K[k], ties), "k must be an integer >= 1")


@pytest.mark.parametrize("radius", [-1, 1.0, NAN, False, "2", None])
def test_a_radius_must_be_a_whole_number_from_0(index, radius):
    message = "radius must be an integer >= 0"
    refused(index, lambda found: found.within(PACKED, radius), message)


@pytest.mark.parametrize("ties", ["ids", "", None, True])
def test_ties_are_broken_by_id_or_complete(index, ties):
    message = "ties must be one of id, complete; got"
    refused(index, lambda found: found.search(PACKED, 2, ties), message)


BAD_ALLOWED = {
    "short mask": (np.ones(5, bool), r"allowed as a mask must have shape \(6,\)"),
    "long mask": ([True] * 7, r"allowed as a mask must have shape \(6,\)"),
    "wide mask": (np.ones((6, 1), bool), r"allowed as a mask must have shape \(6,\)"),
    "float": (np.ones(6), r"allowed must be ids or a mask of shape \(6,\)"),
    "NaN": ([NAN], "allowed must be ids or a mask"),
    "negative": ([3, -4], "allowed must be ids or a mask .*got -4"),
    "words": (["a"], "allowed must be ids or a mask"),
    "one id": (3, "allowed must be ids or a mask"),
    "ragged": ([[1], [2, 3]], "allowed must be an array of one shape"),
}


@pytest.mark.parametrize("allowed", BAD_ALLOWED)
def test_a_filter_that_is_neither_ids_nor_a_mask_is_refused(index, allowed):
    bad, message = BAD_ALLOWED[allowed]
    assert len(index) == 6
    refused(index, lambda found: found.search(PACKED, 2, allowed=bad), message)
    refused(index, lambda found: found.within(PACKED, 2, allowed=bad), message)


@pytest.mark.parametrize("n_threads", [0, -1, 1.0, True, "2", 1025])
def test_a_number_of_threads_must_be_from_1_to_1024(index, n_threads):
    message = "n_threads must be an integer from 1 to 1024"
    refused(index, lambda found: found.search(PACKED, 2, n_threads=n_threads), message)
    refused(index, lambda found: found.within(PACKED, 2, n_threads=n_threads), message)
    with pytest.raises(InputError, match=message):
        HammingIndex(16, n_threads=n_threads)


@pytest.mark.parametrize("n_bits", [0, -8, 4097, 64.0, NAN, True, "64", None])
def test_codes_have_1_to_4096_bits(n_bits):
    with pytest.raises(InputError, match="n_bits must be an integer from 1 to 4096"):
        HammingIndex(n_bits)


@pytest.mark.parametrize("kind", ["flat", "Scan", "", None, 1])
def test_a_kind_is_one_of_those_there_are(kind):
    with pytest.raises(InputError, match="kind must be one of auto, scan, mih, ivf; got"):
        HammingIndex(16, kind)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_ids_may_be_integers_of_any_width(dtype):
    index = HammingIndex(16)
    assert index.add(PACKED, np.array([9, 3, 100, 0], dtype)).dtype == np.int64
    assert index.ids.tolist() == [0, 3, 9, 100]
    index.remove(np.array([3], dtype))
    assert index.search(PACKED, 4, allowed=np.array([3, 9], dtype))[1][0].tolist() == [
        9,
        -1,
        -1,
    ]


def test_codes_may_be_packed_bytes_or_binary_codes_contiguous_or_not(rng):
    codes = codes_like("uniform", rng, 40, 24)
    expected = HammingIndex(24)
    expected.add(codes)
    scattered = np.zeros((40, 6), np.uint8)[:, ::2]
    scattered[:] = codes.packed
    for given in (codes.packed, scattered, np.asfortranarray(codes.packed)):
        index = HammingIndex(24)
        index.add(given)
        assert index.codes() == codes
        found, wanted = index.search(given, 3), expected.search(codes, 3)
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(found, wanted, strict=True))


def test_codes_that_may_not_be_written_to_are_taken(rng):
    packed = codes_like("uniform", rng, 40, 24).packed.copy()
    packed.flags.writeable = False
    index = HammingIndex(24)
    index.add(packed)
    assert index.search(packed, 1)[0].tolist() == [[0]] * 40
