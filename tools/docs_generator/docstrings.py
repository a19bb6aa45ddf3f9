"""How the site reads docstrings: a doctest becomes a block of code, a footnote a plain number.

mkdocstrings takes docstrings as Markdown. Ours are plain text with numpydoc sections, so some lines
need a form that Markdown understands. Docstrings are the sources' own, except for estimators:
classes there complete their docstrings when they are imported.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Module, Object

_FOOTNOTE_MARK = re.compile(r" \[(\d+)\]_")
_FOOTNOTE = re.compile(r"^\.\. \[(\d+)\] ", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> ", re.MULTILINE)
_INDENTED = re.compile(r"(:\n)( {2,}\S)")
_COMPLETED = "rankbits.methods."


def as_markdown(text: str) -> str:
    """The docstring in a form that Markdown and numpydoc understand."""
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

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        """Called once, when all modules are there: a method may inherit its docstring."""
        for cls in _classes_of(pkg):
            for name, member in cls.members.items():
                if member.is_function and member.docstring is None:
                    member.docstring = _inherited_docstring(cls, name)


def _classes_of(parent: Module | Class) -> Iterator[Class]:
    for member in parent.members.values():
        if not member.is_alias and isinstance(member, Module | Class):
            yield from _classes_of(member)
            if isinstance(member, Class):
                yield member


def _inherited_docstring(cls: Class, name: str) -> Docstring | None:
    members = (base.members.get(name) for base in cls.mro())
    return next((member.docstring for member in members if member and member.docstring), None)


def _docstring_at_run_time(cls: Class) -> Docstring | None:
    text = inspect.getdoc(getattr(import_module(cls.module.path), cls.name, None))
    if cls.docstring is None or text is None:
        return cls.docstring
    return Docstring(text, lineno=cls.docstring.lineno, parent=cls)
