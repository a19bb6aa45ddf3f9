"""Additive codes: codebooks against least squares, logits, and what they keep of a ranking."""

import numpy as np
import pytest

import rankbits
from commands import Command, assert_one_line
from rankbits import affinity, methods
from rankbits.adapters.pgvector import two_stage_script
from rankbits.codes.sums import SumSearch, bits_to_entries, entries_to_bits
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods import ITQ, Additive, Distilled
from rankbits.methods.shallow.additive import codebooks
from rankbits.methods.shallow.additive.codebooks import (
    fit_vectors,
    learn_codebooks,
    measure_margins,
)
from rankbits.methods.shallow.shared import unit_hasher
from rankbits.methods.shallow.shared.units import scale_to_units


@pytest.fixture
def units(rng):
    return scale_to_units(rng.standard_normal((90, 7)) * np.arange(1, 8) + 0.5)


def sum_of_errors(rows, vectors, entries, along=3.0):
    """E of all rows and the ridge, one row after the other."""
    total = (vectors**2).sum()
    for row, code in zip(rows, entries, strict=True):
        left = row - sum(vectors[16 * book + entry] for book, entry in enumerate(code))
        total += left @ left + along * (row @ left) ** 2
    return total


@pytest.mark.parametrize("along", [3.0, 10.0])
def test_vectors_after_many_steps_are_where_the_sum_of_errors_is_smallest(rng, units, along):
    entries = rng.integers(0, 16, (90, 3), dtype=np.uint8)
    vectors = fit_vectors(units, entries, np.zeros((48, 7)), 400, along)
    least = sum_of_errors(units, vectors, entries, along)
    for _ in range(20):
        moved = vectors + 1e-3 * rng.standard_normal(vectors.shape)
        assert sum_of_errors(units, moved, entries, along) > least
    refitted = fit_vectors(units, entries, vectors, 5, along)
    assert sum_of_errors(units, refitted, entries, along) <= least + 1e-9


def test_steps_go_on_from_the_start_and_lower_the_sum_of_errors(rng, units):
    entries = rng.integers(0, 16, (90, 3), dtype=np.uint8)
    start = rng.standard_normal((48, 7))
    sums = [
        sum_of_errors(units, fit_vectors(units, entries, start, n), entries) for n in (0, 2, 8, 30)
    ]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] == pytest.approx(sum_of_errors(units, start, entries))


def test_turns_lower_the_error_of_the_codes(rng, units):
    first = rng.integers(0, 16, (90, 2), dtype=np.uint8)
    errors = []
    for n_turns in (1, 10):
        vectors = learn_codebooks(units, first, 8, n_turns)
        search = SumSearch.of_vectors(vectors, 8, 3.0, 32)
        entries = codebooks.find_entries(units, vectors, search, first)
        errors.append(sum_of_errors(units, vectors, entries) - (vectors**2).sum())
    assert errors[1] < 0.9 * errors[0]


def test_margins_say_by_how_much_a_bit_lowers_the_error(rng, units):
    vectors = rng.standard_normal((32, 7))
    search = SumSearch.of_vectors(vectors, 8, 3.0, 4)
    entries = rng.integers(0, 16, (90, 2), dtype=np.uint8)
    margins = measure_margins(search, units @ vectors.T, (units**2).sum(axis=1), entries)
    for i in range(5):
        for book in range(2):
            errors = np.empty(16)
            for entry in range(16):
                code = entries[i].copy()
                code[book] = entry
                left = units[i] - vectors[code[0]] - vectors[16 + code[1]]
                errors[entry] = left @ left + 3.0 * (units[i] @ left) ** 2
            for bit in range(4):
                is_set = np.arange(16) >> 3 - bit & 1 == 1
                expected = errors[~is_set].min() - errors[is_set].min()
                assert margins[i, 4 * book + bit] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_bits", [5, 8, 24])
