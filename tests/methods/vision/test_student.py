"""Rows without labels: who labels them, what learns from them, and what is refused."""

import numpy as np
import pytest
import torch

import rankbits
from methods.vision.spots import build
from rankbits import affinity, evaluate, methods
from rankbits.errors import InputError
from rankbits.methods.training.config import common_config
from rankbits.methods.vision import student, tuning

N_LABELLED = 500


def split(pictures):
    x, y = pictures
    return x[:N_LABELLED], y[:N_LABELLED], x[N_LABELLED:]


def fit(pictures, **params):
    x, y, others = split(pictures)
    params = {"fine_tune": "last:4", "posterior": 2, **params}
    return build(**params).fit(x, y, unlabelled=others)


def test_one_network_takes_the_place_of_those_that_labelled_the_rows(pictures):
    fitted = fit(pictures)
    assert len(fitted.encoder_.backbone.networks) == 1
    assert fitted.encoder_.architecture.posterior == 1
    report = fitted.report_["tuning"]
    assert [one["unseen"] for one in report["teachers"]] == [50, 50]
    assert [one["unseen"] for one in report["networks"]] == [50]


def test_rows_get_the_mean_belief_of_the_networks(pictures, monkeypatch):
    found = {}
    tune, ask = tuning.Tuner.tune, tuning.Tuner.ask

    def watch(self, name, goal, is_unseen, asked):
        found[name] = goal, is_unseen, asked, self
        tuned = tune(self, name, goal, is_unseen, asked)
        found[name] = (*found[name], tuned)
        return tuned

    monkeypatch.setattr(tuning.Tuner, "tune", watch)
    fit(pictures)
    goal, is_unseen, asked, tuner, _ = found["student"]
    others = np.arange(N_LABELLED, 600)
    assert np.array_equal(asked.rows, others)
    assert is_unseen[:N_LABELLED].sum() == 50
    assert not is_unseen[N_LABELLED:].any()
    teachers = [found[name][-1] for name in ("0", "1")]
    logits = [t.factor * ask(tuner, t.network, tuning.Asked(others, 1)) for t in teachers]
    expected = torch.softmax(sum(logits) / 2, dim=1)
    assert np.allclose(goal.targets[N_LABELLED:], expected.numpy(), atol=1e-6)
    y = pictures[1][:N_LABELLED]
    assert np.array_equal(goal.targets[:N_LABELLED], np.eye(3, dtype=np.float32)[y])
    assert np.array_equal(goal.classes[:N_LABELLED], y)


def test_bits_are_trained_on_beliefs_about_the_rows_without_labels(pictures):
    _, _, others = split(pictures)
    pools = []
    cache = methods.PosteriorCache()
    fit(pictures, posterior_cache=cache)
    for tuned in cache._posteriors.values():
        pools.append(tuned.pool.inputs)
        with torch.no_grad():
            logits = tuned.networks(torch.from_numpy(others))
        assert torch.allclose(pools[-1][:100, 3:], torch.softmax(logits, 1), atol=2e-2)
    assert len(pools) == 1


def test_codes_of_a_student_rank_pictures_that_nobody_labelled(pictures):
    x, y = pictures
    fitted = fit(pictures, tuning_epochs=10, epochs=10)
    codes = fitted.encode(x[N_LABELLED:])
    same = affinity.classes(y[N_LABELLED:], y[N_LABELLED:])
    assert evaluate(codes, codes, same, exclude_self=True).mean["AP"] > 0.9


def test_a_student_that_was_killed_ends_as_one_that_was_not(
    pictures,
    tmp_path,
    monkeypatch,
):
    x, y, others = split(pictures)
    whole = fit(pictures)
    monkeypatch.setattr(student, "tune_student", _killed)
    with pytest.raises(KeyboardInterrupt):
        fit(pictures, checkpoint=tmp_path)
    monkeypatch.undo()
    resumed = fit(pictures, checkpoint=tmp_path)
    assert resumed.encode(x) == whole.encode(x)
    monkeypatch.setattr(tuning.Tuner, "_train", lambda *given: pytest.fail("tuned twice"))
    assert fit(pictures, checkpoint=tmp_path).encode(x) == whole.encode(x)
    with pytest.raises(InputError, match="belongs to another training"):
        build(fine_tune="last:4", posterior=2, checkpoint=tmp_path).fit(
            x, y, unlabelled=others[::-1].copy()
        )


def test_bits_that_were_trained_without_the_other_rows_are_not_taken_for_the_students(
    pictures, tmp_path
):
    x, y, _ = split(pictures)
    build(fine_tune="last:4", posterior=1, checkpoint=tmp_path).fit(x, y)
    with pytest.raises(InputError, match="belongs to another training"):
        fit(pictures, posterior=1, checkpoint=tmp_path)


def _killed(*given):
    raise KeyboardInterrupt


def test_a_student_of_the_pretrained_network_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (600, 32, 32, 3)).astype(np.uint8), rng.integers(0, 2, 600)
    params = {"fine_tune": "last:1", "image_size": 32, "tuning_epochs": 1, "n_views": 1}
    hasher = build(**params, posterior=2, encoder="backbone")
    hasher.fit(x[:500], y[:500], unlabelled=x[500:])
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").encode(x[:20]) == hasher.encode(x[:20])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"fine_tune": False}, "unlabelled must be None unless y is class labels and a backbone"),
        ({"posterior": 0}, "unlabelled must be None unless y is class labels and a backbone"),
        ({"encoder": "cnn"}, "unlabelled must be None unless y is class labels and a backbone"),
    ],
)
def test_rows_without_labels_are_refused_where_nothing_labels_them(
    pictures,
    params,
    message,
):
    with pytest.raises(InputError, match=message):
        fit(pictures, **params)


@pytest.mark.parametrize(
    "others", [np.zeros((3, 8, 8)), np.zeros((0, 8, 8, 3)), np.full((2, 8, 8, 3), np.nan), "rows"]
)
def test_wrong_rows_without_labels_are_refused(pictures, others):
    x, y, _ = split(pictures)
    with pytest.raises(InputError, match="unlabelled: "):
        build(fine_tune="last:4").fit(x, y, unlabelled=others)


@pytest.mark.parametrize(
    ("given", "n_rows", "epochs"),
    [
        (None, 5000, 12),
        (None, 59_000, 5),
        (None, 100, 40),
        (12, 5000, 12),
        (40, 20_000, 20),
        (3, 59_000, 3),
    ],
)
def test_more_rows_are_passed_over_less_often(given, n_rows, epochs):
    hasher = build(tuning_epochs=given)
    config = common_config(tuning_epochs=given)
    assert tuning.tuning_config(hasher, config, n_rows, 5000).epochs == epochs
