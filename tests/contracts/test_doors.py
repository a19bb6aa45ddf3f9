"""A room uses another one through its public modules and names."""

import ast
from pathlib import Path

import pytest

import rankbits

PACKAGE = Path(rankbits.__file__).parent
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def imported_names(path):
    """Dotted names of all that a module imports of the package, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankbits"):
            yield from (f"{node.module}.{alias.name}".split(".") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)


@pytest.mark.parametrize("room", [room for room in ROOMS if not room.startswith("_")])
def test_no_other_room_imports_what_is_private_to_it(room):
    outside = [path for path in PACKAGE.rglob("*.py") if room not in path.parts]
    assert len(outside) > 50
    private = [
        (path.name, ".".join(parts))
        for path in outside
        for parts in imported_names(path)
        if parts[:2] == ["rankbits", room] and any(part.startswith("_") for part in parts[2:])
    ]
    assert private == []
