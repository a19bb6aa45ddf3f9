"""Figures as SVG text: the same bytes for the same data, colors that a page can restyle.

matplotlib draws with the fixed colors below; each then becomes a CSS variable with that color as
its fallback, so one figure serves light and dark pages and still stands alone.
"""

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from rankbits._check import extra

COLOURS = {
    "ink": "#1b1f24",
    "muted": "#5c6671",
    "grid": "#dde2e8",
    "range": "#c3d4e9",
    "relevant": "#2f6db3",
    "irrelevant": "#c4532b",
    "worst": "#6b7783",
    "class": "#d0520a",
    "index": "#0b72b5",
    "argsort": "#9c4c8b",
    "trec": "#0a7a5c",
    "sklearn": "#b07400",
    "shuffled": "#4c5a8a",
    "best": "#6b7784",
}
WIDE, NARROW = 8.0, 3.9  # inches: figures for screens and paper, and for phones
_STYLE: dict[str, Any] = {
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.7,
    "path.simplify": False,
    "svg.fonttype": "none",
    "text.color": COLOURS["ink"],
    "text.parse_math": False,
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def require_extra() -> None:
    """Fail before the work whose result could not be shown."""
    for module in ("matplotlib", "jinja2"):
        extra(module, "a page", "report")


def draw(
    name: str, size: tuple[float, float], paint: Callable[[Any], None], description: str
) -> str:
    """An <svg> element of `size` inches, painted by a function that gets the figure.

    `name` tells its ids from those of other figures on a page; `description` is for those who
    cannot see it.
    """
    matplotlib = extra("matplotlib", "a plot", "report")
    figures = extra("matplotlib.figure", "a plot", "report")
    backend = extra("matplotlib.backends.backend_svg", "a plot", "report")
    text = io.StringIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()  # a user's own style would change the bytes
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": name})
        figure = figures.Figure(figsize=size, layout="constrained")
        backend.FigureCanvasSVG(figure)
        paint(figure)
        figure.savefig(text, format="svg", transparent=True, metadata=_NO_METADATA)
    return _for_pages(text.getvalue(), name, description)


def _for_pages(svg: str, name: str, description: str) -> str:
    """Drop the XML prologue, make ids unique, turn colors into variables, add the description."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#|url\(#', lambda match: f"{match[0]}{name}-", svg)
    for token, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{token}, {colour})")
    svg = svg.replace("'DejaVu Sans'", "var(--sans, 'DejaVu Sans', sans-serif)")
    label = plain(description).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def plain(text: str, longest: int | None = None) -> str:
    """Text without control characters, which SVG cannot hold; cut to `longest` with an ellipsis.

    >>> plain("a" + chr(0) + "bcdef", longest=4)
    'a b…'
    """
    clean = "".join(letter if letter.isprintable() else " " for letter in text)
    return clean if longest is None or len(clean) <= longest else clean[: longest - 1] + "…"