def test_tables_of_a_query_are_its_products_with_what_codes_stand_for(units, n_bits):
    hasher = Additive(n_bits, random_state=0).fit(units)
    bits = hasher.encode(units).bits()
    entries = bits_to_entries(bits)
    assert np.array_equal(entries_to_bits(entries, n_bits), bits)
    decoded = hasher.vectors_.reshape(entries.shape[1], 16, -1)
    sums = sum(decoded[book][column] for book, column in enumerate(entries.T))
    index = rankbits.index.HammingIndex(n_bits)
    index.add(hasher.encode(units))
    scores, ids = index.search_real(hasher.project_queries(units[:6]), 90)
    expected = np.take_along_axis(units[:6] @ sums.T, ids, axis=1)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_rows_are_encoded_alike_whatever_the_block_and_their_length(rng, units):
    hasher = Additive(24, n_groups=4, random_state=0).fit(units)
    whole = hasher.encode(units)
    assert np.array_equal(whole[:20].packed, hasher.encode(units[:20]).packed)
    lengths = 10.0 ** rng.integers(-200, 200, (len(units), 1))
    np.testing.assert_allclose(hasher.project(lengths * units), hasher.project(units), atol=1e-9)


def share_of_nearest(hasher, data):
    """Share of a query's 10 items of largest cosine within its first 20."""
    queries, items = scale_to_units(data.query_x), scale_to_units(data.database_x)
    exact = np.argsort(-queries @ items.T, axis=1)[:, :10]
    index = rankbits.index.HammingIndex(hasher.n_bits)
    index.add(hasher.encode(data.database_x))
    _, ids = index.search_real(hasher.project_queries(data.query_x), 20)
    return np.mean([np.isin(*pair).mean() for pair in zip(exact, ids, strict=True)])


def test_more_of_the_nearest_digits_are_found_than_by_weights_of_bits():
    data = digits()
    share = {
        method: share_of_nearest(method(48, random_state=0).fit(data.database_x), data)
        for method in (ITQ, Distilled, Additive)
    }
    assert share[Additive] > max(share[ITQ], share[Distilled]) + 0.01


def test_codes_are_refused_as_queries_with_the_advice_to_search_by_real_numbers(units):
    hasher = Additive(8, random_state=0).fit(units)
    index = rankbits.index.HammingIndex(8)
    index.add(hasher.encode(units))
    with pytest.raises(InputError, match="must be encoded as queries"):
        index.search(hasher.encode(units), 3)
    with pytest.raises(InputError, match=r"queries of Additive have no bits"):
        hasher.encode_queries(units)


def test_codes_too_long_for_the_products_of_all_vectors_are_refused(units):
    with pytest.raises(InputError, match="n_bits must be at most 1024 for additive, got 1025"):
        Additive(1025).fit(units)


def test_a_model_whose_vectors_do_not_fit_its_bits_is_refused(units):
    hasher = Additive(8, random_state=0).fit(units)
    arrays, facts = hasher._state()
    other = Additive(12)
    other.n_features_in_ = units.shape[1]
    with pytest.raises(FileFormatError, match="must have 48 vectors for 12 bits, got 32"):
        other._restore(arrays, facts)


