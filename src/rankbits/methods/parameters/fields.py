"""Hyper-parameters as fields of a class: name, type, default and check in one line.

    class CSQ(GradientHasher):
        quantization: float = parameter(1e-4, number())
        center_seed: int = parameter(0, integer(0))

A subclass of `Parameters` has a constructor with one keyword argument for each of its fields and of
the fields of its base classes. Type checkers and editors know that constructor, because the class
is declared as a dataclass (PEP 681). It stores what it is given, as scikit-learn's contract
demands; `check_parameters` checks the values when `fit` is called.

A parameter is documented in the docstring of its class. One that several classes have is a constant
with the entry of its documentation, and a class takes it by name, `gamma: float | None = GAMMA`.

A field declared with `auto` has the default "auto": its value comes from a recipe. Its annotation
is the type of the value that a recipe, or the user, gives. What is declared with `learned`, `fact`
or `attribute` is no parameter: the constructor does not take it.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import Field, dataclass, field, fields
from textwrap import dedent
from typing import Any, ClassVar, Literal, dataclass_transform

import numpy as np

from rankbits import _check
from rankbits.errors import InputError
from rankbits.methods.parameters.docstrings import complete_docstring

AUTO = "auto"
Check = Callable[[str, Any], Any]  # takes name and value, returns the clean value or raises


@dataclass(frozen=True)
class Attribute:
    """What a class says of an attribute that is no parameter: see `learned` and `fact`."""

    shape: tuple[str, ...] = ()
    dtype: type = np.float64
    kind: type | None = None


def attribute(*, init: Literal[False] = False) -> Any:
    """An attribute that has a type here, and its value from elsewhere."""
    return Attribute()


def learned(*shape: str, dtype: type = np.float64, init: Literal[False] = False) -> Any:
    """An array that `fit` sets and a saved model has; its sizes by letters, as `ArrayHasher` says.

    The attribute ends in an underscore; the array in the file does not.
    """
    return Attribute(shape, dtype)


def fact(kind: type, *, init: Literal[False] = False) -> Any:
    """A value of this type that `fit` sets and a saved model has, as JSON."""
    return Attribute(kind=kind)


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(field, attribute, learned, fact)
)
class Parameters:
    """Base of the classes that declare hyper-parameters; see the module's description."""

    _attributes: ClassVar[dict[str, Attribute]] = {}  # those that the class itself declares

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._attributes = _take_attributes(cls)
        docstring = cls.__doc__
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        cls.__doc__ = docstring  # where there was none, a dataclass has its signature
        own = cls.__annotations__
        for declared in _fields(cls):
            if declared.name in vars(cls):
                delattr(cls, declared.name)  # defaults are the constructor's: help lists them once
        entries = {f.name: f.metadata.get("entry", "") for f in _fields(cls) if f.name in own}
        complete_docstring(cls, entries)


def _take_attributes(cls: type) -> dict[str, Attribute]:
    """Remove what is no parameter from the fields to be; each parameter gets a field of its own."""
    declared = vars(cls).get("__annotations__", {})
    values = {name: vars(cls).get(name) for name in declared}
    attributes = {name: value for name, value in values.items() if isinstance(value, Attribute)}
    for name in attributes:
        delattr(cls, name)
        del declared[name]
    for name, value in values.items():
        if isinstance(value, Field):
            setattr(cls, name, copy(value))
    return attributes


def parameter(default: Any, check: Check, entry: str = "", *, reported: bool = True) -> Any:
    """A hyper-parameter with a fixed default.

    `entry` documents it in every class that takes it by name. With `reported=False` it says how a
    fit runs, or is an object: reports and fingerprints of runs leave it out.
    """
    known = {"check": check, "reported": reported, "entry": dedent(entry).strip()}
    return field(default=default, metadata=known)


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


@contextmanager
def cleaned(parameters: Parameters) -> Iterator[None]:
    """All parameters checked, and read as their checks return them until the context ends.

    A NumPy integer is an int, a list of sizes a tuple; afterwards all are as the user gave them.
    """
    clean = check_parameters(parameters)
    given = {name: getattr(parameters, name) for name in clean}
    vars(parameters).update(clean)
    try:
        yield
    finally:
        vars(parameters).update(given)


def _fields(declared: type[Parameters] | Parameters) -> tuple[Any, ...]:
    return fields(declared)  # type: ignore[arg-type]  # subclasses are dataclasses


def integer(low: int, high: int | None = None) -> Check:
    """An integer from `low` to `high`."""
    return lambda name, value: _check.whole(name, value, low, high)


def number(low: float = 0.0, high: float = math.inf, *, closed: bool = True) -> Check:
    """A finite number from `low` on, or above it if not closed, and below `high`."""
    return lambda name, value: _check.number(name, value, low, high, closed=closed)


def positive(*, or_none: bool = False) -> Check:
    """A positive number, or None if that is allowed."""
    expected = "a positive number or None" if or_none else "a positive number"

    def check(name: str, value: Any) -> float | None:
        if or_none and value is None:
            return None
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not 0 < value < np.inf:
            raise InputError(f"{name} must be {expected}, got {value!r}")
        return float(value)

    return check


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


def sizes(name: str, value: Any) -> tuple[int, ...]:
    """A sequence of positive integers, which may be empty."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InputError(
            f"{name} must be a sequence of layer sizes such as (256,), got {_check.describe(value)}"
        )
    return tuple(_check.whole(name, size, 1) for size in value)
