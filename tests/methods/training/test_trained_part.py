"""Initialization: first weights from principal directions, and the scale that keeps distances."""

import json

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist

import rankbits
from rankbits import affinity, methods
from rankbits.errors import InputError
from rankbits.methods.supervision import supervise
from rankbits.methods.training import encoders, recipes
from rankbits.methods.training.kinds import Architecture
from rankbits.methods.training.layers import Standardize
from rankbits.methods.training.trained_part import Initialization

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 10)) * np.linspace(3, 1, 10) @ np.linalg.qr(RNG.normal(size=(10, 10)))[0]
X += 7
STILL = {"learning_rate": 1e-12, "epochs": 1, "noise": 0.0, "n_threads": 1, "random_state": 0}


def still(n_bits=6, rows=X, **params):
    """A fit that learns nothing after its start."""
    params = {"encoder": "linear", "scaling": "common", **STILL, **params}
    return methods.get("talr-ndcg", n_bits=n_bits, **params).fit(rows)


def principal_parts(n):
    """The first principal components of the rows, by a singular value decomposition."""
    left, values, _ = np.linalg.svd(X - X.mean(0), full_matrices=False)
    return left[:, :n] * values[:n]


def test_the_pca_start_gives_the_signs_of_the_principal_components():
    logits, parts = still(init="pca").project(X), principal_parts(6)
    signs = np.sign((logits * parts).sum(0))
    np.testing.assert_array_equal(logits * signs > 0, parts > 0)
    assert np.abs(logits).mean() == pytest.approx(1, abs=1e-4)


def test_the_itq_start_is_the_rotation_that_its_own_bits_ask_for():
    """Where ITQ's turns end, Procrustes' rotation of the components to the bits is the map."""
    logits, parts = still(init="itq").project(X), principal_parts(6)
    rotation, _ = orthogonal_procrustes(parts, np.where(logits > 0, 1.0, -1.0))
    turned = parts @ rotation
    np.testing.assert_allclose(logits, turned / np.abs(turned).mean(), atol=1e-4)


def test_without_labels_a_linear_map_is_the_default_starts_from_itq_and_ends_above_it():
    quick = {"learning_rate": 3e-3, "noise": 0.0}  # the defaults hardly move a map on 300 rows
    hasher = methods.get("talr-ndcg", n_bits=6, random_state=0, n_threads=1, **quick)
    hasher.fit(X)
    assert hasher.report_["config"]["init"] == "itq"
    assert hasher.report_["config"]["scaling"] == "common"
    assert hasher.report_["encoder"]["kind"] == "linear"
    relation = supervise(X, None, graded=True).affinity
    means = []
    for fitted in (hasher, still(init="itq")):
        codes = fitted.encode(X)
        counts = rankbits.count_ties(codes, codes, relation, exclude_self=True)
        means.append(np.nanmean(rankbits.metrics.ndcg(counts)))
    assert means[0] > means[1] + 0.005


def test_hidden_layers_beside_a_linear_map_start_at_zero():
    architecture = Architecture("mlp", (10,), 6, hidden=(8,), skip=True)
    encoder, rows = encoders.build_encoder(architecture).eval(), torch.from_numpy(X).float()
    encoders.learn_scales(encoder, rows, np.random.default_rng(0), "common")
    Initialization("pca", encoder.head, rows, 6).apply(encoder.head)
    logits, parts = encoder(rows).detach().numpy(), principal_parts(6)
    np.testing.assert_allclose(np.abs(logits), np.abs(parts) / np.abs(parts).mean(), atol=1e-4)
    encoder.head.body.skip.weight.data.zero_()
    assert np.ptp(encoder(rows).detach().numpy(), axis=0).max() == 0


def test_bits_beyond_the_directions_get_random_ones():
    rows = np.hstack([X, X])  # twenty features vary in ten directions
    logits = still(n_bits=14, rows=rows, init="pca").project(rows)
    assert np.linalg.matrix_rank(logits - logits.mean(0), tol=1e-2) == 10
    assert (np.abs(logits).mean(0) > 0.2).all()
    assert len(np.unique(logits > 0, axis=1).T) == 14