def test_an_onnx_file_gives_the_codes_of_a_model_with_groups(units, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    hasher = Additive(12, n_groups=3, random_state=0).fit(units)
    assert methods.export_onnx(hasher, tmp_path / "model.onnx") > 0
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    rows = units.astype(np.float32)
    codes, tables = session.run(["codes", "query_logits"], {"x": rows})
    assert np.array_equal(codes, hasher.transform(rows))
    np.testing.assert_allclose(tables, hasher.project_queries(rows), atol=1e-5)


@pytest.fixture
def saved(units, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hasher = Additive(16, random_state=0).fit(units)
    hasher.save("model")
    np.save("x.npy", units)
    return hasher


def test_the_command_line_encodes_items_and_refuses_queries_before_any_work(saved, units, tmp_path):
    Command("encode").printed("model", "x.npy", "--out", "items.npy")
    Command("index").printed("build", "items.npy", "--out", "live")
    found = Command("index").printed("search", "live", "x.npy", "--model", "model", "-k", 1)
    assert len(found["ids"]) == len(units)
    refused = Command("encode")("model", "x.npy", "--as", "queries", "--out", "queries.npy")
    assert_one_line(refused, "queries of Additive have no bits")
    assert not list(tmp_path.glob("queries*"))


def test_adapters_that_need_weights_of_bits_refuse_it(saved, units, tmp_path):
    faiss_adapter = pytest.importorskip("rankbits.adapters.faiss")
    pytest.importorskip("faiss")
    index = rankbits.index.HammingIndex(16)
    index.add(saved.encode(units))
    with pytest.raises(InputError, match="Additive has 16 numbers for every four bits"):
        faiss_adapter.to_faiss(saved, index)
    index.save(tmp_path / "index")
    with pytest.raises(InputError, match="compress again with --method distilled"):
        two_stage_script(tmp_path)


@pytest.fixture
def classes(rng):
    """Rows of six classes, of which the first four are known."""
    labels = rng.integers(0, 6, 600)
    rows = rng.standard_normal((6, 24))[labels] + 2.0 * rng.standard_normal((600, 24))
    return rows, labels


def average_precision(hasher, rows, labels):
    index = affinity.classes(labels[:100], labels[100:])
    codes, weights = hasher.encode(rows[100:]), hasher.project_queries(rows[:100])
    return rankbits.evaluate(None, codes, index, "AP", query_weights=weights).mean["AP"]


def test_known_classes_rank_better_with_labels_and_new_ones_no_worse(classes):
    rows, labels = classes
    is_known = labels < 4
    known, new = (rows[is_known], labels[is_known]), (rows[~is_known], labels[~is_known])
    train = known[0][-200:], known[1][-200:]
    plain = Additive(32, random_state=0).fit(*train)
    grown = Additive(32, classes="grow", random_state=0).fit(*train)
    seen = known[0][:-200], known[1][:-200]
    assert average_precision(grown, *seen) > average_precision(plain, *seen) + 0.05
    assert average_precision(grown, *new) > average_precision(plain, *new) - 0.02


def test_class_features_are_a_cosine_and_a_posterior_that_queries_weigh_by_confidence(classes):
    rows, labels = classes
    hasher = Additive(8, classes="grow", random_state=0).fit(rows, labels)
    features, units = hasher.class_features_, scale_to_units(rows)
    chances = features.probabilities(units)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances.argmax(axis=1) == labels).mean() > 0.6
    items, queries = features.of_items(units), features.of_queries(units)
    np.testing.assert_allclose(np.linalg.norm(items[:, :24], axis=1), 1)
    np.testing.assert_allclose(items[:, 24:] ** 2, 0.1 * chances**2)
    expected = 4 * (chances**2).sum(axis=1, keepdims=True) * items[:, 24:]
    np.testing.assert_allclose(queries[:, 24:], expected)
    np.testing.assert_array_equal(queries[:, :24], items[:, :24])


@pytest.mark.parametrize("n_classes", [2, 6])
def test_a_posterior_is_that_of_the_networks_of_scikit_learn(classes, monkeypatch, n_classes):
    from sklearn.neural_network import MLPClassifier

    rows, labels = classes
    networks, fit = [], MLPClassifier.fit
    monkeypatch.setattr(
        MLPClassifier,
        "fit",
        lambda self, *given: networks.append((self, *given)) or fit(self, *given),
    )
    hasher = Additive(8, classes="grow", random_state=0).fit(rows, labels % n_classes)
    expected = np.mean([network.predict_proba(given) for network, given, _ in networks], axis=0)
    units = scale_to_units(rows)
    np.testing.assert_allclose(hasher.class_features_.probabilities(units), expected, atol=1e-9)


@pytest.mark.parametrize("n_known", [6, 4])
def test_a_model_of_growing_classes_is_saved_and_exported(classes, tmp_path, n_known):
    torch = pytest.importorskip("torch")
    rows, labels = classes
    y = np.where(labels < n_known, labels, -1)
    hasher = Additive(12, classes="grow", random_state=0).fit(rows, y)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert again.encode(rows) == hasher.encode(rows)
    assert np.array_equal(again.project_queries(rows), hasher.project_queries(rows))
    weights = hasher._query_torch_module()(torch.tensor(rows)).numpy()
    np.testing.assert_allclose(weights, hasher.project_queries(rows), atol=1e-9)
    features = hasher._feature_module("of_items")(torch.tensor(rows)).numpy()
    expected = hasher.class_features_.of_items(scale_to_units(rows))
    np.testing.assert_allclose(features, expected, atol=1e-9)
    arrays, facts = hasher._state()
    del arrays["class_metric"]
    with pytest.raises(FileFormatError, match="must hold the arrays class_center, class_metric"):
        hasher._restore(arrays, facts)


def test_rows_without_a_label_teach_the_codes_and_not_the_classes(classes):
    rows, labels = classes
    is_known = labels < 4
    alone, joint = (Additive(16, classes="grow", random_state=0) for _ in range(2))
    alone.fit(rows[is_known], labels[is_known])
    joint.fit(rows, np.where(is_known, labels, -1))
    for name in ("center", "metric", "n_classes"):
        of_alone, of_joint = (getattr(one.class_features_, name) for one in (alone, joint))
        np.testing.assert_array_equal(of_joint, of_alone)
    new = rows[~is_known], labels[~is_known]
    assert average_precision(joint, *new) > average_precision(alone, *new) + 0.05


def test_a_row_of_no_known_class_has_little_of_the_posterior(classes):
    rows, labels = classes
    is_known, is_seen = labels < 4, np.arange(600) % 3 > 0
    y = np.where(is_known, labels, -1)
    hasher = Additive(8, classes="grow", random_state=0).fit(rows[is_seen], y[is_seen])
    chances = hasher.class_features_.probabilities(scale_to_units(rows[~is_seen])).sum(axis=1)
    known, new = chances[is_known[~is_seen]], chances[~is_known[~is_seen]]
    assert (known[:, None] > new).mean() > 0.8
    assert known.mean() > new.mean() + 0.2


def test_labels_are_not_drawn_away_with_many_rows(classes, monkeypatch):
    rows, labels = classes
    monkeypatch.setattr(unit_hasher, "MOST_ROWS", 50)
    y = np.where(np.arange(600) % 10 == 0, labels, -1)
    hasher = Additive(8, classes="grow", random_state=0).fit(rows, y)
    labelled = scale_to_units(rows)[y >= 0]
    np.testing.assert_allclose(hasher.class_features_.center, labelled.mean(axis=0))


def test_codes_of_growing_classes_weigh_an_error_along_the_row_eleven_fold(classes):
    rows, labels = classes
    hasher = Additive(4, classes="grow", random_state=0).fit(rows, labels)
    features = hasher.class_features_.of_items(scale_to_units(rows))
    left = features[:, None] - hasher.vectors_  # one codebook: every code is one of its vectors
    errors = (left**2).sum(axis=2) + 10 * np.einsum("nvd,nd->nv", left, features) ** 2
    entries = bits_to_entries(hasher.encode(rows).bits())
    np.testing.assert_array_equal(entries[:, 0], errors.argmin(axis=1))


def test_labels_that_growing_classes_cannot_use_are_refused_before_any_work(classes):
    rows, labels = classes
    for params, y, sentence in (
        ({"classes": "grow"}, None, "classes='grow' needs class labels as y"),
        ({"classes": "grow"}, np.eye(6)[labels], "classes='grow' needs class labels as y"),
        ({"classes": "grow"}, np.zeros(600, int), "y must have two classes or more"),
        ({"classes": "grow"}, np.where(labels > 2, 1, -1), "beside -1 for rows without a label"),
        ({"classes": "grow", "n_groups": 3}, labels, "n_groups must be 0 with classes='grow'"),
        ({"classes": "new"}, labels, "classes must be one of ignore, grow; got 'new'"),
    ):
        with pytest.raises(InputError, match=sentence):
            Additive(8, **params).fit(rows, y)
