"""The public names, and what their docstrings say, read with `inspect` and nothing else."""

import inspect
import re
from importlib import import_module

from docs_generator.reference import public_modules, public_names

HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
SECTIONS = ("Parameters", "Attributes", "Other Parameters")


def public_objects():
    """Every public class, function and constant by its full name."""
    return {
        f"{module}.{name}": getattr(import_module(module), name)
        for module in public_modules()
        for name in public_names(module)
    }


def public_methods(cls):
    """Methods and properties of a class that rankbits itself defines, by name."""
    members = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("rankbits"):
            members |= {name: member for name, member in vars(base).items() if name[0] != "_"}
    return {name: member for name, member in members.items() if _is_method(member)}


def _is_method(member):
    plain = inspect.isfunction(member) or isinstance(member, property)
    return plain or isinstance(member, classmethod | staticmethod)


def parameters(member):
    """Names of the parameters of a function, a class method or a constructor."""
    function = getattr(member, "__func__", member)
    if inspect.isclass(function) and (is_protocol(function) or issubclass(function, Exception)):
        return []
    names = inspect.signature(function).parameters
    return [name for name in names if name not in ("self", "cls")]


def is_protocol(cls):
    """Whether nobody makes an object of this class."""
    return getattr(cls, "_is_protocol", False) or inspect.isabstract(cls)


def documented_parameters(docstring):
    """Names that the numpydoc sections of parameters and attributes explain.

    >>> sorted(documented_parameters("Add.\\n\\nParameters\\n----------\\na, b : int\\n    Terms."))
    ['a', 'b']
    """
    headings = [*HEADING.finditer(docstring)]
    ends = [match.start() for match in headings[1:]] + [len(docstring)]
    names = set()
    for match, end in zip(headings, ends, strict=True) if headings else ():
        if match[1] in SECTIONS:
            lines = re.findall(r"^(\S[^:\n]*?) ?:", docstring[match.end() : end], re.MULTILINE)
            names |= {name.strip("* ") for line in lines for name in line.split(",")}
    return names


def undocumented_parameters(path, member):
    """`path(parameter)` for every parameter that the docstring does not explain."""
    documented = documented_parameters(inspect.getdoc(member) or "")
    return [f"{path}({name})" for name in parameters(member) if name not in documented]
