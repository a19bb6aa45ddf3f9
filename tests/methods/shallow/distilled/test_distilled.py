"""Distilled maps: gradients against torch's, invariances, and what they gain for real queries."""

import numpy as np
import pytest
from sklearn.base import clone

import rankbits
from rankbits import methods
from rankbits.datasets import digits
from rankbits.errors import FileFormatError, InputError
from rankbits.methods import ITQ, Distilled
from rankbits.methods.shallow import distilled
from rankbits.methods.shallow.distilled.training import (
    EXCLUDED,
    Adam,
    Maps,
    list_loss,
    log_softmax,
    start_from_itq,
    train_maps,
)
from rankbits.methods.shallow.shared import unit_hasher
from rankbits.methods.shallow.shared.units import scale_to_units


@pytest.fixture
def units(rng):
    return scale_to_units(rng.standard_normal((90, 7)) * np.arange(1, 8) + 0.5)


def random_maps(rng, n_features, n_bits):
    shapes = ((n_features, n_bits), (n_bits,)) * 2
    return Maps(*(rng.standard_normal(shape) for shape in shapes))


def test_the_loss_and_its_gradients_are_those_of_torch_with_the_gradient_of_tanh(rng, units):
    torch = pytest.importorskip("torch")
    maps, scale = random_maps(rng, 7, 5), 0.8
    queries, items = units[:11], units[5:40]
    exact = queries @ items.T / 0.2
    own = units[:11, None, 0] == units[None, 5:40, 0]
    exact[own] = EXCLUDED
    loss, grads, grad_scale = list_loss(exact, queries, items, maps, scale)

    tensors = [torch.tensor(array, requires_grad=True) for array in maps.arrays()]
    log_scale = torch.tensor(np.log(scale), requires_grad=True)
    planes, offsets, query_planes, query_offsets = tensors
    logits = torch.tensor(items) @ planes + offsets
    soft = torch.tanh(logits)
    signs = soft + (torch.sign(logits) - soft).detach()
    weights = torch.tensor(queries) @ query_planes + query_offsets
    scores = (log_scale.exp() * weights @ signs.T).masked_fill(torch.tensor(own), -torch.inf)
    target = torch.softmax(torch.tensor(exact), dim=1)
    chances = torch.log_softmax(scores, dim=1).masked_fill(torch.tensor(own), 0)
    expected = -(target * chances).sum() / len(queries)
    expected.backward()

    assert own.sum() == 6
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    assert grad_scale == pytest.approx(log_scale.grad.item(), rel=1e-9)
    for grad, tensor in zip(grads.arrays(), tensors, strict=True):
        np.testing.assert_allclose(grad, tensor.grad.numpy(), rtol=0, atol=1e-12)


def test_two_items_whose_scores_differ_by_log_3_have_chances_of_1_and_3_quarters():
    chances = np.exp(log_softmax(np.log([[1.0, 3.0]]) + 7000))
    np.testing.assert_allclose(chances, [[0.25, 0.75]], rtol=1e-9)


