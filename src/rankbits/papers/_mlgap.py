"""Mean local group average precision (mLGAP): its table and figures."""

from collections.abc import Sequence

from rankbits.papers import _words
from rankbits.papers._exact import lgap_by_hand, orthodromes
from rankbits.papers._exact_shows import show_lgap, show_orthodromes
from rankbits.papers._exhibit import Exhibit, Part, View
from rankbits.papers._names import title_of
from rankbits.papers._sections import build_section, score_table
from rankbits.papers._shows import show_use, words_of
from rankbits.report import ScoreRow, ScoreTable, Section

SOURCE = (
    "Ding, Li and Li, Mean local group average precision (mLGAP): a new performance metric for "
    "hashing-based retrieval, 2018"
)
_OLD, _NEW = "dsh", "dsh-dispersed"
_METRICS = ("LGAP@r2", "AP")
_CIFAR10 = Part("mlgap-cifar10", (_OLD, _NEW), (12, 24), _METRICS, "CIFAR-10")
_CIFAR100 = Part("mlgap-cifar100", (_OLD, _NEW), (12, 24), _METRICS, "CIFAR-100, superclasses")
_FEATURES = (
    "features of an EfficientNet-Lite0 and a small network where the paper trains three "
    "convolutions on the images"
)


def _show_table(view: View) -> Section:
    """MLGAP and AP of both objectives, and how many codes they use."""
    tables = []
    for part in view.parts:
        cells = part.cells(view.results)
        tables += [
            score_table(part, cells, metric, title=f"{words_of(metric)}, {part.title}")
            for metric in part.metrics
        ]
        tables.append(_use_table(part, cells))
    return build_section(view, _table_claims(view), tables=tables)


def _use_table(part: Part, cells: _words.Cells) -> ScoreTable:
    lengths = sorted({bits for row in cells.values() for bits in row})
    rows = tuple(
        ScoreRow(
            title_of(method),
            tuple(
                row[n].code_use(name) if n in row else None
                for n in lengths
                for name in ("n_distinct", "entropy_bits")
            ),
        )
        for method, row in cells.items()
    )
    columns = tuple(f"{what}, {n} bits" for n in lengths for what in ("codes used", "entropy"))
    title = f"Use of the codes, {part.title}"
    return ScoreTable(title, columns, rows, digits=2, has_best=False)


def _table_claims(view: View) -> Sequence[str]:
    """That dispersion raises mLGAP, at the cost of AP."""
    raised: list[bool] = []
    lowered: list[bool] = []
    for part in view.parts:
        cells = part.cells(view.results)
        for metric, held, sign in (("LGAP@r2", raised, 1), ("AP", lowered, -1)):
            values = _words.means(cells, metric)
            old, new = values.get(_OLD, {}), values.get(_NEW, {})
            held += [sign * (new[n] - old[n]) > 0 for n in sorted(old.keys() & new.keys())]
    return [
        _words.claim("the new objective raises mLGAP", raised),
        _words.claim("it lowers mAP", lowered),
    ]


def _histogram_claims(view: View) -> Sequence[str]:
    """Which method spreads its items most, by entropy."""
    part = view.parts[0]
    bits = part.lengths(view.results)[0]
    entropy = {
        title_of(method): score.mean
        for method, row in part.cells(view.results).items()
        if bits in row and (score := row[bits].code_use("entropy_bits")) is not None
    }
    if not entropy:
        return []
    low, high = (choose(entropy, key=lambda name: entropy[name]) for choose in (min, max))
    return [
        f"Of {bits} bits, {high} spreads the items over the codes most evenly, with an entropy of "
        f"{entropy[high]:.2f} bits, and {low} least, with {entropy[low]:.2f}."
    ]


EXHIBITS = (
    Exhibit(
        "mlgap-fig1",
        SOURCE,
        "Figure 1",
        "histograms of 12-bit codes",
        show_use(_histogram_claims),
        (
            Part(
                "cifar10-s1",
                ("density", "itq", "lsh", "pca-rr", "pcah", "sh", "sklsh", "sph"),
                (12,),
                (),
                "CIFAR-10",
            ),
        ),
        "the database of CIFAR-10, setting 1, by features of an EfficientNet-Lite0; codes stand in "
        "order of use, not of their value, so that methods can be compared by eye",
    ),
    Exhibit(
        "mlgap-fig5",
        SOURCE,
        "Figure 5",
        "orthodromes of a 12-bit space: a perfect mAP leaves a third of the codes unused",
        show_orthodromes,
        exact=orthodromes,
    ),
    Exhibit(
        "mlgap-fig6",
        SOURCE,
        "Figure 6",
        "how LGAP is computed",
        show_lgap,
        exact=lgap_by_hand,
    ),
    Exhibit(
        "mlgap-table1",
        SOURCE,
        "Table 1",
        "mLGAP and mAP of DSH with the old and the new objective",
        _show_table,
        (_CIFAR10, _CIFAR100),
        _FEATURES,
    ),
    Exhibit(
        "mlgap-fig8",
        SOURCE,
        "Figure 8",
        "use of 12-bit codes by DSH with the old and the new objective",
        show_use(_histogram_claims),
        (Part("mlgap-cifar10", (_OLD, _NEW), (12,), (), "CIFAR-10"),),
        _FEATURES,
    ),
)
