"""Relaxed AP and NDCG against the hard metrics, a dense reference, gradcheck and mpmath."""

from itertools import product

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rankbits
from oracles import objectives as dense
from rankbits import _native, objectives
from rankbits.errors import InputError

FORMS = [("relaxed_ap", name) for name in objectives.RELAXATIONS] + [
    ("relaxed_ndcg", name) for name in objectives.RELAXATIONS if name != "cvpr"
]
WELL_CONDITIONED = [form for form in FORMS if form[1] in ("exact", "simplified")]


def batch(n=40, n_bits=8, n_classes=5, seed=0, dtype=torch.float64, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, n_bits, generator=generator, dtype=dtype)
    labels = torch.randint(0, n_classes, (n,), generator=generator)
    grades = torch.randint(1, 4, (n, n), generator=generator)
    return logits, (labels[:, None] == labels) * grades


def value_and_gradient(function, logits, levels, *args, **how):
    logits = logits.clone().requires_grad_()
    values = function(torch.tanh(logits), levels, *args, **how)
    objectives.mean_over_queries(values).backward()
    return values.detach().double(), logits.grad.double()


def assert_close(found, wanted, tolerance):
    (values, gradient), (wanted_values, wanted_gradient) = found, wanted
    assert torch.equal(values.isnan(), wanted_values.isnan())
    error = (values - wanted_values).nan_to_num().abs()
    assert error.max() <= tolerance * wanted_values.nan_to_num().abs().max()
    assert (gradient - wanted_gradient).norm() <= tolerance * (wanted_gradient.norm() + 0.01)


@given(st.data(), st.integers(2, 24), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_at_hard_codes_the_exact_forms_are_the_tie_aware_metrics(data, n, n_bits):
    seed = data.draw(st.integers(0, 10**6))
    logits, levels = batch(n, n_bits, n_classes=3, seed=seed)
    codes = rankbits.BinaryCodes.from_logits(logits.numpy())
    hist = rankbits.count_ties(
        codes, codes, rankbits.affinity.levels(levels.numpy()), exclude_self=True
    )
    phi = torch.where(logits > 0, 1.0, -1.0).double()
    for relaxed, metric in (
        (objectives.relaxed_ap, rankbits.metrics.average_precision),
        (objectives.relaxed_ndcg, rankbits.metrics.ndcg),
    ):
        np.testing.assert_allclose(relaxed(phi, levels).numpy(), metric(hist), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "relaxation"), FORMS)
@pytest.mark.parametrize("dispatch", _native.dispatch_levels())
def test_native_equals_the_dense_reference_in_double(name, relaxation, dispatch):
    for n, n_bits, n_bins in ((40, 8, None), (97, 48, None), (60, 32, 16)):
        logits, levels = batch(n, n_bits)
        wanted = value_and_gradient(getattr(dense, name), logits, levels, relaxation, n_bins)
        with _native.dispatched(dispatch):
            found = value_and_gradient(
                getattr(objectives, name), logits, levels, relaxation, n_bins
            )
        assert_close(found, wanted, 1e-12)


@pytest.mark.parametrize(("name", "relaxation"), WELL_CONDITIONED)
@pytest.mark.parametrize("dispatch", _native.dispatch_levels())
@pytest.mark.parametrize("n", [1, 2, 5, 47, 48, 54, 97])
def test_native_equals_the_dense_reference_in_single_precision(name, relaxation, dispatch, n):
    for n_bits, n_bins in ((12, None), (33, 16), (1, None)):
        logits, levels = batch(n, n_bits, dtype=torch.float32)
        wanted = value_and_gradient(
            getattr(dense, name), logits.double(), levels, relaxation, n_bins
        )
        with _native.dispatched(dispatch):
            found = value_and_gradient(
                getattr(objectives, name), logits, levels, relaxation, n_bins
            )
        assert_close(found, wanted, 1e-5)


@pytest.mark.parametrize(("name", "relaxation"), FORMS)
def test_the_printed_forms_in_single_precision_are_as_good_as_their_poles_let_them(
    name, relaxation
):
    logits, levels = batch(97, 48, dtype=torch.float32)
    wanted = value_and_gradient(getattr(dense, name), logits.double(), levels, relaxation)
    found = value_and_gradient(getattr(objectives, name), logits, levels, relaxation)
    assert_close(found, wanted, 2e-4)


