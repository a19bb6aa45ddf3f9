"""MLH: training lowers the bound, and the radius is chosen on rows that are held out."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import rankbits
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.mlh.training import Settings, Trainer, draw_batch, pooled_precision
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs, supervise_pairs

DATA = digits()
X, Y = DATA.database_x[:400], DATA.database_y[:400]


def fitted(x=X, y=Y, **params):
    quick = {"n_bits": 16, "radius": 4, "n_steps": 200, "batch_size": 200, "random_state": 0}
    return methods.get("mlh", **quick | params).fit(x, y)


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y, Y)
    return evaluate(hasher.encode(DATA.query_x), hasher.encode(X), relevant).mean["AP"]


def test_training_lowers_the_bound_and_the_loss_of_the_codes():
    hasher = fitted()
    assert len(hasher.bounds_) == 200
    assert hasher.bounds_[-20:].mean() < 0.5 * hasher.bounds_[:5].mean()
    losses = {}
    for name, codes in {"mlh": hasher.encode(X), "lsh": random_codes()}.items():
        apart = (codes.bits()[:, None] != codes.bits()).sum(axis=2)
        same = Y[:, None] == Y
        near, far = np.maximum(0, apart - 3)[same], np.maximum(0, 5 - apart)[~same]
        losses[name] = near.mean() + far.mean()
    assert losses["mlh"] < 0.3 * losses["lsh"]


def random_codes():
    return methods.get("lsh", n_bits=16, random_state=0).fit(X).encode(X)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_it_ranks_held_out_digits_better_than_methods_without_labels(kernel):
    ours = held_out_ap(fitted(kernel=kernel))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=16, random_state=0).fit(X)) + 0.1


def test_codes_do_not_depend_on_the_scale_and_place_of_the_rows():
    one, other = (fitted(x).transform(x) for x in (X, X / 1024 + 8.0))
    assert np.mean(np.unpackbits(one ^ other)) < 0.01


class Counted(Trainer):
    """A trainer that notes the radii and rows of its trainings; only radius 6 learns anything."""

    def train(self, chosen, radius, settings):
        self.trainings.append((radius, len(chosen), settings.n_steps))
        return np.eye(3, 16) if radius == 6 else np.zeros((3, 16))


def counted(y, n_rows=100):
    rows = 3 * np.eye(3)[np.arange(n_rows) % 3] - 1
    settings = Settings(1.0, 80, 10, 0.1, 0.0)
    rng = np.random.default_rng(0)
    trainer = Counted(rows, supervise_pairs(rows, y), 16, settings, rng)
    trainer.trainings = []
    return trainer


def test_the_radius_is_that_of_the_best_trial_on_held_out_rows():
    trainer = counted(np.arange(100) % 3)
    assert trainer.choose_radius() == 6
    assert trainer.trainings == [(radius, 90, 20) for radius in (2, 4, 6, 8)]


def test_the_radius_is_a_quarter_of_the_bits_where_no_pairs_can_be_held_out():
    trainer = counted(np.r_[0, 0, np.arange(1, 99)])
    assert trainer.choose_radius() == 4
    assert trainer.trainings == []


def test_a_fit_chooses_a_radius_or_takes_the_one_given():
    hasher = fitted(radius=None, n_steps=40)
    assert hasher.radius_ in (2, 4, 6, 8)
    assert len(hasher.bounds_) == 40
    assert fitted(n_steps=5, radius=7).radius_ == 7
    assert fitted(n_steps=5, radius=None, n_bits=1).radius_ == 1


def test_a_batch_is_half_similar():
    pairs = draw_pairs(supervise_pairs(X, Y), 5, 20, np.random.default_rng(0))
    chosen = draw_batch(pairs, 21, np.random.default_rng(0))
    assert len(chosen) == 21
    assert pairs.is_similar[chosen].sum() == 10


def test_pooled_precision_is_that_of_scikit_learn(rng):
    distances, is_similar = rng.integers(0, 9, 200), rng.random(200) < 0.3
    expected = average_precision_score(is_similar, -distances)
    assert pooled_precision(distances, is_similar) == pytest.approx(expected)


def test_classes_tags_and_affinities_that_say_the_same_learn_the_same():
    expected = fitted(n_steps=20).transform(X)
    for y in (Y.astype(str), np.eye(10, dtype=int)[Y], affinity.levels(3 * (Y[:, None] == Y))):
        assert np.array_equal(fitted(y=y, n_steps=20).transform(X), expected)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"radius": 0}, "radius must be an integer from 1 to 16"),
        ({"radius": 17}, "radius must be an integer from 1 to 16"),
        ({"slope": 0}, "slope must be a finite number above 0"),
        ({"n_steps": 0}, "n_steps must be an integer >= 1"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"decay": -1}, "decay must be a finite number, 0 or more"),
        ({"kernel": "linear"}, "kernel must be one of rbf"),
        ({"verbose": None}, "verbose must be True, False or 'auto'"),
        ({"y": np.zeros(400, int)}, "y must have at least two classes, got one"),
        ({"x": np.ones((400, 3))}, "X must vary, but all its rows are equal"),
    ],
)
def test_what_cannot_be_learned_is_refused(params, sentence):
    with pytest.raises(InputError, match=sentence):
        fitted(**params)


def test_radius_and_bounds_are_saved_and_checked(tmp_path):
    hasher = fitted(n_steps=10)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert again.radius_ == 4
    np.testing.assert_array_equal(again.bounds_, hasher.bounds_)
    arrays, _ = hasher._state()
    with pytest.raises(FileFormatError, match=r"facts must be radius \(int\)"):
        hasher._restore(arrays, {"radius": "4"})


def test_progress_counts_trials_too(capsys):
    fitted(verbose=True, radius=None, n_steps=40)
    assert "80/80" in capsys.readouterr().err
