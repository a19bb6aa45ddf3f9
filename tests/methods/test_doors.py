"""Other rooms use methods through its public modules."""

import re
from pathlib import Path

import rankbits

PACKAGE = Path(rankbits.__file__).parent


def test_no_other_room_imports_a_private_module_of_methods():
    private = re.compile(r"rankbits\.methods(\.\w+)*\._|from rankbits\.methods(\.\w+)* import _")
    outside = [path for path in PACKAGE.rglob("*.py") if "methods" not in path.parts]
    assert len(outside) > 50
    assert [path for path in outside if private.search(path.read_text())] == []
