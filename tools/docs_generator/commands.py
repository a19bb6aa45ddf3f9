"""The page of commands: every argument and option, as the command line itself knows them."""

import inspect
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from docs_generator.markdown import code, table
from rankbits.cli import app
from rankbits.cli._renamed import RENAMED

INTRODUCTION = """\
# Commands and their options

Every command of `rankbits`, with all of its arguments and options. [Command line](../cli.md)
explains them with examples; `--help` after a command prints the same list. An option marked with …
may be given several times."""
_WORDS = {int: "N", float: "NUMBER", str: "TEXT"}


def commands_page() -> str:
    """The whole page."""
    command = typer.main.get_command(app)
    return "\n\n".join([INTRODUCTION, *_sections(command, "rankbits"), _former_options()]) + "\n"


def command_paths() -> list[str]:
    """Every command as users write it, such as `rankbits index build`."""
    return [path for path, _ in _walk(typer.main.get_command(app), "rankbits")]


def _sections(command: Any, path: str) -> list[str]:
    return [_section(leaf, name) for name, leaf in _walk(command, path)]


def _former_options() -> str:
    rows = [
        [code(f"rankbits {command}"), code(option), successor]
        for command, options in RENAMED.items()
        for option, successor in options.items()
    ]
    heading = "## Former options\n\nEach of them is an error that names what does the same today."
    return f"{heading}\n\n{table(['Command', 'Option', 'Today'], rows)}"


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Commands that do something themselves, depth first."""
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        yield path, command
        return
    for name, subcommand in subcommands.items():
        yield from _walk(subcommand, f"{path} {name}")


def _section(command: Any, path: str) -> str:
    hints = get_type_hints(command.callback)
    rows = [_row(param, hints[param.name]) for param in command.params if param.name in hints]
    usage = " ".join([path, *_usage(command)])
    parts = [f"## {path}", inspect.cleandoc(command.help or ""), f"    {usage}"]
    if rows:
        parts.append(table(["Name", "Value", "Default", "What it does"], rows))
    return "\n\n".join(parts)


def _usage(command: Any) -> list[str]:
    """Arguments and required options; the others are in the table."""
    words = []
    for param in command.params:
        if param.param_type_name == "argument":
            word = _argument_name(param)
            words.append(word if param.required else f"[{word}]")
        elif param.required:
            words.append(f"{_option_name(param)} {param.name.upper()}")
    return [*words, "[options]"]


def _row(param: Any, annotation: Any) -> list[str]:
    if param.param_type_name == "argument":
        names = code(_argument_name(param))
    else:
        names = ", ".join(code(name) for name in (*param.opts, *param.secondary_opts))
    repeats = param.nargs == -1 or getattr(param, "multiple", False)
    value = param.metavar if param.metavar and param.param_type_name == "option" else None
    value = value or value_name(annotation)
    shown = (code(value) if value else "") + (" …" if repeats else "")
    return [names, shown.strip(), _default(param, annotation), " ".join((param.help or "").split())]


def _argument_name(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    return f"{name}..." if param.nargs == -1 and not name.endswith("...") else name


def _option_name(param: Any) -> str:
    return str(max(param.opts, key=len))


def value_name(annotation: Any) -> str:
    """What stands for a value of this type: the choices if there are any, nothing for a flag.

    >>> value_name(int | None), value_name(list[str]), value_name(Literal["id", "complete"])
    ('N', 'TEXT', 'id|complete')
    """
    if get_origin(annotation) in (Union, types.UnionType, list, tuple):
        inner = [part for part in get_args(annotation) if part not in (type(None), ...)]
        return value_name(inner[0])
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    if annotation is bool:
        return ""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(member.value) for member in annotation)
    return _WORDS.get(annotation, "PATH")


def _default(param: Any, annotation: Any) -> str:
    """The default, where there is one to show."""
    if param.required:
        return "required"
    if value_name(annotation) == "":
        return _default_flag(param)
    values = param.default if isinstance(param.default, list | tuple) else [param.default]
    return ", ".join(code(str(getattr(v, "value", v))) for v in values if v not in (None, ""))


def _default_flag(param: Any) -> str:
    """Of two opposite flags, the one that holds; nothing for a flag that is off."""
    if not param.secondary_opts:
        return ""
    return code((param.opts if param.default else param.secondary_opts)[0])
