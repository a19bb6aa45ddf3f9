"""Docstrings of estimators: a class documents its own parameters, others have their entries added.

The sections are those of numpydoc, each a heading underlined with dashes:

    name : type, default=value
        What it does.
"""

import inspect
import re

_HEADING = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.MULTILINE)
_FIRST = "n_bits"  # whatever the class, the code length is documented first
_PARAMETERS, _ATTRIBUTES = "Parameters", "Attributes"


def complete_docstring(cls: type, declared: dict[str, str]) -> None:
    """Add the entries of shared and inherited parameters, and of inherited attributes.

    `declared` has the parameters that the class itself declares, in their order, each with the
    entry that is shown where the class has none in its docstring, or with "".
    """
    if "__doc__" not in vars(cls) or vars(cls)["__doc__"] is None:
        return
    sections = split_sections(inspect.cleandoc(vars(cls)["__doc__"]))
    inherited = _inherited_sections(cls)
    for heading in (_ATTRIBUTES, _PARAMETERS):
        own = split_entries(sections.pop(heading, ""))
        if heading == _PARAMETERS:
            own = {name: entry for name, entry in {**declared, **own}.items() if entry}
        entries = {**own, **{k: v for k, v in inherited.get(heading, {}).items() if k not in own}}
        if entries:
            sections = _insert_after_summary(sections, heading, _join_entries(entries))
    cls.__doc__ = _join_sections(sections)


def split_sections(docstring: str) -> dict[str, str]:
    """The text of each section by its heading; "" is the heading of what comes first."""
    headings = list(_HEADING.finditer(docstring))
    ends = [match.start() for match in headings[1:]] + [len(docstring)]
    sections = {"": docstring[: headings[0].start() if headings else None].strip()}
    for match, end in zip(headings, ends, strict=False):
        sections[match[1].strip()] = docstring[match.end() : end].strip("\n")
    return sections


def split_entries(section: str) -> dict[str, str]:
    """The entries of a section by their names, each with its description."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line and not line[0].isspace():
            name = line.split(" :")[0]
            entries[name] = line
        elif name:
            entries[name] += "\n" + line
    return {name: text.rstrip() for name, text in entries.items()}


def _inherited_sections(cls: type) -> dict[str, dict[str, str]]:
    """Entries of the nearest base class that documents parameters."""
    for base in cls.__mro__[1:]:
        sections = split_sections(inspect.cleandoc(vars(base).get("__doc__") or ""))
        if _PARAMETERS in sections:
            return {h: split_entries(sections.get(h, "")) for h in (_PARAMETERS, _ATTRIBUTES)}
    return {}


def _insert_after_summary(sections: dict[str, str], heading: str, text: str) -> dict[str, str]:
    return {"": sections[""], heading: text, **{k: v for k, v in sections.items() if k}}


def _join_entries(entries: dict[str, str]) -> str:
    order = sorted(entries, key=lambda name: name != _FIRST)
    return "\n".join(entries[name] for name in order)


def _join_sections(sections: dict[str, str]) -> str:
    parts = [sections[""]]
    parts += [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items() if name]
    return "\n\n".join(parts) + "\n"
