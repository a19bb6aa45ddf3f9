"""Listwise hashing by a structural SVM (LWH): its two figures."""

from collections.abc import Sequence

from rankbits.papers import _words
from rankbits.papers._exhibit import Exhibit, Part, View
from rankbits.papers._names import title_of
from rankbits.papers._sections import build_section, score_table
from rankbits.papers._shows import bits_panel, both, spread_caption, words_of
from rankbits.report import CurvePanel, Section, curves_plot

SOURCE = "Yu, Wu, Zhang, Tang, Shao and Zhuang, Hashing with list-wise learning to rank, SIGIR 2014"
_METHODS = ("lwh", "rsh", "ssh", "mlh", "agh", "klsh", "sh", "lsh")
_WITH_LABELS, _WITHOUT = ("lwh", "rsh", "ssh"), ("agh", "klsh", "sh", "lsh")
_BITS = (8, 16, 24, 32, 48)
_CURVE_BITS = 32


def _show(view: View) -> Section:
    """MAP and PH2 against bits, precision and recall at 32 bits."""
    part = view.parts[0]
    cells = part.cells(view.results)
    panels = [bits_panel(part, cells, metric) for metric in part.metrics]
    panels += _rank_panels(part, cells)
    figure = both(
        curves_plot, [panel for panel in panels if panel.lines], view.name, spread_caption(view)
    )
    tables = [
        score_table(part, cells, metric, title=f"{words_of(metric)}, {part.title}")
        for metric in part.metrics
    ]
    return build_section(view, _claims(cells), [figure], tables)


def _rank_panels(part: Part, cells: _words.Cells) -> list[CurvePanel]:
    """Precision against recall, and recall against the number retrieved, at one length."""
    lengths = sorted({bits for row in cells.values() for bits in row})
    bits = _CURVE_BITS if _CURVE_BITS in lengths else lengths[-1]
    precision_recall, recall = {}, {}
    for method, row in cells.items():
        if bits not in row:
            continue
        ranks = sorted(
            int(name[2:])
            for name in row[bits].runs[0].result["metrics"]
            if name.startswith("R@") and name[2:].isdigit()
        )
        scores = [(k, row[bits].score(f"R@{k}"), row[bits].score(f"P@{k}")) for k in ranks]
        points = [(k, r, p) for k, r, p in scores if r is not None and p is not None]
        if points:
            label = title_of(part.label(method))
            precision_recall[label] = [(r.mean, p.mean, 0.0) for _, r, p in points]
            recall[label] = [(float(k), r.mean, r.sd or 0.0) for k, r, _ in points]
    return [
        CurvePanel(f"precision and recall, {bits} bits", "recall", "precision", precision_recall),
        CurvePanel(f"recall, {bits} bits", "items retrieved", "recall", recall),
    ]


def _claims(cells: _words.Cells) -> Sequence[str]:
    sentences = []
    for metric in ("AP", "P@r2"):
        values = _words.means(cells, metric)
        lengths = sorted({bits for row in values.values() for bits in row})
        best = [
            max((row[bits], name) for name, row in values.items() if bits in row)[1] == "lwh"
            for bits in lengths
        ]
        claim = f"LWH has the highest {words_of(metric)}"
        sentences += [_words.claim(claim, best), _words.leader(values, words_of(metric))]
    values = _words.means(cells, "AP")
    pairs = [
        values[one][bits] > values[other][bits]
        for one in _WITH_LABELS
        for other in _WITHOUT
        if one in values and other in values
        for bits in values[one].keys() & values[other].keys()
    ]
    text = "methods with labels (LWH, RSH, SSH) are above those without (AGH, KLSH, SH, LSH)"
    return [*sentences, _words.claim(text, pairs)]


EXHIBITS = (
    Exhibit(
        "lwh-fig1",
        SOURCE,
        "Figure 1",
        "MAP and precision within radius 2 against bits, precision and recall, CIFAR-10",
        _show,
        (Part("lwh-cifar10", _METHODS, _BITS, ("AP", "P@r2"), "CIFAR-10"),),
        "CIFAR-10 by features of an EfficientNet-Lite0 where the paper has GIST; methods without "
        "labels learn from the same 1,000 rows, the paper gives them 3,000",
    ),
    Exhibit(
        "lwh-fig2",
        SOURCE,
        "Figure 2",
        "MAP and precision within radius 2 against bits, precision and recall, shared tags",
        _show,
        (Part("lwh-corel5k", _METHODS, _BITS, ("AP", "P@r2"), "Corel5k in place of NUS-WIDE"),),
        "Corel5k for NUS-WIDE, and features of an EfficientNet-Lite0 for bags of visual words",
    ),
)
