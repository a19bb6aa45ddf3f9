import numpy as np
import pytest
from matplotlib.figure import Figure

from rankbits import BinaryCodes
from rankbits.errors import InputError
from rankbits.report import _dispersion, code_use_plot, trade_plot
from rankbits.report._dispersion import items_by_code

RNG = np.random.default_rng(3)
CODES = BinaryCodes.from_bits(RNG.integers(0, 2, (6000, 12)) & RNG.integers(0, 2, (6000, 12)))
LINES = {"one": [(0.9, 0.2, "0"), (0.8, 0.35, "1")], "other": [(0.9, 0.2, "0"), (0.7, 0.3, "2")]}
PLOTS = {
    "use": lambda **options: code_use_plot({"a": CODES, "b": CODES[:50]}, **options),
    "trade": lambda **options: trade_plot(LINES, ("AP", "mLGAP"), **options),
}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_plot_is_the_same_small_svg_each_time_and_its_ids_carry_its_name(check_svg, plot, narrow):
    check_svg(plot, narrow)


def test_items_are_counted_by_code_from_the_most_used_down():
    found = items_by_code(CODES)
    keys = CODES.bits() @ (1 << np.arange(12))
    assert found.tolist() == sorted(np.unique(keys, return_counts=True)[1].tolist(), reverse=True)
    assert found.sum() == 6000


def axes_of(monkeypatch, plot, *data):
    """The axes of a plot, to measure what was drawn instead of reading paths."""
    kept, figure = [], Figure()
    monkeypatch.setattr(_dispersion, "draw", lambda name, size, paint, words: kept.append(paint))
    plot(*data)
    kept[0](figure)
    return figure.axes


def test_the_steps_of_code_use_are_its_counts(monkeypatch):
    panels = axes_of(monkeypatch, code_use_plot, {"a": CODES, "b": CODES[:50]})
    for axes, codes in zip(panels, (CODES, CODES[:50]), strict=True):
        counts = items_by_code(codes)
        heights, edges, _ = axes.patches[0].get_data()
        assert edges[-1] == len(counts) + 1
        assert heights.tolist() == counts[edges[:-1].astype(int) - 1].tolist()
        assert heights[0] == counts[0]


def test_the_description_says_how_many_codes_and_items():
    svg = code_use_plot({"a": BinaryCodes.from_bits([[0, 1], [1, 1], [0, 1]])})
    assert "a: 2 codes, 2 items on the most used one" in svg


def test_a_trade_has_a_point_for_each_pair_of_scores(monkeypatch):
    (axes,) = axes_of(monkeypatch, trade_plot, LINES, ("AP", "mLGAP"))
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {"one": [[0.9, 0.2], [0.8, 0.35]], "other": [[0.9, 0.2], [0.7, 0.3]]}
    assert [text.get_text() for text in axes.texts] == ["0", "1", "0", "2"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("AP", "mLGAP")


@pytest.mark.parametrize("lines", [{}, {"one": []}, {str(k): LINES["one"] for k in range(5)}])
def test_lines_that_cannot_be_drawn_are_refused(lines):
    with pytest.raises(InputError, match="lines must have 1 to 4 names"):
        trade_plot(lines, ("x", "y"))


def test_nothing_to_draw_is_refused():
    with pytest.raises(InputError, match="databases must have at least one name"):
        code_use_plot({})
