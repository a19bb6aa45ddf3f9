"""The API reference: one page for each public package, with every name of its `__all__`.

The pages name the objects; mkdocstrings reads their docstrings when the site is built.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from docs_generator.markdown import code, table
from docs_generator.tables import (
    kinds_table,
    methods_table,
    metrics_tables,
    protocol_rules_tables,
)

INTRODUCTION = """\
# Reference

Every public name with its docstring, one page for each package, and
[every command with its options](commands.md)."""
SHORTCUTS = "Some of these can also be imported from `rankbits` itself:"


@dataclass(frozen=True)
class Room:
    """A page of the reference: public modules, and a table to start with."""

    page: str
    modules: tuple[str, ...]
    heading: str = ""
    table: Callable[[], str] | None = None


ROOMS = (
    Room("codes", ("rankbits.codes",)),
    Room("affinity", ("rankbits.affinity",)),
    Room("histogram", ("rankbits.histogram",)),
    Room("metrics", ("rankbits.metrics",), "All metrics", metrics_tables),
    Room("evaluation", ("rankbits.evaluation",)),
    Room("objectives", ("rankbits.objectives",)),
    Room("methods", ("rankbits.methods",), "All methods", methods_table),
    Room(
        "search",
        ("rankbits.index", "rankbits.index.engines", "rankbits.index.interop"),
        "All kinds of index",
        kinds_table,
    ),
    Room(
        "adapters",
        (
            "rankbits.adapters",
            "rankbits.adapters.faiss",
            "rankbits.adapters.pgvector",
            "rankbits.adapters.sentence_transformers",
        ),
    ),
    Room("datasets", ("rankbits.datasets",)),
    Room("benchmark", ("rankbits.benchmark",), "Rules of all protocols", protocol_rules_tables),
    Room("report", ("rankbits.report",)),
    Room("papers", ("rankbits.papers",)),
    Room("compress", ("rankbits.compress",)),
    Room("distributed", ("rankbits.distributed",)),
    Room("service", ("rankbits.service",)),
    Room("client", ("rankbits.client",)),
    Room("errors", ("rankbits.errors",)),
)


def public_modules() -> list[str]:
    """Every module whose names are public, but for the top of the package."""
    return [module for room in ROOMS for module in room.modules]


def public_names(module: str) -> list[str]:
    """The names of a public module, its `__all__`.

    >>> "count_ties" in public_names("rankbits.histogram")
    True
    """
    return list(import_module(module).__all__)


def reference_pages() -> dict[str, str]:
    """The text of each page by its name in docs/reference."""
    pages = {f"{room.page}.md": _page(room) for room in ROOMS}
    return {"index.md": _front_page(), **pages}


def _page(room: Room) -> str:
    first, *others = room.modules
    parts = [f"# {first}", directive(first, members=False)]
    if room.table is not None:
        parts += [f"## {room.heading}", room.table()]
    parts += ["## Names", *_directives(first)]
    for module in others:
        parts += [f"## {module}", directive(module, members=False), *_directives(module)]
    return "\n\n".join(parts) + "\n"


def _directives(module: str) -> list[str]:
    return [directive(f"{module}.{name}") for name in public_names(module)]


def directive(path: str, *, members: bool = True) -> str:
    """The line from which mkdocstrings renders an object, with its members or its text alone."""
    if members:
        return f"::: {path}"
    options = ("show_root_heading: false", "show_root_toc_entry: false", "members: false")
    return "\n".join([f"::: {path}", "    options:", *(f"      {option}" for option in options)])


def _front_page() -> str:
    rooms = table(["Package", "Names", "What it is"], map(_room_row, ROOMS))
    shortcuts = ", ".join(_link(name) for name in public_names("rankbits"))
    return f"{INTRODUCTION}\n\n{rooms}\n\n{SHORTCUTS}\n\n{shortcuts}.\n"


def _room_row(room: Room) -> list[str]:
    n_names = sum(len(public_names(module)) for module in room.modules)
    text = (import_module(room.modules[0]).__doc__ or "").split("\n")[0]
    return [f"[{code(room.modules[0])}]({room.page}.md)", str(n_names), text]


def _link(name: str) -> str:
    """A name of `rankbits` itself, linked to where it is documented."""
    value = getattr(import_module("rankbits"), name)
    for room in ROOMS:
        for module in room.modules:
            if value is import_module(module):
                return f"[{code(name)}]({room.page}.md)"
            if any(value is getattr(import_module(module), n) for n in public_names(module)):
                return f"[{code(name)}]({room.page}.md#{module}.{name})"
    raise LookupError(f"rankbits.{name} is on no page of the reference; add its module to ROOMS")
