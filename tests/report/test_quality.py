import pytest
from matplotlib.figure import Figure

from rankbits.errors import InputError
from rankbits.report import _quality, quality_plot

PANELS = {
    "NPL, nDCG@10": {"itq": [(8, 0.27, 0.01), (16, 0.35, 0.0)], "PQ": [(8, 0.26, 0.0)]},
    "CLINC150, AP": {"PQ": [(8, 0.74, 0.0), (32, 0.65, 0.0)]},
}
TIMES = {"a": {"x": [(170.0 * n, 0.5 + n / 100, 0.0) for n in range(1, 8)]}}


@pytest.mark.parametrize("narrow", [False, True])
def test_a_plot_is_the_same_small_svg_each_time_and_its_ids_carry_its_name(check_svg, narrow):
    style = {"dashed": ["PQ"], "references": {"CLINC150, AP": 0.66}}
    check_svg(lambda **options: quality_plot(PANELS, "bytes", **style, **options), narrow)


@pytest.fixture
def drawn(monkeypatch):
    """The figure of a plot, to measure what was drawn instead of reading paths."""

    def draw(*data, **options):
        painted, figure = [], Figure(layout="constrained")
        monkeypatch.setattr(
            _quality, "draw", lambda name, size, paint, words: painted.append(paint)
        )
        quality_plot(*data, **options)
        painted[0](figure)
        return figure

    return draw


def test_a_panel_has_the_points_of_its_lines_and_a_method_one_style_everywhere(drawn):
    figure = drawn(PANELS, "bytes", dashed=["PQ"], references={"CLINC150, AP": 0.66})
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(PANELS)
    styles = {}
    for axes, lines in zip(figure.axes, PANELS.values(), strict=True):
        points = {line.get_label(): line for line in axes.lines if line.get_label() in lines}
        assert {label: line.get_xydata().tolist() for label, line in points.items()} == {
            label: [[cost, mean] for cost, mean, _ in line] for label, line in lines.items()
        }
        for label, line in points.items():
            style = line.get_color(), line.get_marker(), line.get_linestyle()
            assert styles.setdefault(label, style) == style
    assert (styles["itq"][2], styles["PQ"][2]) == ("-", "--")
    assert styles["itq"][:2] != styles["PQ"][:2]
    levels = [line for line in figure.axes[1].lines if line.get_label() == "float vectors"]
    assert [set(line.get_ydata()) for line in levels] == [{0.66}]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["itq", "PQ", "float vectors"]


def test_a_spread_is_drawn_where_there_is_one(drawn):
    first, second = drawn(PANELS, "bytes").axes
    (bars,) = first.collections
    assert [path.vertices[:, 1].tolist() for path in bars.get_paths()] == [
        pytest.approx([0.26, 0.28]),
        pytest.approx([0.35, 0.35]),
    ]
    assert len(second.collections) == 0


def test_few_costs_are_written_as_they_are_and_many_as_round_numbers(drawn):
    figure = drawn(PANELS, "bytes")
    assert figure.axes[0].get_xticks().tolist() == [8, 16, 32]
    (axes,) = drawn(TIMES, "µs").axes
    assert axes.get_xticks().tolist() == [200, 500, 1000]
    wide = {"a": {"x": [(10.0**n, 0.5, 0.0) for n in range(1, 6)]}}
    (axes,) = drawn(wide, "µs").axes
    assert axes.get_xticks().tolist() == [10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000]


def test_the_description_says_every_number():
    text = quality_plot(PANELS, "bytes an item")
    assert "Quality against bytes an item. NPL, nDCG@10, itq: 0.270 at 8, 0.350 at 16;" in text
    assert "CLINC150, AP, PQ: 0.740 at 8, 0.650 at 32." in text
    assert ">1,000<" in quality_plot(TIMES, "µs")
    large = quality_plot({"a": {"x": [(0.25, 0.5, 0.0), (12_345.6, 0.6, 0.0)]}}, "µs")
    assert "x: 0.500 at 0.25, 0.600 at 12,346." in large
    assert ">12,346<" in large


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ({}, "panels must have at least one panel"),
        ({"a": {}}, "each with lines of at least one point"),
        ({"a": {"x": []}}, "each with lines of at least one point"),
        ({"a": {str(n): [(1, 0.5, 0)] for n in range(11)}}, "at most 10 names in all"),
        ({"a": {"x": [(0, 0.5, 0)]}}, r"costs above 0, got \(0, 0.5, 0\) for 'x' of 'a'"),
        ({"a": {"x": [(1, float("nan"), 0)]}}, "panels must have finite numbers"),
    ],
)
def test_panels_that_cannot_be_drawn_are_refused(panels, message):
    with pytest.raises(InputError, match=message):
        quality_plot(panels, "bytes")
