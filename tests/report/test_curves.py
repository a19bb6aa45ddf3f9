from dataclasses import replace

import numpy as np
import pytest

from rankbits import BinaryCodes, affinity, methods
from rankbits.errors import InputError
from rankbits.evaluation import TieSizes
from rankbits.evaluation._audit import audit
from rankbits.report import distance_plot, training_plot
from rankbits.report._curves import distance_shares, overlap, returned_epoch


def history(losses, scores):
    pairs = zip(losses, scores, strict=True)
    return [{"epoch": n, "loss": loss, "score": score} for n, (loss, score) in enumerate(pairs, 1)]


@pytest.fixture(scope="module")
def counted():
    """An audit, and the distances of all its pairs that are relevant, and that are not."""
    rng = np.random.default_rng(5)
    queries, database = (rng.integers(0, 2, (n, 6)) for n in (7, 40))
    labels = rng.integers(0, 3, 7), rng.integers(0, 3, 40)
    codes = BinaryCodes.from_bits(queries), BinaryCodes.from_bits(database)
    found = audit(*codes, affinity.classes(*labels), name="mine")
    distances = (queries[:, None] != database[None]).sum(axis=2)
    same = labels[0][:, None] == labels[1][None]
    return found, distances[same], distances[~same]


def test_shares_are_those_of_all_pairs(counted):
    found, *sides = counted
    for shares, distances in zip(distance_shares(found.ties), sides, strict=True):
        assert shares == pytest.approx(np.bincount(distances, minlength=7) / len(distances))


def test_each_panel_draws_the_shares_of_its_codes(painted, counted):
    found, relevant, irrelevant = counted
    other = replace(found, ties=TieSizes((1.0, 3.0), (1.0, 1.0), 2.0), name="other")
    panels = painted(distance_plot, [found, other])
    drawn = {
        patch.get_label(): patch.get_data()
        for patch in panels[0].patches
        if patch.get_fill() and patch.get_label()
    }
    for label, distances in (("relevant", relevant), ("irrelevant", irrelevant)):
        wanted = np.bincount(distances, minlength=7) / len(distances)
        assert drawn[label].values == pytest.approx(wanted)
        assert drawn[label].edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    assert panels[1].get_title(loc="left") == "other: overlap 0.500"
    assert [text.get_text() for text in panels[0].get_legend().get_texts()] == [
        "irrelevant",
        "relevant",
    ]


@pytest.mark.parametrize(
    ("items", "relevant", "wanted"),
    [
        ((2.0, 0.0, 5.0), (2.0, 0.0, 0.0), 0.0),
        ((2.0, 4.0, 6.0), (1.0, 2.0, 3.0), 1.0),
        ((3.0, 2.0, 1.0), (3.0, 0.0, 1.0), 0.0),
        ((4.0, 4.0, 0.0), (1.0, 3.0, 0.0), 0.5),
    ],
)
def test_the_overlap_is_the_area_under_both(items, relevant, wanted):
    assert overlap(TieSizes(items, relevant, 1.0)) == pytest.approx(wanted)


def test_codes_without_irrelevant_items_have_no_share_of_them(counted):
    ties = TieSizes(items=(1.0, 2.0), relevant=(1.0, 2.0), tied_with=1.0)
    assert distance_shares(ties)[1].tolist() == [0, 0]
    assert "overlap 0.000" in distance_plot([replace(counted[0], ties=ties)])


def test_the_training_curves_are_one_minus_loss_and_the_score(painted):
    (axes,) = painted(training_plot, history([0.75, 0.5, 0.25], [0.5, 0.875, 0.75]))
    lines = {line.get_label(): line for line in axes.lines}
    batches, held_out, kept = (
        (list(line.get_xdata()), list(line.get_ydata())) for line in lines.values()
    )
    assert batches == ([1, 2, 3], [0.25, 0.5, 0.75])
    assert held_out == ([1, 2, 3], [0.5, 0.875, 0.75])
    assert kept == ([2], [0.875])
    assert list(lines)[1:] == ["held out, binary codes", "weights kept"]


def test_scores_of_some_epochs_only_are_drawn_where_they_are(painted):
    (axes,) = painted(training_plot, history([0.5] * 4, [None, 0.25, None, 0.125]))
    assert list(axes.lines[1].get_xdata()) == [2, 4]
    assert list(axes.lines[2].get_xdata()) == [2]


def test_without_scores_one_line_is_drawn_and_the_last_epoch_is_kept(painted):
    epochs = history([0.5, 0.25], [None, None])
    assert len(painted(training_plot, epochs)[0].lines) == 1
    assert returned_epoch(epochs)["epoch"] == 2


@pytest.mark.parametrize("scores", [[0.1, 0.5, 0.3, 0.5, 0.2], None])
def test_the_returned_epoch_is_the_one_that_the_estimator_keeps(scores):
    given = iter(scores or [])
    scoring = scores and (lambda encoder: next(given))
    settings = {"epochs": 5, "scoring": scoring, "n_threads": 1, "device": "cpu"}
    x, y = np.random.default_rng(0).standard_normal((20, 5)), np.arange(20) % 2
    hasher = methods.get("talr-ap", n_bits=8, random_state=0, **settings).fit(x, y)
    returned, best = returned_epoch(hasher.history_), hasher.report_["best"]
    assert returned["epoch"] == best["epoch"] == (2 if scores else 5)
    assert returned["score"] == (best["score"] if scores else None)


def test_a_history_without_epochs_is_refused():
    with pytest.raises(InputError, match="history must have at least one epoch"):
        training_plot([])


def test_the_figures_say_their_numbers(counted):
    svg = training_plot(history([0.75, 0.25], [0.5, 0.625]))
    assert "from 0.250 to 0.750; of held-out rows 0.625 at epoch 2, which is kept." in svg
    assert f"mine: they overlap by {overlap(counted[0].ties):.3f}" in distance_plot([counted[0]])