def test_adam_takes_the_steps_of_torch(rng):
    torch = pytest.importorskip("torch")
    array, adam = rng.standard_normal((3, 4)), Adam(0.1)
    tensor = torch.nn.Parameter(torch.tensor(array))
    optimizer = torch.optim.Adam([tensor], lr=0.1, eps=1e-12)
    for grad in rng.standard_normal((5, 3, 4)):
        array = array - adam.step(grad)
        tensor.grad = torch.tensor(grad)
        optimizer.step()
    np.testing.assert_allclose(array, tensor.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("n_bits", [3, 7, 20])
def test_the_start_is_a_rotation_of_principal_directions_for_any_number_of_bits(rng, units, n_bits):
    maps = start_from_itq(units, n_bits, np.random.RandomState(0))
    logits = units @ maps.planes + maps.offsets
    assert np.abs(logits).mean() == pytest.approx(1, rel=1e-9)
    np.testing.assert_allclose(logits.mean(axis=0), 0, atol=1e-9)
    centered = units - units.mean(axis=0)
    variances = np.linalg.eigvalsh(centered.T @ centered)[::-1][: min(n_bits, 7)]
    lengths = np.linalg.norm(maps.planes, ord=2)
    products = logits.T @ logits / lengths**2
    spectrum = np.linalg.eigvalsh(products)[::-1][: min(n_bits, 7)]
    np.testing.assert_allclose(spectrum, variances, rtol=1e-9)


def test_without_steps_the_maps_stay_where_they_start(units):
    start = start_from_itq(units, 5, np.random.RandomState(0))
    trained = train_maps(units, start, 0.27, 0, np.random.RandomState(0))
    for before, after in zip(start.arrays(), trained.arrays(), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_training_lowers_the_loss(units):
    rng = np.random.RandomState(0)
    start = start_from_itq(units, 12, rng)
    trained = train_maps(units, start, 0.27, 100, rng)
    exact = units @ units.T / 0.1
    np.fill_diagonal(exact, EXCLUDED)

    def lowest_loss(maps):
        return min(
            list_loss(exact, units, units, maps, scale)[0] for scale in np.geomspace(0.01, 10, 50)
        )

    assert lowest_loss(trained) < lowest_loss(start)


def test_the_length_of_a_row_changes_neither_its_bits_nor_its_weights(rng, units):
    hasher = Distilled(9, random_state=0).fit(units)
    lengths = 10.0 ** rng.integers(-200, 200, (len(units), 1))
    np.testing.assert_allclose(hasher.project(lengths * units), hasher.project(units), atol=1e-9)
    again = hasher.project_queries(lengths * units)
    np.testing.assert_allclose(again, hasher.project_queries(units), atol=1e-9)


def test_rows_of_one_direction_are_refused():
    with pytest.raises(InputError, match="X must have rows of different directions"):
        Distilled(2).fit(np.outer([1.0, 2.0, 3.0], [1.0, -1.0]))


def test_a_negative_number_of_steps_is_refused(units):
    with pytest.raises(InputError, match="n_steps must be"):
        Distilled(2, n_steps=-1).fit(units)


def test_a_negative_number_of_groups_is_refused(units):
    with pytest.raises(InputError, match="n_groups must be"):
        Distilled(2, n_groups=-1).fit(units)


@pytest.mark.parametrize("temperature", [0, -1.0, np.inf, np.nan, "warm"])
def test_a_temperature_that_is_not_a_positive_number_is_refused(units, temperature):
    with pytest.raises(InputError, match="temperature must be a positive number, got"):
        Distilled(2, temperature=temperature).fit(units)


def test_of_many_rows_some_are_drawn(monkeypatch, units):
    sizes, train = [], distilled.train_maps
    monkeypatch.setattr(unit_hasher, "MOST_ROWS", 50)
    monkeypatch.setattr(
        distilled, "train_maps", lambda *all_: sizes.append(len(all_[0])) or train(*all_)
    )
    Distilled(4, random_state=0).fit(units)
    assert sizes == [50]


def share_of_nearest(hasher, data):
    """Share of a query's 10 items of largest cosine within its first 50 by real weights."""
    queries, items = scale_to_units(data.query_x), scale_to_units(data.database_x)
    exact = np.argsort(-queries @ items.T, axis=1)[:, :10]
    signs = 2.0 * hasher.encode(data.database_x).bits() - 1
    ranked = np.argsort(-hasher.project_queries(data.query_x) @ signs.T, axis=1)[:, :50]
    return np.mean([np.isin(*pair).mean() for pair in zip(exact, ranked, strict=True)])


def test_real_queries_find_more_of_the_nearest_digits_than_with_itq():
    data = digits()
    share = {
        method: share_of_nearest(method(24, random_state=0).fit(data.database_x), data)
        for method in (ITQ, Distilled)
    }
    assert share[Distilled] > share[ITQ] + 0.01


def test_rows_that_are_drawn_to_groups_rank_what_belongs_together(rng):
    """Groups of rows around centers: cosines of single rows are noisy, groups are not."""
    groups = np.repeat(np.arange(20), 40)
    rows = rng.standard_normal((20, 32))[groups] + 1.5 * rng.standard_normal((800, 32))
    is_query = np.arange(800) % 10 == 0
    precision = {}
    for n_groups in (0, 20):
        hasher = Distilled(24, n_groups=n_groups, n_steps=60, random_state=0)
        hasher.fit(rows[~is_query])
        signs = 2.0 * hasher.encode(rows[~is_query]).bits() - 1
        order = np.argsort(-hasher.project_queries(rows[is_query]) @ signs.T, axis=1)[:, :36]
        is_same = groups[~is_query][order] == groups[is_query][:, None]
        precision[n_groups] = is_same.mean()
    assert precision[20] > precision[0] + 0.03


def test_bits_are_by_descent_from_128_on_unless_a_parameter_of_planes_is_set(rng):
    rows = rng.standard_normal((60, 9))
    kinds = {
        (n_bits, *params.values()): Distilled(n_bits, random_state=0, **params).fit(rows).items_
        for n_bits, params in (
            (127, {"n_steps": None}),
            (128, {"n_steps": None}),
            (128, {"n_steps": 1}),
            (128, {"n_groups": 2}),
            (8, {"items": "descent"}),
        )
    }
    assert list(kinds.values()) == ["planes", "descent", "planes", "planes", "descent"]


def test_a_descent_with_steps_is_refused(units):
    with pytest.raises(InputError, match="items must be 'planes' or 'auto' with n_steps = 0"):
        Distilled(4, items="descent", n_steps=0).fit(units)


def test_what_is_exported_of_a_model_with_groups_gives_its_logits(units):
    torch = pytest.importorskip("torch")
    rows = np.concatenate([units, np.zeros((1, units.shape[1]))])
    for items in ("planes", "descent"):
        hasher = Distilled(9, items=items, n_groups=5, random_state=0).fit(units)
        logits = hasher._torch_module()(torch.tensor(rows)).numpy()
        np.testing.assert_allclose(logits, hasher.project(rows), atol=1e-9)
        weights = hasher._query_torch_module()(torch.tensor(rows)).numpy()
        np.testing.assert_allclose(weights, hasher.project_queries(rows), atol=1e-9)


def restore(n_features, arrays, facts):
    hasher = Distilled(9)
    hasher.n_features_in_ = n_features
    hasher._restore(arrays, facts)


def test_a_model_with_groups_comes_back_and_damage_to_its_groups_is_refused(units, tmp_path):
    hasher = Distilled(9, n_groups=5, random_state=0).fit(units)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert np.array_equal(again.project_queries(units), hasher.project_queries(units))
    arrays, facts = hasher._state()
    for name, value, sentence in (
        ("group_temperature", np.zeros(1), "group_temperature must be positive, got 0.0"),
        ("group_temperature", np.ones(2), r"group_temperature must be finite float64 of shape"),
        ("centers", np.ones((5, 2)), r"centers must be finite float64 of shape"),
    ):
        with pytest.raises(FileFormatError, match=sentence):
            restore(units.shape[1], arrays | {name: value}, facts)
    del arrays["centers"]
    with pytest.raises(FileFormatError, match="must hold the arrays centers, group_temperature"):
        restore(units.shape[1], arrays, facts)


def test_an_unknown_kind_of_bits_is_refused(units):
    with pytest.raises(InputError, match="items must be one of auto, planes, descent; got 'plane'"):
        Distilled(4, items="plane").fit(units)


def test_a_model_by_descent_comes_back_with_the_same_logits(units, tmp_path):
    hasher = Distilled(9, items="descent", random_state=0).fit(units)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert np.array_equal(again.project(units), hasher.project(units))
    assert methods.fingerprint(again) == methods.fingerprint(hasher)


def test_what_is_exported_of_a_descent_gives_its_logits(rng, units):
    torch = pytest.importorskip("torch")
    hasher = Distilled(9, items="descent", random_state=0).fit(units)
    rows = (units * rng.uniform(0.1, 10, (len(units), 1))).astype(np.float32)
    logits = hasher._torch_module()(torch.tensor(rows)).numpy()
    np.testing.assert_allclose(logits, hasher.project(rows), atol=1e-9)


def test_an_onnx_file_of_a_descent_gives_its_codes(units, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    hasher = Distilled(9, items="descent", random_state=0).fit(units)
    methods.export_onnx(hasher, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    rows = units.astype(np.float32)
    (codes,) = session.run(["codes"], {"x": rows})
    assert np.array_equal(codes, hasher.transform(rows))


def test_a_model_from_before_there_were_two_kinds_has_planes(units):
    hasher = Distilled(5, n_steps=2, random_state=0).fit(units)
    arrays, _ = hasher._state()
    older = clone(hasher)
    older.n_features_in_ = 7
    older._restore({name: array for name, array in arrays.items() if name != "mean"}, {})
    assert np.array_equal(older.project(units), hasher.project(units))


def test_a_model_of_an_unknown_kind_is_refused(units):
    hasher = Distilled(5, n_steps=2, random_state=0).fit(units)
    with pytest.raises(FileFormatError, match="items must be 'planes' or 'descent', got 'trees'"):
        hasher._restore(hasher._state()[0], {"items": "trees"})


def test_descent_serves_queries_that_resemble_no_item_better_than_planes_do(rng):
    """Items near a plane of few directions, queries of any direction."""
    items = rng.standard_normal((1500, 24)) * np.geomspace(1, 0.2, 24)
    queries = scale_to_units(rng.standard_normal((200, 24)))
    exact = np.argsort(-queries @ scale_to_units(items).T, axis=1)[:, :10]
    share = {}
    for kind in ("planes", "descent"):
        hasher = Distilled(64, items=kind, random_state=0).fit(items)
        signs = 2.0 * hasher.encode(items).bits() - 1
        ranked = np.argsort(-hasher.project_queries(queries) @ signs.T, axis=1)[:, :10]
        share[kind] = np.mean([np.isin(*pair).mean() for pair in zip(exact, ranked, strict=True)])
    assert share["descent"] > share["planes"] + 0.05
