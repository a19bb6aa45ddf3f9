"""Figures of the documentation as files: what was measured, by which command, on which machine.

A file of docs/measurements is a table with what it needs to be measured again. Tools and benchmarks
write it with `save`; the pages show it in blocks `<!-- generated: measurement NAME -->`.

    command   what prints the table again            columns, rows  the table, as strings or numbers
    commit    the commit that was measured           recorded       or, for each row, the commit in
    machine   processor and threads, if they matter                 which its figures were written
    note      what else one has to know                             down
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "measurements"
_SETS = ("avx2", "avx512f", "avx512bw", "avx512_vpopcntdq", "asimd", "sve")


def save(
    path: Path, command: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
) -> None:
    """Write a table to a file, with the commit and the machine that it was measured on."""
    content = {
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "note": note,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """The content of a file of docs/measurements."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def names() -> list[str]:
    """The names of all files of docs/measurements, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def commit() -> str:
    """The commit of this repository, with a plus sign if files differ from it."""
    described = ["git", "describe", "--always", "--abbrev=9", "--dirty=+", "--exclude=*"]
    answer = subprocess.run(described, cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def machine() -> str:
    """The processor with its instruction sets, and how many cores this process may use.

    >>> "core" in machine()
    True
    """
    facts: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    sets = [name for name in _SETS if name in flags]
    name = facts.get("model name", "a processor without a name")
    n_cores = len(os.sched_getaffinity(0))
    return f"{name}, {n_cores} core{'s' * (n_cores > 1)}, {' '.join(sets) or 'no vector sets'}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
