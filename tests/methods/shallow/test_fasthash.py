"""FastHash: labels descend, later bits see what trees predict, and it ranks better than others."""

import numpy as np
import pytest

import rankbits
from oracles.pair_bits import total_loss
from rankbits import affinity, evaluate, methods
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods.shallow.shared.pair_sampling import draw_pairs
from rankbits.methods.supervision import supervise

DATA = digits()
X, Y = DATA.database_x[:200], DATA.database_y[:200]


def create(**params):
    return methods.get("fasthash", **{"random_state": 0, "n_trees": 8, "n_bits": 4, **params})


def held_out_ap(hasher):
    relevant = affinity.classes(DATA.query_y[:99], DATA.database_y)
    items = hasher.encode(DATA.database_x)
    return evaluate(hasher.encode(DATA.query_x[:99]), items, relevant).mean["AP"]


@pytest.mark.parametrize("loss", ["hinge", "ksh", "exponential"])
def test_labels_never_end_above_their_start_and_the_loss_is_that_of_the_predicted_codes(loss):
    hasher = create(loss=loss, n_similar=1000, n_dissimilar=1000).fit(X[:60], Y[:60])
    for entry in hasher.history_:
        assert entry["energy"] <= entry["start"]
    pairs = draw_pairs(supervise(X[:60], Y[:60]), 60, 60, np.random.default_rng(1))
    assert len(pairs.first) == 60 * 59
    codes = np.where(hasher.project(X[:60]) > 0, 1.0, -1.0)
    for n_bits in (1, 4):
        expected = total_loss(loss, codes[:, :n_bits], pairs) / len(pairs.first)
        assert hasher.history_[n_bits - 1]["loss"] == pytest.approx(expected)


def test_it_ranks_held_out_digits_better_than_methods_without_labels():
    x, y = DATA.database_x[:600], DATA.database_y[:600]
    ours = held_out_ap(create(n_bits=8, n_trees=30).fit(x, y))
    for name in ("lsh", "itq"):
        assert ours > held_out_ap(methods.get(name, n_bits=8, random_state=0).fit(x)) + 0.1


def test_classes_tags_and_levels_that_say_the_same_learn_the_same():
    same = Y[:, None] == Y
    expected = create().fit(X, Y).transform(X)
    for y in (np.eye(10, dtype=int)[Y], affinity.levels(same * 3)):
        assert np.array_equal(create().fit(X, y).transform(X), expected)


def test_without_y_near_rows_are_similar(rng):
    x = rng.standard_normal((40, 4))
    near = affinity.nearest_ranks(x, x, (10,), (1,), "l2", exclude_self=True)
    expected = create(n_trees=3, n_bits=2).fit(x, near).transform(x)
    assert np.array_equal(create(n_trees=3, n_bits=2).fit(x).transform(x), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hing"}, "loss must be one of hinge, ksh, exponential; got 'hing'"),
        ({"n_similar": 0}, "n_similar must be an integer >= 1"),
        ({"n_dissimilar": 1.5}, "n_dissimilar must be an integer >= 1"),
        ({"n_trees": 0}, "n_trees must be an integer >= 1"),
        ({"max_depth": 9}, "max_depth must be an integer from 1 to 8, got 9"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"verbose": "yes"}, "verbose must be True, False or 'auto', got 'yes'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        create(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((6, 3)), [0, 0, 1, 1, 2, 2], "X must vary, but all its rows are equal"),
        (X[:6], [0] * 6, "y must have at least two classes, got one"),
        (X[:6], range(6), "y must have a class with at least two members"),
        (X[:1], [0], "X must have at least two rows to form pairs, got n_samples = 1"),
    ],
)
def test_rows_and_labels_that_teach_nothing_are_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        create().fit(x, list(y))


def test_constant_features_are_never_looked_at():
    hasher = create().fit(X, Y)
    is_split = hasher.forest_.thresholds < np.finfo(float).max
    is_constant = X.std(axis=0) == 0
    assert is_constant.any()
    assert not is_constant[hasher.forest_.features[is_split]].any()


def test_a_bar_is_shown_where_it_is_wanted(capsys):
    create(n_bits=2, n_trees=2, verbose=True).fit(X[:60], Y[:60])
    assert "2/2" in capsys.readouterr().err
    create(n_bits=2, n_trees=2, verbose="auto").fit(X[:60], Y[:60])
    assert capsys.readouterr().err == ""


def test_a_stopped_fit_leaves_nothing_half_learned(monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    hasher = create()
    monkeypatch.setattr("rankbits.methods.shallow.shared.trees.TreeSettings.grow", stop)
    with pytest.raises(KeyboardInterrupt):
        hasher.fit(X, Y)
    assert not hasattr(hasher, "forest_")


def test_the_exported_trees_give_the_same_bits(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    rows = X.astype(np.float32)
    hasher = create().fit(rows, Y)
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") == 64
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert np.array_equal(session.run(["codes"], {"x": rows})[0], hasher.transform(rows))


def test_a_file_with_trees_that_cannot_be_is_refused(tmp_path):
    hasher = create(n_trees=3).fit(X, Y)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert again.history_ == hasher.history_
    arrays, facts = hasher._state()
    beyond = {**arrays, "features": arrays["features"] + 64}
    with pytest.raises(FileFormatError, match="trees must look at features 0 to 63"):
        again._restore(beyond, facts)
    fewer = {**arrays, "leaves": arrays["leaves"][:, :, :9]}
    with pytest.raises(FileFormatError, match="got 9 leaves and 15 nodes"):
        again._restore(fewer, facts)
