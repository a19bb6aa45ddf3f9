"""Bodies of JSON are read as the json module reads them, and never cost much more than they are."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits import _wire
from rankbits.errors import InputError
from rankbits.service._forms import SearchRequest
from rankbits.service._json_fields import Bounds, read_field, read_fields
from rankbits.service._problems import RequestProblem

NAMES = frozenset(SearchRequest.model_fields)
BOUNDS = Bounds(rows=1024, ids=100_000, width=3, n_bits=64, characters=100, reads="texts")
MB = 1 << 20

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
floats = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
ids = st.lists(st.integers(0, 2**63 - 2), max_size=30)
sound = st.fixed_dictionaries(
    {},
    optional={
        "ids": ids | st.none(),
        "allowed": ids,
        "k": st.integers() | st.none() | texts,
        "weights": st.lists(floats, max_size=9),
        "vectors": st.lists(st.lists(floats, min_size=3, max_size=3), max_size=5),
        "texts": st.lists(texts, max_size=5),
        "labels": st.lists(texts, max_size=5),
        "codes": st.lists(st.text("0123456789abcdef", max_size=9), max_size=5),
        "include": st.lists(st.sampled_from(["codes", "fields"])),
    },
)


@given(sound, st.booleans(), st.sampled_from([None, 1, "\t\r\n "]))
def test_a_sound_body_is_read_as_by_the_json_module(fields, is_escaped, indent):
    body = json.dumps(fields, ensure_ascii=is_escaped, indent=indent).encode()
    values = read_fields(body, NAMES, BOUNDS)
    assert list(values) == list(fields)
    for name, value in fields.items():
        if isinstance(values[name], np.ndarray):
            dtype = np.int64 if name in ("ids", "allowed") else np.float64
            assert np.array_equal(values[name], np.array(value, dtype).reshape(values[name].shape))
        else:
            assert values[name] == value


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 8192, 50_000, 100_000])
@pytest.mark.parametrize("separator", [",", ", ", " ,\n"])
def test_lists_longer_than_a_piece_are_whole(n, separator):
    body = "[" + separator.join(map(str, range(n))) + "]"
    assert np.array_equal(read_field(body.encode(), "allowed", BOUNDS), np.arange(n))


@pytest.mark.parametrize("n", [2000, 4096, 5000])
@pytest.mark.parametrize("end", [",]", ", ]", ",,1]", "", ",1 2]", ',"x"]', ",null]", ",[1]]"])
def test_a_list_that_ends_badly_is_refused(n, end):
    body = "[" + ",".join(["0"] * n) + end
    with pytest.raises(RequestProblem) as problem:
        read_field(body.encode(), "allowed", BOUNDS)
    assert problem.value.status in (400, 422)


BODIES = {
    "empty strings": b'{"ids":[' + b'"",' * (MB // 3) + b'""]}',
    "zeros": b'{"ids":[' + b"0," * (MB // 2) + b"0]}",
    "zeros that may be": b'{"allowed":[' + b"0," * (MB // 2) + b"0]}",
    "a row of zeros": b'{"vectors":[[' + b"0," * (MB // 2) + b"0]]}",
    "empty rows": b'{"vectors":[' + b"[]," * (MB // 3) + b"[]]}",
    "brackets": b'{"ids":' + b"[" * MB,
    "objects": b'{"k":' * (MB // 5),
    "unknown names": b"{" + b",".join(b'"a%d":1' % i for i in range(MB // 12)) + b"}",
    "one name": b"{" + b'"k":1,' * (MB // 6) + b'"k":1}',
    "a long name": b'{"' + b"a" * MB + b'":1}',
    "a text": b'{"texts":["' + b"a" * MB + b'"]}',
    "a text of escapes": b'{"texts":["' + b"\\n" * (MB // 2) + b'"]}',
    "texts": b'{"texts":[' + b'"",' * (MB // 3) + b'""]}',
    "labels": b'{"labels":[' + b'"",' * (MB // 3) + b'""]}',
    "codes": b'{"codes":[' + b'"",' * (MB // 3) + b'""]}',
    "a number": b'{"k":' + b"9" * MB + b"}",
    "a number in a list": b'{"ids":[' + b"9" * MB + b"]}",
    "numbers too large": b'{"weights":[' + b"1e9999," * (MB // 8) + b"0]}",
    "words": b'{"include":[' + b'"codes",' * (MB // 8) + b'"codes"]}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_of_any_shape_is_refused_for_a_small_multiple_of_its_size(name):
    tracemalloc.start()
    with pytest.raises(RequestProblem) as problem:
        read_fields(BODIES[name], NAMES, BOUNDS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * len(BODIES[name])
    assert len(problem.value.detail) < 200
    assert problem.value.status in (400, 422)


def test_a_header_of_arrays_with_too_many_elements_is_refused():
    header = b"[" + b"[]," * 100_000 + b"[]]"
    with pytest.raises(InputError, match="at most 32768 values"):
        _wire.load(len(header).to_bytes(8, "little") + header)
