import re
from xml.etree import ElementTree

import matplotlib
import pytest

from rankbits.evaluation import TieSizes
from rankbits.report import (
    CurvePanel,
    curves_plot,
    deviation_plot,
    distance_plot,
    range_plot,
    tie_plot,
    training_plot,
)
from rankbits.report._svg import COLOURS, draw, plain
from rankbits.report._words import LABELS

HISTORY = [
    {"epoch": epoch, "loss": loss, "score": score}
    for epoch, loss, score in [(1, 0.75, 0.5), (2, 0.5, 0.875), (3, 0.25, 0.875), (4, 0.125, 0.75)]
]
PLOTS = {
    "range": lambda audit, **options: range_plot([audit], **options),
    "deviation": lambda audit, **options: deviation_plot([audit.ap, audit.ndcg], **options),
    "ties": lambda audit, **options: tie_plot(audit.ties, **options),
    "distances": lambda audit, **options: distance_plot([audit, audit], **options),
    "training": lambda audit, **options: training_plot(HISTORY, **options),
}
every_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)


def texts(svg):
    """All text that the figure shows."""
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")]


@every_plot
@pytest.mark.parametrize("narrow", [False, True])
def test_a_plot_is_the_same_svg_each_time(small, plot, narrow):
    first = plot(small, narrow=narrow)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.hashsalt": "other"}):
        assert plot(small, narrow=narrow) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert len(first) < 40_000
    assert first.startswith('<svg role="img" aria-label="')
    assert not re.search(r"<metadata|<\?xml|<!DOCTYPE|\d{4}-\d\d-\d\d", first)


@every_plot
def test_ids_carry_the_name_and_every_reference_is_answered(small, plot):
    svg = plot(small, name="mine")
    ids = re.findall(r'\bid="([^"]*)"', svg)
    assert ids
    assert all(found.startswith("mine-") for found in ids)
    assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)) <= {
        pair for found in ids for pair in ((found, ""), ("", found))
    }


@every_plot
def test_colours_can_be_restyled_and_have_a_fallback(small, plot):
    svg = plot(small)
    bare = re.sub(r"var\(--[a-z]+, #[0-9a-f]{6}\)", "", svg)
    assert set(re.findall(r"#[0-9a-f]{6}\b", bare)) == set()
    assert f"var(--muted, {COLOURS['muted']})" in svg
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_range_bars_run_from_worst_to_best_with_the_dot_at_the_exact_score(painted, scored):
    audits = [scored("a", 0.2, 0.3, 0.5, index=0.35), scored("b", 0.4, 0.45, 0.6, sklearn=0.39)]
    (axes,) = painted(range_plot, audits)
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert bars == [pytest.approx((0.2, 0.5)), pytest.approx((0.4, 0.6))]
    dots = [line.get_xdata() for line in axes.lines if line.get_label() == "exact (AP_T)"]
    assert dots == [[0.3], [0.45]]
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_label() == LABELS["index"]]
    assert marks == [0.35, 0.45]
    low, high = axes.get_xlim()
    assert low < 0.2
    assert high > 0.6


@pytest.mark.parametrize("narrow", [False, True])
def test_the_range_plot_says_its_numbers(scored, narrow):
    audits = [scored("first", 0.2014, 0.3026, 0.5038), scored("second", 0.4, 0.45, 0.6)]
    svg = range_plot(audits, narrow=narrow)
    shown = texts(svg)
    for text in ("first", "second", "0.201", "0.303", "0.504", "0.400", "0.450", "0.600"):
        assert text in shown
    assert set(LABELS.values()) - {"worst case", "best case"} <= set(shown)
    assert "first: from 0.2014 to 0.5038, exact 0.3026" in svg


def test_deviations_are_drawn_in_points(painted, small):
    panels = painted(deviation_plot, [small.ap, small.ndcg])
    labels = {label.get_text(): place for place, label in enumerate(panels[0].get_yticklabels())}
    for axes, metric in zip(panels, (small.ap, small.ndcg), strict=True):
        ends = {
            line.get_ydata()[0]: line.get_xdata()[-1]
            for line in axes.lines[1:]
            if len(line.get_xdata()) == 1
        }
        assert ends == {labels[LABELS[row.key]]: row.points for row in metric.rows}


def test_bars_of_ties_have_the_mean_sizes_as_heights(painted):
    ties = TieSizes(
        items=(0.0, 2.0, 5.5, 1.0, 0.0), relevant=(0.0, 1.0, 0.5, 0.0, 0.0), tied_with=3.0
    )
    (axes,) = painted(tie_plot, ties)
    for patch, sizes in zip(axes.patches, ([2.0, 5.5, 1.0], [1.0, 0.5, 0.0]), strict=True):
        corners = patch.get_path().vertices.reshape(-1, 5, 2)
        assert corners[:, 1, 1].tolist() == sizes
        assert corners[:, :3:2, 0].mean(axis=1).tolist() == pytest.approx([1, 2, 3])


def test_names_are_text_and_nothing_else(scored):
    name = 'x</text><script>1</script> & "q" $\\frac{1}{0}$ \x00\x1b 数'
    svg = range_plot([scored(name, 0.2, 0.3, 0.4)])
    assert "<script" not in svg
    assert plain(name, 30) in texts(svg)
    assert plain(name, 30) in ElementTree.fromstring(svg).attrib["aria-label"]


def test_dollars_are_no_mathematics(scored):
    assert "$\\frac{1}{2}$" in texts(range_plot([scored("$\\frac{1}{2}$", 0.2, 0.3, 0.4)]))


def test_codes_whose_ranking_has_no_range_can_be_drawn(scored):
    flat = scored("flat", 0.5, 0.5, 0.5)
    assert "0.500" in texts(range_plot([flat]))
    assert "0.00" in texts(deviation_plot([flat.ap]))
    assert texts(tie_plot(TieSizes(items=(1.0, 0.0), relevant=(1.0, 0.0), tied_with=1.0)))


def test_a_long_name_is_cut_with_an_ellipsis(scored):
    assert "a" * 29 + "…" in texts(range_plot([scored("a" * 99, 0.2, 0.3, 0.4)]))


def test_a_missing_glyph_is_no_warning():
    svg = draw("x", (1, 1), lambda figure: figure.text(0, 0, "\U0001fae8"), "an emoji")
    assert "\U0001fae8" in svg


@pytest.mark.parametrize(
    ("low", "high", "numbers"),
    [(16, 67, ["20", "50"]), (2.6, 20, ["5", "10", "20"]), (2, 20000, ["10", "100", "1000"])],
)
def test_a_logarithmic_axis_has_numbers_also_within_one_power_of_ten(low, high, numbers):
    lines = {"a": [(0.25, low, 0.0), (0.75, high, 0.0)]}
    panel = CurvePanel("panel", "x", "y", lines, is_log=True, ticks=(0.25, 0.75))
    shown = texts(curves_plot([panel]))
    assert [text for text in shown if text in numbers] == numbers
    assert len(shown) <= 12
