"""Figures of exact constructions: a tied list, orthodromes of a code space, and LGAP by hand.

They follow Figure 1 of He et al., "Hashing as Tie-Aware Learning to Rank", and Figures 5 and 6 of
Ding, Li and Li, "Mean local group average precision (mLGAP)".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankbits._check import extra
from rankbits.report._svg import COLOURS, NARROW, WIDE, draw, plain

_CLASSES = (  # colour and marker
    ("relevant", "o"),
    ("irrelevant", "s"),
    ("trec", "^"),
    ("sklearn", "D"),
    ("argsort", "v"),
    ("ink", "*"),
    ("shuffled", "h"),
    ("worst", "X"),
)


def tied_list_plot(
    orders: Mapping[str, tuple[Sequence[bool | None], float]],
    *,
    narrow: bool = False,
    name: str = "list",
) -> str:
    """Orders of one tied list, a row each: relevant items filled, and what AP each would print.

    Parameters
    ----------
    orders : which items are relevant in the order of the list, None where it is left open, and AP,
        by a title
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    words = "; ".join(f"{plain(title)}: AP {value:.4f}" for title, (_, value) in orders.items())

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for row, (title, (relevant, value)) in enumerate(orders.items()):
            for place, is_relevant in enumerate(relevant):
                style = {"color": COLOURS["relevant"], "markersize": 13 if not narrow else 10}
                fill = COLOURS["range" if is_relevant is None else "relevant"]
                face = "none" if is_relevant is False else fill
                axes.plot(place, row, "o", markerfacecolor=face, **style)
            axes.text(-0.9, row, plain(title, 40), ha="right", va="center")
            end = len(relevant) - 0.2
            axes.text(end, row, f"AP {value:.4f}", ha="left", va="center", fontweight="bold")
        longest = max(len(relevant) for relevant, _ in orders.values())
        axes.set_xlim(-4.2, longest + 1.6)
        axes.set_ylim(len(orders) - 0.5, -0.5)
        axes.axis("off")

    size = (NARROW if narrow else WIDE, 0.5 * len(orders) + 0.2)
    return draw(name, size, paint, f"Orders of a tied list. {words}.")


def orthodrome_plot(
    circles: Mapping[str, Sequence[int]], *, narrow: bool = False, name: str = "orthodrome"
) -> str:
    """Circles of codes, each a neighbor of the next: which class a code has, -1 for unused ones.

    Parameters
    ----------
    circles : the class of each code in the order of the circle, by a title
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    words = "; ".join(
        f"{plain(title)}: {sum(c >= 0 for c in classes)} of {len(classes)} codes used"
        for title, classes in circles.items()
    )

    def paint(figure: Any) -> None:
        shape = (len(circles), 1) if narrow else (1, len(circles))
        for axes, (title, classes) in zip(
            figure.subplots(*shape, squeeze=False).flat, circles.items(), strict=True
        ):
            _paint_circle(axes, classes)
            axes.set_title(plain(title, 60), fontsize=9)

    height = 2.6 * len(circles) if narrow else 3.2
    return draw(name, (NARROW if narrow else WIDE, height), paint, f"Codes of a circle. {words}.")


def _paint_circle(axes: Any, classes: Sequence[int]) -> None:
    angles = [math.pi / 2 - 2 * math.pi * place / len(classes) for place in range(len(classes))]
    ring = extra("matplotlib.patches", "a plot", "report").Circle(
        (0, 0), 1, fill=False, color=COLOURS["grid"], linewidth=1.2
    )
    axes.add_patch(ring)
    for angle, class_number in zip(angles, classes, strict=True):
        token, mark = ("muted", "o") if class_number < 0 else _CLASSES[class_number % len(_CLASSES)]
        face = COLOURS[token] if class_number >= 0 else "none"
        size = 8 if class_number >= 0 else 5
        style = {"color": COLOURS[token], "markerfacecolor": face, "markersize": size}
        axes.plot(math.cos(angle), math.sin(angle), mark, **style)
    used = sum(class_number >= 0 for class_number in classes)
    axes.text(0, 0, f"{used} of {len(classes)}\ncodes used", ha="center", va="center")
    axes.set_xlim(-1.2, 1.2)
    axes.set_ylim(-1.2, 1.2)
    axes.set_aspect("equal")
    axes.axis("off")


def lgap_plot(
    balls: Sequence[Mapping[str, Any]], *, narrow: bool = False, name: str = "lgap"
) -> str:
    """How LGAP is computed: for each ball its codes with the items on them, and its two factors.

    Parameters
    ----------
    balls : one for each radius: `items` and `relevant` on each code of the ball, nearest codes
        first, `precision` and `evenness`
    narrow : whether the figure is for a narrow screen
    name : what the parts of the figure are called within a page
    """
    words = "; ".join(
        f"radius {radius}: precision {ball['precision']:.4f}, evenness {ball['evenness']:.4f}"
        for radius, ball in enumerate(balls)
    )

    def paint(figure: Any) -> None:
        shape = (len(balls), 1) if narrow else (1, len(balls))
        all_axes = figure.subplots(*shape, squeeze=False, sharey=True).flat
        for radius, (axes, ball) in enumerate(zip(all_axes, balls, strict=True)):
            _paint_ball(axes, radius, ball)
        all_axes[0].set_ylabel("items on the code")
        all_axes[-1].legend(frameon=False, fontsize=8, loc="upper right")

    height = 1.9 * len(balls) if narrow else 2.7
    return draw(name, (NARROW if narrow else WIDE, height), paint, f"LGAP by radius. {words}.")


def _paint_ball(axes: Any, radius: int, ball: Mapping[str, Any]) -> None:
    places = range(len(ball["items"]))
    largest = max(ball["items"])
    style = {"width": 0.8, "linewidth": 0}
    axes.bar(places, ball["items"], color=COLOURS["range"], label="irrelevant", **style)
    axes.bar(places, ball["relevant"], color=COLOURS["relevant"], label="relevant", **style)
    axes.axhline(largest, color=COLOURS["ink"], linewidth=0.8, linestyle=":")
    axes.set_xticks([])
    axes.set_ylim(0, largest + 0.7)
    axes.set_yticks(range(largest + 1))
    title = f"radius {radius}: P {ball['precision']:.3f} × φ {ball['evenness']:.3f}"
    axes.set_title(title, fontsize=9, loc="left")
    n_codes = len(ball["items"])
    axes.set_xlabel(f"{n_codes} code{'s' if n_codes > 1 else ''} of the ball")
