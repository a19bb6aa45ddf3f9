"""How the site reads docstrings: a doctest becomes a block of code, a footnote a plain number.

mkdocstrings takes docstrings as Markdown. Ours are plain text with numpydoc sections, so some lines
need a form that Markdown understands. Everything is read from the sources, except for estimators:
some of them get their constructor, and inherited parameters in their docstring, when imported.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from griffe import (
    Class,
    Docstring,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
)

_FOOTNOTE_MARK = re.compile(r" \[(\d+)\]_")
_FOOTNOTE = re.compile(r"^\.\. \[(\d+)\] ", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> ", re.MULTILINE)
_SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:(?!^\S.*\n---).*\n?)*", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, *]*) : (.+)$(?!\n +\S)", re.MULTILINE)
_PROSE = re.compile(r"\n\n(?=\S)(?!\w[\w, *]* : )")
_INDENTED = re.compile(r"(:\n)( {2,}\S)")
_COMPLETED = "rankbits.methods."
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: ParameterKind.var_keyword,
}


def as_markdown(text: str) -> str:
    """The docstring in a form that Markdown and numpydoc understand."""
    text = _FOOTNOTE_MARK.sub(r" [\1]", text)
    text = _with_heading(text, "References", _FOOTNOTE)
    text = _FOOTNOTE.sub(r"[\1] ", text)
    text = _with_heading(text, "Examples", _DOCTEST)
    text = _SECTION.sub(_section_of_entries, text)
    return _INDENTED.sub(r"\1\n\2", text)


def _section_of_entries(section: re.Match[str]) -> str:
    """What stands in place of a type is the description; sentences after the entries are notes."""
    entries, *sentences = _PROSE.split(section[0], maxsplit=1)
    notes = [f"\n\nNotes\n-----\n{text}" for text in sentences]
    return _ENTRY.sub(r"\1\n    \2", entries) + "".join(notes)


def _with_heading(text: str, heading: str, content: re.Pattern[str]) -> str:
    """The text with a heading before the first place that has such content, if it has none."""
    first = content.search(text)
    if first is None or f"{heading}\n---" in text:
        return text
    return f"{text[: first.start()]}{heading}\n{'-' * len(heading)}\n{text[first.start() :]}"


class PlainDocstrings(Extension):
    """Rewrites every docstring before mkdocstrings parses it."""

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        """Called once, when all modules are there."""
        for cls in _classes_of(pkg):
            if cls.path.startswith(_COMPLETED) and cls.docstring is not None:
                _take_from_run_time(cls)
            for member in cls.members.values():
                if isinstance(member, Function) and member.docstring is None:
                    member.docstring = _inherited_docstring(cls, member)
        for member in _members_of(pkg):
            if member.docstring is not None:
                member.docstring.value = as_markdown(member.docstring.value)


def _members_of(parent: Object) -> Iterator[Object]:
    """All that a module or a class defines, itself included."""
    yield parent
    for member in parent.members.values():
        if isinstance(member, Object):  # and no alias of what another module defines
            yield from _members_of(member)


def _classes_of(package: Module) -> Iterator[Class]:
    return (member for member in _members_of(package) if isinstance(member, Class))


def _inherited_docstring(cls: Class, method: Function) -> Docstring | None:
    """The docstring of the method that this one overrides."""
    for base in cls.mro():
        overridden = base.members.get(method.name)
        if overridden is not None and overridden.docstring is not None:
            return Docstring(overridden.docstring.value, parent=method)
    return None


def _take_from_run_time(cls: Class) -> None:
    """Docstring and constructor of an estimator as they are once it is imported."""
    estimator = getattr(import_module(cls.module.path), cls.name, None)
    if not inspect.isclass(estimator):
        return
    cls.docstring = Docstring(inspect.getdoc(estimator) or "", parent=cls)
    parameters = Parameters(Parameter("self", kind=ParameterKind.positional_or_keyword))
    for parameter in inspect.signature(estimator).parameters.values():
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        kind = _KINDS[parameter.kind]
        parameters.add(Parameter(parameter.name, kind=kind, default=default))
    cls.set_member("__init__", Function("__init__", parameters=parameters))
