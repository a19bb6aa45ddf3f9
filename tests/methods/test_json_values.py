"""JSON of somebody else is read within bounds."""

import pytest

from rankbits.errors import FileFormatError
from rankbits.methods.json_values import parse_json

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
