"""What all commands have in common: the option --quiet, which none of them has to declare."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from rankbits.cli._output import quiet_if

_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--quiet", help="Print nothing on standard error but errors.")
    ],
)


class Commands(typer.Typer):
    """A group of commands, each of which takes --quiet."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        """Register a function as a command; the function itself stays as it is."""
        register = super().command(*args, **options)

        def take(function: Any) -> Any:
            register(_with_quiet(function))
            return function

        return take


def _with_quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with one more option."""

    @functools.wraps(function)
    def command(*args: Any, quiet: bool, **options: Any) -> Any:
        with quiet_if(quiet):
            return function(*args, **options)

    signature = inspect.signature(function)
    parameters = [*signature.parameters.values(), _QUIET]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {**function.__annotations__, "quiet": _QUIET.annotation}
    return command
