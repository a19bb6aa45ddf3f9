"""How the site reads docstrings: a doctest becomes a block of code, a footnote a plain number.

mkdocstrings takes docstrings as Markdown. Ours are plain text with numpydoc sections, so some lines
need a form that Markdown understands. Docstrings are the sources' own, except for estimators:
classes there complete their docstrings when they are imported.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Object

_FOOTNOTE_MARK = re.compile(r" \[(\d+)\]_")
_FOOTNOTE = re.compile(r"^\.\. \[(\d+)\] ", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> ", re.MULTILINE)
_INDENTED = re.compile(r"(:\n)( {2,}\S)")
_COMPLETED = "rankbits.methods."


def as_markdown(text: str) -> str:
    """The docstring in a form that Markdown understands.

    >>> print(as_markdown("Adds one [1]_.\\n\\n>>> add(1)\\n2\\n\\n.. [1] Peano."))
    Adds one [1].
    <BLANKLINE>
    Examples
    --------
    >>> add(1)
    2
    <BLANKLINE>
    References
    ----------
    [1] Peano.
    """
    text = _FOOTNOTE_MARK.sub(r" [\1]", text)
    text = _with_heading(text, "References", _FOOTNOTE)
    text = _FOOTNOTE.sub(r"[\1] ", text)
    text = _with_heading(text, "Examples", _DOCTEST)
    return _INDENTED.sub(r"\1\n\2", text)


def _with_heading(text: str, heading: str, content: re.Pattern[str]) -> str:
    """The text with a heading before the first place that has such content, if it has none."""
    first = content.search(text)
    if first is None or f"{heading}\n---" in text:
        return text
    return f"{text[: first.start()]}{heading}\n{'-' * len(heading)}\n{text[first.start() :]}"


class PlainDocstrings(Extension):
    """Rewrites every docstring before mkdocstrings parses it."""

    def on_instance(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if isinstance(obj, Class) and obj.path.startswith(_COMPLETED):
            obj.docstring = _docstring_at_run_time(obj)
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def _docstring_at_run_time(cls: Class) -> Docstring | None:
    text = inspect.getdoc(getattr(import_module(cls.module.path), cls.name, None))
    if cls.docstring is None or text is None:
        return cls.docstring
    return Docstring(text, lineno=cls.docstring.lineno, parent=cls)
