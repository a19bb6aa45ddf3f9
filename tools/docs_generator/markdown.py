"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """The text as code.

    >>> code("talr-ap")
    '`talr-ap`'
    """
    return f"`{text}`"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table; a bar within a cell does not end it.

    >>> print(table(["Name", "Value"], [["a|b", "1"]]))
    | Name | Value |
    |---|---|
    | a\|b | 1 |
    """
    lines = [header, *rows]
    texts = ["|" + "|".join(_cell(text) for text in line) + "|" for line in lines]
    texts.insert(1, "|---" * len(header) + "|")
    return "\n".join(texts)


def _cell(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f" {escaped} " if text else " "
