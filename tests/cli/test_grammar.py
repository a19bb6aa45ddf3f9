"""The grammar of the command line: short helps, few parameters, one meaning for each option."""

import inspect
from collections import defaultdict
from dataclasses import fields, is_dataclass
from typing import get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from rankbits.cli import _options, app
from rankbits.cli._commands import declaration_of
from rankbits.cli._renamed import RENAMED

LINES, COLUMNS, OWN = 50, 100, 10
DECLARED = {
    id(value) for value in vars(_options).values() if isinstance(value, typer.models.OptionInfo)
}


def walk(group, path=()):
    """Every command by its path, such as ("index", "build"), with its undecorated function."""
    for command in group.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")
        yield (*path, name), inspect.unwrap(command.callback)
    for inner in group.registered_groups:
        yield from walk(inner.typer_instance, (*path, inner.name))


COMMANDS = dict(walk(app))


def declarations(function):
    """The declaration of each parameter, and whether it belongs to a group."""
    hints = get_type_hints(function, include_extras=True)
    for name in inspect.signature(function).parameters:
        if is_dataclass(hints[name]):
            inner = get_type_hints(hints[name], include_extras=True)
            yield from ((declaration_of(inner[f.name]), True) for f in fields(hints[name]))
        else:
            yield declaration_of(hints[name]), False


def option_names(declaration):
    """Names as they were declared; typer takes the first one for a default until it is used."""
    words = [declaration.default, *(declaration.param_decls or ())]
    return [name for text in words if isinstance(text, str) for name in text.split("/")]


def call(*words):
    return CliRunner().invoke(app, list(words), env={"COLUMNS": str(COLUMNS)})


def test_the_commands_are_those_that_the_page_lists():
    top = {path[0] for path in COMMANDS}
    assert top == {
        "audit", "bench", "bench-codes", "bench-split", "cluster", "compare", "compress",
        "compress-check", "demo", "encode", "evaluate", "export", "fit", "index", "papers",
        "report", "search", "serve",
    }  # fmt: skip


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_fits_a_screen(path):
    done = call(*path, "--help")
    assert done.exit_code == 0
    assert "--quiet" in done.stdout
    assert len(done.stdout.rstrip().splitlines()) <= LINES


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_has_few_parameters_beside_those_that_it_shares(path):
    own = [
        declaration
        for declaration, is_grouped in declarations(COMMANDS[path])
        if not is_grouped and id(declaration) not in DECLARED
    ]
    assert len(own) <= OWN, list(map(option_names, own))


def test_an_option_has_one_declaration_in_all_commands():
    by_name = defaultdict(set)
    for function in COMMANDS.values():
        for declaration, _ in declarations(function):
            for name in option_names(declaration):
                by_name[name].add(id(declaration))
    assert len(by_name) > 60
    assert {name for name, found in by_name.items() if len(found) > 1} == set()


@pytest.mark.parametrize(
    ("name", "kind"), [("by", _options.QueryKind), ("similarity", _options.Similarity)]
)
def test_choices_are_the_same_wherever_they_are_given(name, kind):
    kinds = [get_type_hints(function).get(name) for function in COMMANDS.values()]
    kinds = [hint for hint in kinds if hint is not None]
    assert len(kinds) >= 3
    assert all(hint in (kind, kind | None) for hint in kinds)


def test_a_group_is_taken_by_more_than_one_command():
    users = defaultdict(int)
    for function in COMMANDS.values():
        for hint in get_type_hints(function).values():
            users[hint] += is_dataclass(hint)
    groups = {value for value in vars(_options).values() if is_dataclass(value)}
    assert groups == {hint for hint, count in users.items() if count}
    assert all(
        users[group] + sum(users[one] for one in group.__subclasses__()) > 1 for group in groups
    )


OLD = [(path, option) for path, options in RENAMED.items() for option in options]


@pytest.mark.parametrize(("path", "option"), OLD, ids=map(" ".join, OLD))
@pytest.mark.parametrize("written", ["{} value", "{}=value"])
def test_an_old_option_is_bad_usage_that_names_the_new_one(path, option, written):
    done = call(*path.split(), *written.format(option).split())
    assert (done.exit_code, done.stdout) == (2, "")
    message = " ".join(done.stderr.replace("│", " ").split())
    assert f"{option} is now {RENAMED[path][option]}" in message


@pytest.mark.parametrize(("path", "option"), OLD, ids=map(" ".join, OLD))
def test_what_an_old_option_became_exists(path, option):
    words = RENAMED[path][option].replace("`", " ").split()
    target = tuple(path.split())
    if "rankbits" in words:
        target = (words[words.index("rankbits") + 1],)
    known = [name for one, _ in declarations(COMMANDS[target]) for name in option_names(one)]
    assert option not in known or target != tuple(path.split())
    assert {word.rstrip(",") for word in words if word.startswith("-")} <= set(known)
