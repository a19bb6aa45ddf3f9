"""RaBitQ: corrected scores are unbiased, and rank as well as those of faiss."""

import numpy as np
import pytest

from rankbits import methods
from rankbits.errors import FileFormatError, InputError

faiss = pytest.importorskip("faiss")


def corrected_scores(hasher, queries, items):
    """Scores of all pairs as the two bytes of each item correct them."""
    signs = 2.0 * hasher.encode(items).bits() - 1
    norms, factors = hasher.factors(items).T
    norm_scales, factor_scales, added = hasher.correction()
    scores = hasher.project_queries(queries) @ signs.T
    return scores * norm_scales[norms] * factor_scales[factors] + added[norms]


def correlated_rows(rng, n, d):
    mixing = rng.standard_normal((d, d)) / np.sqrt(1 + np.arange(d))[:, None]
    return (rng.standard_normal((2, n, d)) @ mixing + 0.3).astype(np.float32)


@pytest.mark.parametrize(("n_bits", "d"), [(24, 24), (40, 24)])
@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_the_mean_over_rotations_is_the_score_itself(rng, metric, n_bits, d):
    items, queries = rng.standard_normal((2, 60, d)) + 0.5
    queries, n_rotations = queries[:3], 400
    estimates = np.array(
        [
            corrected_scores(
                methods.get("rabitq", n_bits=n_bits, metric=metric, random_state=seed).fit(items),
                queries,
                items,
            )
            for seed in range(n_rotations)
        ]
    )
    center = items.mean(axis=0)
    if metric == "ip":
        truth = queries @ (items - center).T
    else:
        squares = np.square(queries[:, None] - items).sum(axis=2)
        truth = (np.square(queries - center).sum(axis=1)[:, None] - squares) / 2
    errors = estimates.std(axis=0) / np.sqrt(n_rotations)
    deviations = (estimates.mean(axis=0) - truth) / errors
    assert np.abs(deviations).max() < 5  # 180 means: 4.5 would be one chance in a thousand
    assert np.square(deviations).mean() < 1.5
    uncorrected = np.sqrt(2 / np.pi)  # what signs alone would lose of every product
    assert (np.abs(truth) * (1 - uncorrected) / errors).max() > 10


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_the_nearest_are_found_about_as_often_as_by_faiss(rng, metric):
    items, queries = correlated_rows(rng, 4000, 64)
    queries = queries[:100]
    faiss_metric = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexPreTransform(
        faiss.RandomRotationMatrix(64, 64), faiss.IndexRaBitQ(64, faiss_metric)
    )
    index.train(items)
    index.add(items)
    exact = queries @ items.T
    if metric == "l2":
        exact = exact - np.square(items).sum(axis=1) / 2
    nearest = np.argsort(-exact, axis=1)[:, :10]

    def recall(ids):
        return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, nearest, strict=True)])

    hasher = methods.get("rabitq", n_bits=64, metric=metric, random_state=0).fit(items)
    scores = corrected_scores(hasher, queries, items)
    ours = recall(np.argsort(-scores, axis=1)[:, :100])
    assert ours > 0.85
    assert ours > recall(index.search(queries, 100)[1]) - 0.04
    plain = hasher.project_queries(queries) @ (2.0 * hasher.encode(items).bits() - 1).T
    assert ours > recall(np.argsort(-plain, axis=1)[:, :100]) + 0.05


def test_planes_keep_inner_products_or_those_of_the_principal_directions(rng):
    x = rng.standard_normal((50, 12)) * np.arange(1, 13)
    centered = x - x.mean(axis=0)
    for n_bits in (12, 30):
        r = methods.get("rabitq", n_bits=n_bits, random_state=1).fit(x).project(x)
        np.testing.assert_allclose(r @ r.T, centered @ centered.T, atol=1e-9)
    r = methods.get("rabitq", n_bits=5, random_state=1).fit(x).project(x)
    left, lengths, _ = np.linalg.svd(centered, full_matrices=False)
    parts = left[:, :5] * lengths[:5]
    np.testing.assert_allclose(r @ r.T, parts @ parts.T, atol=1e-8)


def test_bytes_stand_for_norms_and_factors_to_half_a_step(rng):
    x = rng.standard_normal((80, 10))
    hasher = methods.get("rabitq", n_bits=10, random_state=0).fit(x)
    r = hasher.project(x)
    norms = np.linalg.norm(r, axis=1)
    cosines = (r * np.sign(r)).sum(axis=1) / norms / np.sqrt(10)
    norm_bytes, factor_bytes = hasher.factors(x).T
    norm_scales, factor_scales, added = hasher.correction()
    step = (norms.max() - norms.min()) / 255
    np.testing.assert_allclose(
        norm_scales[norm_bytes] * np.sqrt(10), norms, atol=step / 2 * 1.001, rtol=0
    )
    np.testing.assert_allclose(added, -np.square(norm_scales * np.sqrt(10)) / 2)
    step = (cosines.max() - cosines.min()) / 255
    np.testing.assert_allclose(
        1 / factor_scales[factor_bytes], cosines, atol=step / 2 * 1.001, rtol=0
    )
    beyond = hasher.factors(np.vstack([hasher.mean_, 100 * x[:1]]))
    assert (beyond[0, 0], beyond[1, 0]) == (0, 255)


def test_queries_of_inner_products_are_not_centered(rng):
    x = rng.standard_normal((30, 6)) + 3
    hasher = methods.get("rabitq", n_bits=6, metric="ip", random_state=0).fit(x)
    np.testing.assert_allclose(hasher.project_queries(x), x @ hasher.planes_)
    assert (hasher.encode(x).side, hasher.encode_queries(x).side) == ("items", "queries")
    assert methods.get("rabitq", n_bits=6, random_state=0).fit(x).encode(x).side is None


def test_an_unknown_metric_is_refused(rng):
    with pytest.raises(InputError, match="metric must be"):
        methods.get("rabitq", n_bits=4, metric="cosine").fit(rng.standard_normal((9, 4)))


@pytest.mark.parametrize(
    ("name", "ends"),
    [("norm_range", [1.0, 2.0, 3.0]), ("norm_range", [2.0, 1.0]), ("factor_range", [0.0, 1.0])],
)
def test_ranges_that_cannot_be_are_refused(rng, name, ends):
    hasher = methods.get("rabitq", n_bits=4, random_state=0).fit(rng.standard_normal((9, 4)))
    arrays, facts = hasher._state()
    sizes = {"norm_range": arrays["norm_range"], "factor_range": arrays["factor_range"]}
    if len(ends) == 3:
        sizes = dict.fromkeys(sizes, np.array(ends))
    with pytest.raises(FileFormatError, match=f"the model's {name} must be"):
        hasher._restore({**arrays, **sizes, name: np.array(ends)}, facts)
