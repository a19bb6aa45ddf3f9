"""Every generated page, and every generated block within a page that is written by hand.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`, on lines of its own or within
a line.
"""

import re
from collections.abc import Callable
from pathlib import Path

from docs_generator.architecture import architecture_figure
from docs_generator.cards import cards
from docs_generator.commands import commands_page
from docs_generator.reference import reference_pages
from docs_generator.tables import (
    kinds_table,
    measurement_table,
    methods_table,
    metrics_table,
    other_measurements_table,
    papers_table,
    protocols_table,
)

ROOT = Path(__file__).parents[2]
BLOCKS: dict[str, Callable[[], str]] = {
    "methods": methods_table,
    "metrics": metrics_table,
    "kinds": kinds_table,
    "protocols": protocols_table,
    "papers": papers_table,
    "other measurements": other_measurements_table,
}
BLOCKS_OF_NAMES: dict[str, Callable[[str], str]] = {
    "measurement": measurement_table,
    "cards": cards,
}
_BLOCK = re.compile(r"(<!-- generated: ([^>]*?) -->)(.*?)(<!-- end -->)", re.DOTALL)


def generated_texts() -> dict[Path, str]:
    """The text that each file must have."""
    folder = ROOT / "docs" / "reference"
    texts = {folder / name: text for name, text in reference_pages().items()}
    texts[folder / "commands.md"] = commands_page()
    texts[ROOT / "docs" / "figures" / "architecture.svg"] = architecture_figure()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        texts[page] = fill_blocks(page.read_text())
    return texts


def fill_blocks(text: str) -> str:
    """The text with every block generated anew."""
    return _BLOCK.sub(_filled, text)


def _filled(match: re.Match[str]) -> str:
    opening, name, _, closing = match.groups()
    content = _block(name)
    if "\n" in content:
        content = f"\n\n{content}\n\n"  # Markdown ends a comment and a table at an empty line
    return f"{opening}{content}{closing}"


def _block(name: str) -> str:
    kind, _, rest = name.partition(" ")
    return BLOCKS_OF_NAMES[kind](rest) if kind in BLOCKS_OF_NAMES else BLOCKS[name]()


def differing_pages() -> list[Path]:
    """Files whose text is not the generated one, and pages that nothing generates any more."""
    texts = generated_texts()
    differing = [path for path, text in texts.items() if _read(path) != text]
    return differing + [path for path in _reference_files() if path not in texts]


def write_pages() -> list[Path]:
    """Bring every file up to date; return those that changed."""
    texts = generated_texts()
    changed = differing_pages()
    for path in changed:
        if path in texts:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path])
        else:
            path.unlink()
    return changed


def _reference_files() -> list[Path]:
    return sorted((ROOT / "docs" / "reference").glob("*.md"))


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
