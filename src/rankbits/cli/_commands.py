"""What all commands have in common: groups of options, --quiet, and successors of old options."""

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from rankbits.cli._options import PANELS, QUIET
from rankbits.cli._output import quiet_if
from rankbits.cli._renamed import RENAMED


class Commands(typer.Typer):
    """A group of commands, each of which takes --quiet and the fields of its option groups."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command; the function itself stays as it is."""
        register = super().command(*args, cls=_Command, **options)

        def take(function: Any) -> Any:
            register(_with_options(function))
            return function

        return take


class _Command(TyperCommand):
    """A command that knows which of its former options are spelled otherwise now."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a former option with the words that do the same today."""
        names: list[str] = []
        parent = ctx
        while parent.parent is not None:
            names.insert(0, parent.info_name)
            parent = parent.parent
        successors = RENAMED.get(" ".join(names), {})
        for word in args:
            option = word.partition("=")[0]
            if option in successors:
                raise typer.BadParameter(f"{option} is now {successors[option]}", ctx)
        return super().parse_args(ctx, args)


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the fields of its groups instead of the groups, and --quiet."""
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _fields_of(parameter.annotation)
        else:
            annotation = _with_metavar(with_own_help(parameter.annotation), parameter.name)
            parameters.append(_option(parameter.name, annotation, parameter.default))
    parameters.append(_option("quiet", Annotated[bool, QUIET], False))
    parameters.sort(key=lambda one: PANELS.index(declaration_of(one.annotation).rich_help_panel))

    @functools.wraps(function)
    def command(*, quiet: bool, **values: Any) -> Any:
        for name, group in groups.items():
            given = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**given)
        with quiet_if(quiet):
            return function(**values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _fields_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _option(
            field.name,
            with_own_help(hints[field.name]),
            inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]


def _with_metavar(annotation: Any, name: str) -> Any:
    """An argument is written in capitals in its usage, as it is in the help text."""
    declaration = copy.copy(declaration_of(annotation))
    if not isinstance(declaration, typer.models.ArgumentInfo) or declaration.metavar:
        return annotation
    declaration.metavar = name.upper()
    return Annotated[get_args(annotation)[0], declaration]


def declaration_of(annotation: Any) -> Any:
    """The declaration in `Annotated[type, declaration, ...]`."""
    return get_args(annotation)[1]


def with_own_help(annotation: Any) -> Any:
    """`Annotated[type, declaration, "help"]` with that help in a copy of the declaration."""
    parts = get_args(annotation)
    if get_origin(annotation) is not Annotated or not isinstance(parts[-1], str):
        return annotation
    declaration = copy.copy(parts[1])
    declaration.help = parts[2]
    return Annotated[parts[0], declaration]
