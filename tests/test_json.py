"""Sealed files: whatever happens to one, it is read as it was written or refused in a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbits._json import parse_json, seal, unseal
from rankbits.errors import FileFormatError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def read(data):
    return unseal(data, "it.json", "test", 3)


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES))
def test_a_record_comes_back_as_it_was(record):
    assert read(seal("test", 3, record)) == {"format": "test", "version": 3, **record}


@given(st.data())
def test_a_file_that_was_altered_in_any_byte_is_refused(data):
    sealed = seal("test", 3, {"items": [1, 2, {"name": "cat"}], "share": 0.25})
    place = data.draw(st.integers(0, len(sealed) - 1))
    altered = bytearray(sealed)
    altered[place] = data.draw(st.integers(0, 255))
    try:
        is_same = json.loads(altered) == json.loads(sealed)
    except (ValueError, RecursionError):
        is_same = False
    if is_same:  # such as another blank
        return
    with pytest.raises(FileFormatError, match=r"^it\.json "):
        read(bytes(altered))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"null",
        b"[" * 100_000,
        b'{"format": "test", "version": 3, "x": NaN}',
        b'{"format": "test", "version": 3, "x": 1e999}',
        b'{"format": "test", "version": 3, "x": ' + b"9" * 5000 + b"}",
        b'{"format": "test", "version": 3, "x": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"format": "test", "version": 3, "json_sha256": ["x"]}',
        b'{"format": "test", "version": [3]}',
        b'{"format": ["test"]}',
        b"\xff\xfe{}",
    ],
)
def test_what_is_no_sealed_file_is_refused_in_one_line(data):
    with pytest.raises(FileFormatError, match=r"^it\.json ") as refusal:
        read(data)
    assert "\n" not in str(refusal.value)


REFUSED = {
    "nothing": b"",
    "no number": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "a number beyond all numbers": b'{"a": 1e999}',
    "too many digits": b"[" + b"9" * 5000 + b"]",
    "no text": b"\xff\xfe\x00",
    "deep brackets": b"[" * 100 + b"0" + b"]" * 100,
    "deeper than the interpreter goes": b"[" * 100_000,
    "deep braces": b'{"a":' * 500 + b"0" + b"}" * 500,
    "too many values": b"[" + b"[]," * 300_000 + b"0]",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_text_that_is_not_json_or_too_much_of_it_is_refused(case):
    with pytest.raises(FileFormatError, match=r"^a\.json ") as caught:
        parse_json("a.json", REFUSED[case])
    assert "\n" not in str(caught.value)


def test_other_texts_are_their_values():
    assert parse_json("a.json", b' {"a": [1, 2.5, "x", null, {"b": []}]} ') == {
        "a": [1, 2.5, "x", None, {"b": []}]
    }
    nested = b"[" * 30 + b"7" + b"]" * 30
    assert str(parse_json("a.json", nested)) == nested.decode()