def test_seeds_turn_the_start_and_the_same_seed_does_not():
    first, again, other = (still(init="itq", random_state=s).project(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert ((first > 0) != (other > 0)).any()


def test_a_start_is_saved_and_loaded(tmp_path):
    hasher = still(init="itq")
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    np.testing.assert_array_equal(again.project(X), hasher.project(X))
    assert (again.get_params()["init"], again.get_params()["scaling"]) == ("itq", "common")
    assert json.dumps(again.report_) == json.dumps(hasher.report_)


def test_a_run_with_another_start_is_another_run(tmp_path):
    params = {"checkpoint": tmp_path / "state", "checkpoint_epochs": 1}
    still(init="itq", **params)
    assert still(init="itq", **params).report_["epochs_resumed"] == 1
    with pytest.raises(InputError, match="checkpoint"):
        still(init="pca", **params)


def test_a_start_that_cannot_be_is_refused_if_asked_for():
    with pytest.raises(InputError, match=r"init must be 'random' for an encoder without a linear"):
        still(encoder="mlp", init="pca", hidden=(4,), skip=False)
    with pytest.raises(InputError, match="init must be"):
        still(init="kmeans")
    with pytest.raises(InputError, match="scaling must be"):
        still(scaling="none")


def test_a_start_that_a_recipe_wants_gives_way_to_the_encoder():
    triples = [(i, j, 1 + j % 2) for i in range(40) for j in range(i + 40, 300, 40)]
    judged = affinity.judgements(triples, 300, 300)
    params = {**STILL, "n_bits": 6}
    fitted = methods.get("talr-ndcg", **params).fit(X, judged)
    assert fitted.report_["config"]["init"] == "itq"
    fitted = methods.get("talr-ndcg", skip=False, **params).fit(X, judged)
    assert fitted.report_["config"]["init"] == "random"


def test_a_common_scale_keeps_the_ratios_of_distances():
    rows = X.copy()
    rows[:, 3] = 2.5
    layer = Standardize(10)
    assert layer.learn(torch.from_numpy(rows), "common").tolist() == [3]
    scaled = layer(torch.from_numpy(rows)).numpy()
    ratios = pdist(rows) / pdist(scaled)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)
    varying = np.delete(scaled, 3, axis=1)
    assert varying.var(0).mean() == pytest.approx(1, abs=1e-5)


def test_recipes_tell_supervisions_apart():
    kind = recipes.supervision_kind
    labels, hot = np.arange(300) % 3, np.eye(3, dtype=int)[np.arange(300) % 3]
    assert kind(supervise(X, None)) == "distances"
    assert kind(supervise(X, affinity.neighbours(X, X, [3.0], [1]))) == "distances"
    assert kind(supervise(X, labels)) == "classes"
    assert kind(supervise(X, hot)) == "tags"
    assert kind(supervise(X, affinity.judgements([(0, 1, 2)], 300, 300))) == "judgements"
    assert kind(supervise(X, affinity.levels(hot @ hot.T))) == "levels"


def test_the_fewer_rows_without_labels_the_smaller_the_learning_rate():
    rates = []
    for n in (60, 120):
        hasher = methods.get("talr-ndcg", n_bits=4, random_state=0, epochs=1, n_threads=1)
        rates.append(hasher.fit(X[:n]).report_["config"]["learning_rate"])
    assert rates == pytest.approx([3e-3 * 60 / 10_000, 3e-3 * 120 / 10_000])


def test_whoever_gives_hidden_layers_gets_them_without_labels_too():
    hasher = methods.get("talr-ap", n_bits=4, hidden=(8,), epochs=1, random_state=0, n_threads=1)
    assert hasher.fit(X).report_["encoder"]["kind"] == "mlp"
    assert hasher.fit(X, np.arange(300) % 3).report_["encoder"]["kind"] == "mlp"