@pytest.mark.parametrize(("name", "relaxation"), WELL_CONDITIONED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_queries_against_a_gallery_equal_the_dense_reference(name, relaxation, dtype):
    generator = torch.Generator().manual_seed(3)
    for n, n_items in ((7, 90), (100, 61), (50, 48)):
        logits, _ = batch(n, 20, seed=1, dtype=dtype)
        others, _ = batch(n_items, 20, seed=2, dtype=dtype)
        levels = torch.randint(0, 4, (n, n_items), generator=generator)
        own = torch.randint(-1, n_items, (n,), generator=generator)
        tolerance = 1e-5 if dtype == torch.float32 else 1e-12
        results = []
        for module, precision in ((objectives, dtype), (dense, torch.float64)):
            mine = logits.detach().clone().to(precision).requires_grad_()
            theirs = others.detach().clone().to(precision).requires_grad_()
            values = getattr(module, name)(
                torch.tanh(mine), levels, relaxation, gallery=torch.tanh(theirs), own=own
            )
            objectives.mean_over_queries(values).backward()
            results.append((values.detach().double(), mine.grad.double(), theirs.grad.double()))
        (values, mine, theirs), (wanted, wanted_mine, wanted_theirs) = results
        assert_close((values, mine), (wanted, wanted_mine), tolerance)
        assert_close((values, theirs), (wanted, wanted_theirs), tolerance)


@pytest.mark.parametrize(("name", "relaxation"), FORMS)
def test_gradcheck_passes_away_from_kinks(name, relaxation):
    logits, levels = batch(12, 6, n_classes=3, seed=5)
    phi = torch.tanh(logits).requires_grad_()
    function = getattr(objectives, name)
    levels[0] = torch.cat([torch.zeros(1, dtype=torch.long), levels[0, 1:].clamp(min=1)])
    assert torch.autograd.gradcheck(
        lambda codes: objectives.mean_over_queries(function(codes, levels, relaxation)), (phi,)
    )


@pytest.mark.parametrize(("name", "relaxation"), FORMS)
def test_gradcheck_passes_where_a_tie_holds_exactly_one_item(name, relaxation):
    # Query 0 sees items at distances .4 and 1.4: bin 1 holds .4 + .6.
    phi = torch.tensor([[0.9, 0.9], [2 / 3, 2 / 3], [-4 / 9, -4 / 9]], dtype=torch.float64)
    levels = torch.tensor([[0, 1, 2], [1, 0, 0], [1, 1, 0]])
    counts = objectives.soft_ties(phi, levels)
    assert counts[0].sum(1).tolist() == pytest.approx([0.6, 1.0, 0.4], abs=1e-15)
    function = getattr(objectives, name)
    assert torch.autograd.gradcheck(
        lambda codes: function(codes, levels, relaxation)[0], (phi.requires_grad_(),)
    )


def exact_ap_of(c, p):
    """The closed form with mpmath's harmonic numbers and 90 digits, limits by a tiny step."""
    total, N, P = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
    for c_d, p_d in zip(c, p, strict=True):
        c_d += mpmath.mpf("1e-40")  # off the removable poles
        span = mpmath.harmonic(N + c_d) - mpmath.harmonic(N)
        K = (c_d - (N + 1) * span) / (c_d - 1)
        total += p_d / c_d * ((P + 1) * span + (p_d - 1) * K)
        N, P = N + c_d, P + p_d
    return total


@pytest.mark.parametrize(
    "c",
    [
        [1.0, 1.0, 3.0],
        [1 + 1e-9, 0.0, 1 - 1e-7, 2.5],
        [1e-12, 0.3, 1e-6, 1.02, 40.0],
        [0.0, 1e-3, 0.019, 0.5, 0.4999999, 700.25],
        [2000.0, 1.0, 19.0, 41.0, 0.01],
    ],
)
@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize("dispatch", _native.dispatch_levels())
def test_exact_ap_and_its_gradient_agree_with_ninety_digits_on_both_sides_of_the_poles(
    c, share, dispatch
):
    p = [x * share for x in c]
    counts = np.array([[[x - y, y] for x, y in zip(c, p, strict=True)]])
    of_level = np.array([[1, 1]], np.int64)
    values, grads = np.empty(1), np.empty_like(counts)
    with _native.dispatched(dispatch):
        _native.ap_of_counts(counts, of_level, 0, values, grads)
    with mpmath.workdps(90):
        c = [mpmath.mpf(float(x)) for x in counts[0].sum(1)]
        p = [mpmath.mpf(float(x)) for x in counts[0, :, 1]]
        assert values[0] == pytest.approx(float(exact_ap_of(c, p)), rel=1e-12)
        for d in range(len(c)):
            for level in (0, 1):
                step = mpmath.mpf("1e-15")
                up, down = list(c), list(c)
                up[d], down[d] = up[d] + step, down[d] - step
                p_up, p_down = list(p), list(p)
                p_up[d], p_down[d] = p_up[d] + level * step, p_down[d] - level * step
                slope = (exact_ap_of(up, p_up) - exact_ap_of(down, p_down)) / (2 * step)
                size = max(1.0, abs(float(slope)))
                assert grads[0, d, level] == pytest.approx(float(slope), abs=3e-10 * size)


def test_polygammas_agree_with_mpmath():
    x = np.concatenate([np.linspace(1, 30, 59), np.logspace(1.5, 6, 21)])
    for dispatch in _native.dispatch_levels():
        out = np.empty((5, len(x) + 8))
        with _native.dispatched(dispatch):
            _native.polygammas(np.concatenate([x, np.ones(3)])[: len(x)], out)
        for order in range(5):
            wanted = [float(mpmath.psi(order, value)) for value in x]
            np.testing.assert_allclose(out[order, : len(x)], wanted, rtol=3e-14, atol=5e-15)


def test_threads_change_the_last_digits_at_most():
    logits, levels = batch(600, 24, dtype=torch.float32)
    before = torch.get_num_threads()
    results = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        results.append(value_and_gradient(objectives.relaxed_ap, logits, levels))
    torch.set_num_threads(before)
    for found in results[1:]:
        assert torch.equal(found[0], results[0][0])  # integers add up in any order
        assert_close(found, results[0], 1e-6)


def test_a_query_without_positives_is_nan_and_leaves_the_mean():
    phi = torch.tanh(torch.randn(4, 3, dtype=torch.float64)).requires_grad_()
    levels = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    for function in (objectives.relaxed_ap, objectives.relaxed_ndcg):
        values = function(phi, levels)
        assert values.isnan().tolist() == [False, False, True, True]
        mean = objectives.mean_over_queries(values)
        assert mean.item() == pytest.approx(values[:2].mean().item())
        mean.backward()
        assert phi.grad.isfinite().all()
        nothing = objectives.mean_over_queries(function(phi, torch.zeros(4, 4, dtype=torch.long)))
        assert nothing.item() == 0.0
        nothing.backward()


def test_a_second_derivative_is_refused():
    phi = torch.tanh(torch.randn(5, 3, dtype=torch.float64)).requires_grad_()
    value = objectives.relaxed_ap(phi, torch.ones(5, 5, dtype=torch.long)).sum()
    with pytest.raises(RuntimeError, match="differentiable once"):
        torch.autograd.grad(value, phi, create_graph=True)


def test_half_precision_codes_are_computed_in_single_and_come_back_as_they_were():
    logits, levels = batch(20, 8, dtype=torch.float32)
    phi = torch.tanh(logits).to(torch.bfloat16).requires_grad_()
    values = objectives.relaxed_ap(phi, levels)
    values.sum().backward()
    assert values.dtype == phi.grad.dtype == torch.bfloat16
    wanted = objectives.relaxed_ap(phi.detach().float(), levels)
    assert torch.allclose(values.float(), wanted, atol=1e-2)


def test_levels_of_ten_have_the_gain_of_ten_not_of_seven_bits():
    logits, levels = batch(30, 6)
    levels = torch.where(levels == 3, 10, levels)
    phi = torch.where(logits > 0, 1.0, -1.0).double()
    codes = rankbits.BinaryCodes.from_logits(logits.numpy())
    hist = rankbits.count_ties(
        codes, codes, rankbits.affinity.levels(levels.numpy()), exclude_self=True
    )
    np.testing.assert_allclose(
        objectives.relaxed_ndcg(phi, levels).numpy(), rankbits.metrics.ndcg(hist), atol=1e-10
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"phi": torch.zeros(3)}, "phi must be a floating tensor"),
        ({"phi": torch.zeros(3, 2, dtype=torch.long)}, "phi must be a floating tensor"),
        ({"phi": np.zeros((3, 2))}, "phi must be a floating tensor"),
        ({"phi": torch.zeros(0, 2)}, "phi must not be empty"),
        ({"phi": torch.full((3, 2), 1.5)}, r"phi must lie in \[-1, 1\]"),
        ({"phi": torch.full((3, 2), float("nan"))}, r"phi must lie in \[-1, 1\]"),
        ({"levels": torch.zeros(3, 2, dtype=torch.long)}, r"levels must have shape \(3, 3\)"),
        ({"levels": torch.zeros(3, 3)}, "levels must be an integer tensor"),
        ({"levels": -torch.ones(3, 3, dtype=torch.long)}, "levels must not be negative"),
        ({"relaxation": "exakt"}, "did you mean 'exact'"),
        ({"n_bins": 0}, "n_bins must be an integer"),
        ({"delta": 0.0}, "delta must be a positive number"),
        ({"gallery": torch.zeros(4, 5)}, "gallery must have the 2 bits of phi"),
        ({"own": torch.zeros(3, dtype=torch.long)}, "own must be None without a gallery"),
    ],
)
def test_bad_input_is_named(arguments, message):
    given_arguments = {"phi": torch.zeros(3, 2), "levels": torch.zeros(3, 3, dtype=torch.long)}
    with pytest.raises(InputError, match=message):
        objectives.relaxed_ap(**{**given_arguments, **arguments})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [1.001, -1.001, float("nan"), float("-inf")])
