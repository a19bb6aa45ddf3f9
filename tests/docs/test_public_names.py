"""Every public name has a docstring that explains its parameters, and a place in the reference."""

import inspect
import pkgutil
import re

import pytest

import rankbits
from docs_generator.reference import public_modules
from oracles.public_names import public_methods, public_objects, undocumented_parameters

pytest.importorskip("torch")  # without it, rankbits.objectives cannot be imported

OBJECTS = public_objects()
CLASSES = {path: cls for path, cls in OBJECTS.items() if inspect.isclass(cls)}
CALLABLES = {path: thing for path, thing in OBJECTS.items() if callable(thing)}
NOT_FOR_IMPORT = {"cli"}


def test_every_public_package_has_a_page():
    packages = {
        f"rankbits.{found.name}"
        for found in pkgutil.iter_modules(rankbits.__path__)
        if not found.name.startswith("_") and found.name not in NOT_FOR_IMPORT
    }
    assert packages - set(public_modules()) == set(), "add them to ROOMS in docs_generator"


def test_every_class_and_function_has_a_docstring():
    missing = [path for path, thing in CALLABLES.items() if not has_docstring(thing)]
    assert missing == []


def test_every_public_method_has_a_docstring():
    missing = [
        f"{path}.{name}"
        for path, cls in CLASSES.items()
        for name in public_methods(cls)
        if not inspect.getdoc(getattr(cls, name))
    ]
    assert missing == []


def has_docstring(thing):
    """A dataclass or a named tuple without one gets its signature as docstring."""
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return bool(text) and not re.match(rf"{thing.__name__}\(", text)


def test_parameters_of_functions_and_constructors_are_explained():
    documented = dict(CALLABLES)
    for path, cls in CLASSES.items():
        for name, member in public_methods(cls).items():
            if isinstance(member, classmethod):
                documented[f"{path}.{name}"] = member
    missing = [
        parameter
        for path, thing in documented.items()
        for parameter in undocumented_parameters(path, thing)
    ]
    assert missing == [], "add them to the section Parameters of the docstring"


def test_a_missing_parameter_is_noticed():
    def add(a, b, c):
        """Add.

        Parameters
        ----------
        a, b : int
            Terms, as in: a + b.

        Returns
        -------
        c : int
        """

    assert undocumented_parameters("add", add) == ["add(c)"]
