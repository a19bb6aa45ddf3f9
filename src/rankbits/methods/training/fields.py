"""Hyper-parameters as fields of a class: name, type, default and check in one line.

    class CSQ(GradientHasher):
        quantization: float = parameter(1e-4, number())
        center_seed: int = parameter(0, integer(0))

A subclass of `Parameters` has a constructor with one keyword argument for each of its fields and of
the fields of its base classes. Type checkers and editors know that constructor, because the class
is declared as a dataclass (PEP 681). It stores what it is given, as scikit-learn's contract
demands; `check_parameters` checks the values when `fit` is called.

A field declared with `auto` has the default "auto": its value comes from a recipe. Its annotation
is the type of the value that a recipe, or the user, gives.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, dataclass_transform

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.training.docstrings import complete_docstring

AUTO = "auto"
Check = Callable[[str, Any], Any]  # takes name and value, returns the clean value or raises


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class Parameters:
    """Base of the classes that declare hyper-parameters; see the module's description."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        for declared in fields(cls):  # type: ignore[arg-type]  # it is a dataclass now
            if declared.name in vars(cls):
                delattr(cls, declared.name)  # defaults are the constructor's: help lists them once
        complete_docstring(cls)


def parameter(default: Any, check: Check, *, reported: bool = True) -> Any:
    """A hyper-parameter with a fixed default.

    With `reported=False` it says how a fit runs, or is an object: reports and fingerprints of runs
    leave it out.
    """
    return field(default=default, metadata={"check": check, "reported": reported})


def auto(check: Check, *, reported: bool = True) -> Any:
    """A hyper-parameter whose default is chosen by a recipe."""
    return field(default=AUTO, metadata={"check": check, "reported": reported, "auto": True})


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the recipe."""
    return isinstance(value, str) and value == AUTO


def auto_names(declared: type[Parameters] | Parameters) -> tuple[str, ...]:
    """Names of the parameters that a recipe may choose."""
    return tuple(f.name for f in _fields(declared) if f.metadata.get("auto"))


def reported_values(parameters: Parameters) -> dict[str, Any]:
    """The values that decide what a fit learns, by name."""
    names = [f.name for f in _fields(parameters) if f.metadata.get("reported")]
    return {name: getattr(parameters, name) for name in names}


def check_parameters(parameters: Parameters) -> dict[str, Any]:
    """Check every parameter that is not left to a recipe; returns the clean values by name."""
    values = {}
    for declared in _fields(parameters):
        value = getattr(parameters, declared.name)
        if not (declared.metadata.get("auto") and is_auto(value)):
            values[declared.name] = declared.metadata["check"](declared.name, value)
    return values


def _fields(declared: type[Parameters] | Parameters) -> tuple[Any, ...]:
    return fields(declared)  # type: ignore[arg-type]  # subclasses are dataclasses


def integer(low: int, high: int | None = None) -> Check:
    """An integer from `low` to `high`."""
    return lambda name, value: _check.whole(name, value, low, high)


def number(low: float = 0.0, high: float = math.inf, *, closed: bool = True) -> Check:
    """A finite number from `low` on, or above it if not closed, and below `high`."""
    return lambda name, value: _check.number(name, value, low, high, closed=closed)


def choice(*words: str) -> Check:
    """One of some words."""
    return lambda name, value: _check.choice(name, value, words)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    return _check.flag(name, value)


def anything(name: str, value: Any) -> Any:
    """A value that is checked where it is used."""
    return value


def optional(check: Check) -> Check:
    """None, or what the check accepts."""
    return lambda name, value: None if value is None else check(name, value)


def either(word: Any, check: Check) -> Check:
    """One value that has a meaning of its own, or what the check accepts."""
    return lambda name, value: (
        value if type(value) is type(word) and value == word else check(name, value)
    )


def sizes(name: str, value: Any) -> tuple[int, ...]:
    """A sequence of positive integers, which may be empty."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InputError(
            f"{name} must be a sequence of layer sizes such as (256,), got {_check.describe(value)}"
        )
    return tuple(_check.whole(name, size, 1) for size in value)