@pytest.mark.parametrize("place", [0, 500, 1001])
def test_one_code_outside_the_range_is_refused_wherever_it_is(dtype, value, place):
    phi = torch.ones(77, 13, dtype=dtype)
    phi.view(-1)[place % phi.numel()] = value
    with pytest.raises(InputError, match=r"phi must lie in \[-1, 1\]"):
        objectives.relaxed_ap(phi, torch.eye(77, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("pair", [(0, 1), (70, 3), (3, 70), (76, 76)])
def test_one_negative_level_is_refused_wherever_it_is(dtype, pair):
    levels = torch.ones(77, 77, dtype=dtype)
    levels[pair] = torch.iinfo(dtype).min
    with pytest.raises(InputError, match="levels must not be negative"):
        objectives.relaxed_ap(torch.zeros(77, 5), levels)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_a_level_of_any_size_is_relevant(dtype):
    phi, levels = batch(77, 12, dtype=torch.float32)
    relevant = levels > 0
    for level in (255, 256, 1 << 14, torch.iinfo(dtype).max // 2 + 1, torch.iinfo(dtype).max):
        high = torch.where(relevant, level, 0).to(dtype)
        assert torch.equal(
            objectives.relaxed_ap(torch.tanh(phi), high),
            objectives.relaxed_ap(torch.tanh(phi), relevant),
        )


def test_levels_too_high_for_their_gains_are_refused():
    with pytest.raises(InputError, match="levels must be at most 50"):
        objectives.relaxed_ndcg(torch.zeros(2, 2), torch.full((2, 2), 60))
    with pytest.raises(InputError, match="relaxation must be one of"):
        objectives.relaxed_ndcg(torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.long), "cvpr")


def scores_on_the_grid(seed, n=14, k=40, n_bits=6):
    """Real weights w and ±1 codes g whose scores <w, g> are whole, b - 2d with whole d."""
    rng = np.random.default_rng(seed)
    g = torch.from_numpy(rng.choice([-1.0, 1.0], (k, n_bits)))
    # Pairs of weights (t, 1 - t) count 1 together or 2t - 1 apart, so t = 0, 1/2, 1 are the cases.
    w = torch.zeros(n, n_bits, dtype=torch.float64)
    for row in w:
        signs = torch.from_numpy(rng.choice([-1.0, 1.0], n_bits))
        row[:] = signs * torch.from_numpy(rng.integers(0, 2, n_bits).astype(np.float64))
        if int(row.abs().sum()) % 2 != n_bits % 2:  # the parity of b - 2d
            row[0] = 1 - row[0].abs()
    levels = torch.from_numpy(rng.integers(0, 3, (n, k)))
    return w, g, levels


@pytest.mark.parametrize("seed", range(8))
def test_real_queries_whose_scores_lie_on_the_grid_have_the_metric_of_their_ranking(seed):
    w, g, levels = scores_on_the_grid(seed)
    n_bits = w.shape[1]
    distances = ((n_bits - w @ g.T) / 2).numpy()
    assert np.array_equal(distances, distances.round())
    assert not np.isin(w.abs().numpy(), [1.0]).all()
    counts = np.zeros((len(w), n_bits + 1, 3), np.int64)
    for query, item in np.ndindex(*distances.shape):
        counts[query, int(distances[query, item]), int(levels[query, item])] += 1
    hist = rankbits.TieHistogram(counts, np.arange(3))
    for relaxed, metric in (
        (objectives.relaxed_ap, rankbits.metrics.average_precision),
        (objectives.relaxed_ndcg, rankbits.metrics.ndcg),
    ):
        np.testing.assert_allclose(relaxed(w, levels, gallery=g), metric(hist), rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", WELL_CONDITIONED)
def test_the_gradient_of_real_queries_and_of_their_items_is_that_of_the_dense_reference(form):
    name, relaxation = form
    generator = torch.Generator().manual_seed(2)
    inputs = [torch.randn(n, 7, generator=generator, dtype=torch.float64) for n in (9, 31)]
    levels = torch.randint(0, 3, (9, 31), generator=generator)

    def gradients(module, n_bins):
        queries, items = (tensor.clone().requires_grad_() for tensor in inputs)
        values = getattr(module, name)(
            torch.tanh(queries), levels, relaxation, n_bins, gallery=torch.tanh(8 * items)
        )
        values.nanmean().backward()
        return values.detach(), queries.grad, items.grad

    for n_bins in (None, 3, 16):
        for ours, plain in zip(
            gradients(objectives, n_bins), gradients(dense, n_bins), strict=True
        ):
            torch.testing.assert_close(ours, plain, rtol=1e-7, atol=1e-9)


CHANCES = (0.0, 0.25, 0.5, 1.0)  # of levels 0 to 3


@pytest.mark.parametrize("relaxation", objectives.RELAXATIONS)
@pytest.mark.parametrize("dispatch", _native.dispatch_levels())
def test_expected_relevance_equals_the_dense_reference(relaxation, dispatch):
    for n, n_bits, n_bins in ((40, 8, None), (97, 48, 24)):
        logits, levels = batch(n, n_bits)
        how = {"relevance": CHANCES}
        expected = value_and_gradient(dense.relaxed_ap, logits, levels, relaxation, n_bins, **how)
        with _native.dispatched(dispatch):
            computed = value_and_gradient(
                objectives.relaxed_ap, logits, levels, relaxation, n_bins, **how
            )
        assert_close(computed, expected, 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_expected_relevance_is_the_mean_over_all_labels_weighted_by_their_chances(seed):
    logits, levels = batch(8, 3, n_classes=2, seed=seed)
    phi = torch.where(logits > 0, 1.0, -1.0).double()
    chances = torch.tensor(CHANCES).double()[levels[0, 1:]]
    total = 0.0  # of AP times the number of relevant items, which is what the ties add up to
    for labels in product([0, 1], repeat=7):
        drawn = torch.zeros(8, 8, dtype=torch.long)
        drawn[0, 1:] = torch.tensor(labels)
        if any(labels):
            ap = objectives.relaxed_ap(phi, drawn)[0].item()
            chance = torch.where(drawn[0, 1:] > 0, chances, 1 - chances).prod().item()
            total += chance * ap * sum(labels)
    value = objectives.relaxed_ap(phi, levels, relevance=CHANCES)[0].item()
    assert value == pytest.approx(total / max(chances.sum().item(), 1.0), abs=1e-10)


def test_a_query_that_expects_less_than_one_relevant_item_counts_by_what_it_expects():
    phi = torch.tensor([[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    levels = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    for chance in (1.0, 0.25):
        values = objectives.relaxed_ap(phi, levels, relevance=(0, chance))
        assert values[:2].tolist() == pytest.approx([chance, chance])
        assert values[2].isnan()


@pytest.mark.parametrize("relevance", [(), (0.0, 1.5), (-0.1, 1.0), (0.0, np.nan), [[0.0, 1.0]]])
def test_relevance_that_is_no_chance_is_refused(relevance):
    with pytest.raises(InputError, match="relevance must be 1 to 256 chances from 0 to 1"):
        objectives.relaxed_ap(
            torch.zeros(3, 2), torch.eye(3, dtype=torch.long), relevance=relevance
        )
