import pytest
from matplotlib.figure import Figure

from rankbits.errors import InputError
from rankbits.report import _search, recall_plot

INDEXES = {
    "one": [(0.9, 2000.0, "4 probes"), (0.5, 8000.0, "1 probe")],
    "other": [(1.0, 300.0, "flat")],
}


@pytest.mark.parametrize("narrow", [False, True])
def test_a_plot_is_the_same_small_svg_each_time_and_its_ids_carry_its_name(check_svg, narrow):
    check_svg(lambda **options: recall_plot(INDEXES, **options), narrow)


def test_speeds_are_written_as_numbers():
    svg = recall_plot(INDEXES)
    assert ">1,000<" in svg
    assert "$" not in svg


def test_each_setting_is_a_point_in_order_of_recall_on_a_logarithmic_axis(monkeypatch):
    kept, figure = [], Figure()
    monkeypatch.setattr(_search, "draw", lambda name, size, paint, words: kept.append(paint))
    recall_plot(INDEXES)
    kept[0](figure)
    (axes,) = figure.axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {"one": [[0.5, 8000.0], [0.9, 2000.0]], "other": [[1.0, 300.0]]}
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


def test_the_description_says_what_was_set_and_what_came_of_it():
    assert "one: 1 probe 0.500 at 8,000, 4 probes 0.900 at 2,000" in recall_plot(INDEXES)


@pytest.mark.parametrize("indexes", [{}, {"one": []}, {str(k): INDEXES["one"] for k in range(9)}])
def test_indexes_that_cannot_be_drawn_are_refused(indexes):
    with pytest.raises(InputError, match="indexes must have 1 to 8 names"):
        recall_plot(indexes)


@pytest.mark.parametrize("bad", [(1.5, 10.0), (-0.1, 10.0), (float("nan"), 10.0), (0.5, 0.0)])
def test_a_recall_beyond_1_or_no_speed_is_refused(bad):
    with pytest.raises(InputError, match="indexes must have a recall from 0 to 1"):
        recall_plot({"one": [(*bad, "x")]})
