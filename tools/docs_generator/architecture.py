"""The picture of the house: one box per package, above the packages that it may import.

The layers are those of the contract in pyproject.toml that import-linter checks; what a package is
for is the first line of its docstring.
"""

import textwrap
import tomllib
from html import escape
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH, GAP, MARGIN = 960, 10, 6  # of the picture, between and around boxes
HEAD, LINE, LETTER = 34, 18, 6.8  # height of a box without text, of a line; width of a letter
STYLE = """\
text { font-family: sans-serif; fill: #1b1f24 }
.name { font-size: 17px; font-weight: bold }
.what { font-size: 14px }
rect { fill: #eef3fa; stroke: #2f6db3; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ee }
  rect { fill: #1d2733; stroke: #6ea3dd }
}"""


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first; private modules are the lowest layer.

    >>> layers()[0], "codes" in layers()[-2]
    (['cli'], True)
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = [[name.removeprefix("rankbits.") for name in row.split(" | ")] for row in contract]
    public = [[name for name in row if not name.startswith("_")] for row in rows]
    private = [name for row in rows for name in row if name.startswith("_")]
    return [row for row in public if row and row != ["errors"]] + [[*private, "errors"]]


def architecture_figure() -> str:
    """The picture as SVG."""
    *rows, lowest = layers()
    contents = [[(name, _purpose(name)) for name in row] for row in rows]
    contents.append([("what all share", ", ".join(lowest))])
    boxes, top = [], MARGIN
    for row in contents:
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        texts = [textwrap.wrap(purpose, int((width - 20) / LETTER)) for _, purpose in row]
        height = HEAD + LINE * max(map(len, texts))
        for i, ((name, _), lines) in enumerate(zip(row, texts, strict=True)):
            boxes.append(_box(name, lines, MARGIN + i * (width + GAP), top, width, height))
        top += height + GAP
    label = "Packages of rankbits from top to bottom: " + "; ".join(", ".join(r) for r in rows)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP + MARGIN}" '
        f'role="img" aria-label="{escape(label)}">'
    )
    return "\n".join([opening, f"<style>\n{STYLE}\n</style>", *boxes, "</svg>", ""])


def _purpose(name: str) -> str:
    """The first line of a package's docstring, without the word that repeats its name."""
    line = (import_module(f"rankbits.{name}").__doc__ or "").split("\n")[0]
    first, separator, rest = line.partition(": ")
    purpose = rest if separator and len(first.split()) < 3 else line
    return (purpose[0].upper() + purpose[1:]).replace("`", "").removesuffix(".")


def _box(name: str, lines: list[str], left: float, top: int, width: float, height: int) -> str:
    texts = [f'<text class="name" x="{left + 10:g}" y="{top + 23}">{escape(name)}</text>']
    texts += [
        f'<text class="what" x="{left + 10:g}" y="{top + 44 + LINE * i}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    box = f'<rect x="{left:g}" y="{top}" width="{width:g}" height="{height}" rx="6"/>'
    return "\n".join([box, *texts])
