"""Losses with two maps: where the maps coincide, value and gradient are those of one map."""

import numpy as np
import pytest
import torch

from rankbits import methods
from rankbits.methods import registry
from rankbits.methods.deep.pairs import select_bits
from rankbits.methods.supervision import supervise
from rankbits.methods.training.batches import Batch, RowLoss, compute_loss

GRADIENT = [name for name in methods.names() if registry.METHODS[name].needs_torch]
PENALTIES = {"dpsh": {"eta": 0.3}, "dtsh": {"eta": 0.3}, "csq": {"quantization": 0.3}}
N, N_BITS = 24, 9


def labels_of(kind):
    rng = np.random.default_rng(3)
    if kind == "classes":
        return rng.integers(0, 4, N)
    return (rng.random((N, 5)) < 0.4).astype(np.uint8)


def build(name, y, **params):
    """The loss of a method, the batch of all rows, and their logits in double precision."""
    hasher = methods.get(name, n_bits=N_BITS, **PENALTIES.get(name, {}), **params)
    supervision = supervise(np.zeros((N, 2)), y, graded=hasher._grades_tags)
    rows = np.arange(N)
    classes, tags = supervision.classes, supervision.tags
    batch = Batch(
        rows=rows,
        levels=torch.from_numpy(supervision.levels(rows, rows)),
        alpha=1.7,
        classes=None if classes is None else torch.from_numpy(classes),
        tags=None if tags is None else torch.from_numpy(tags),
    )
    logits = torch.from_numpy(np.random.default_rng(5).standard_normal((N, N_BITS)))
    return hasher._build_loss(supervision), batch, logits


def with_items(batch, items, *, has_real_queries=False):
    """The batch of queries that rank the same rows as items, encoded by a map of their own."""
    return Batch(
        rows=batch.rows,
        levels=batch.levels,
        alpha=batch.alpha,
        classes=batch.classes,
        tags=batch.tags,
        gallery=items,
        own=torch.arange(N),
        trains_gallery=True,
        has_real_queries=has_real_queries,
        item_rows=batch.rows,
        item_classes=batch.classes,
        item_tags=batch.tags,
    )


@pytest.mark.parametrize("kind", ["classes", "tags"])
@pytest.mark.parametrize("name", GRADIENT)
def test_two_maps_that_coincide_have_the_loss_and_gradient_of_one(name, kind):
    loss, batch, logits = build(name, labels_of(kind))
    one = logits.clone().requires_grad_()
    value = loss(one, batch)
    value.backward()
    queries, items = (logits.clone().requires_grad_() for _ in range(2))
    apart = compute_loss(loss, queries, items, with_items(batch, items))
    apart.backward()
    assert apart.item() == pytest.approx(value.item(), rel=1e-9)
    assert queries.grad.abs().max() > 0
    assert items.grad.abs().max() > 0
    torch.testing.assert_close(queries.grad + items.grad, one.grad, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("has_real_queries", [False, True])
@pytest.mark.parametrize("name", GRADIENT)
def test_the_gradients_of_both_sides_are_those_of_finite_differences(name, has_real_queries):
    if name == "greedyhash":
        pytest.skip("its gradient passes straight through signs, by definition")
    loss, batch, logits = build(name, labels_of("classes"))
    queries, items = logits[:, :].clone(), -logits.flip(0).clone()

    def value(moved_queries, moved_items):
        step = with_items(batch, moved_items, has_real_queries=has_real_queries)
        return compute_loss(loss, moved_queries, moved_items, step)

    inputs = [queries.requires_grad_(), items.requires_grad_()]
    value(*inputs).backward()
    rng = np.random.default_rng(0)
    for tensor in inputs:
        direction = torch.from_numpy(rng.standard_normal(tensor.shape))
        h = 1e-6
        ends = []
        for sign in (1, -1):
            moved = [t.detach() + (sign * h * direction if t is tensor else 0) for t in inputs]
            ends.append(value(*moved).item())
        slope = (ends[0] - ends[1]) / (2 * h)
        assert (tensor.grad * direction).sum().item() == pytest.approx(slope, rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in GRADIENT if name not in ("dsh", "dpn")])
def test_real_valued_queries_have_a_slope_that_does_not_rise(name):
    loss, batch, logits = build(name, labels_of("classes"))
    if name == "orthohash":
        return  # a cosine has no slope
    values = []
    for alpha in (1.0, 16.0):
        bits = 1e3 * torch.where(logits > 0, 1.0, -1.0).double()  # whatever the slope
        moved = with_items(batch, bits, has_real_queries=True)
        moved = Batch(**{**vars(moved), "alpha": alpha})
        values.append(loss(0.1 * logits, moved).item())
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_what_becomes_bits_is_penalized_and_nothing_else():
    u, others = torch.zeros(2, 3), torch.ones(4, 3)
    step = {"rows": np.arange(2), "levels": torch.zeros(2, 4), "alpha": 1.0}
    assert select_bits(u, others, Batch(**step, gallery=others)) is u
    own = Batch(**step, gallery=others, trains_gallery=True)
    assert torch.equal(select_bits(u, others, own), torch.cat([u, others]))
    real = Batch(**step, gallery=others, trains_gallery=True, has_real_queries=True)
    assert select_bits(u, others, real) is others


def test_losses_of_centers_look_at_rows_alone():
    rowwise = {
        name for name in GRADIENT if isinstance(build(name, labels_of("classes"))[0], RowLoss)
    }
    assert rowwise == {"csq", "orthohash", "dpn", "greedyhash"}
