"""Class posteriors in front of the bits: folds, temperature, drawn labels, and the whole."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from torch import nn

import rankbits
from rankbits import methods
from rankbits.errors import InputError
from rankbits.methods.supervision import N_CHANCES
from rankbits.methods.training import classifiers, run, sample_pool
from rankbits.methods.training import posterior as stage
from rankbits.methods.training.batches import Batch
from rankbits.methods.training.layers import ClassPosterior, class_beliefs, scale_to_one_norm
from rankbits.methods.training.posterior_cache import PosteriorCache

X, Y = make_blobs(700, 12, centers=5, cluster_std=6.0, random_state=0)
QUICK = {"n_bits": 16, "epochs": 2, "n_threads": 1, "random_state": 0}


pytestmark = pytest.mark.usefixtures("short_posterior")


@pytest.fixture(scope="module")
def fitted():
    return methods.get("talr-ap", **QUICK).fit(X, Y)


def test_beliefs_are_log_probabilities_with_a_floor_and_probabilities():
    found = class_beliefs(torch.tensor([[0.0, 0.0], [100.0, 0.0]]))
    half = np.log(0.5)
    assert found[0].tolist() == pytest.approx([half, half, 0.5, 0.5])
    assert found[1].tolist() == pytest.approx([0.0, -8.0, 1.0, np.exp(-8.0)], abs=1e-6)


def test_rows_of_one_norm_have_mean_square_one_and_zero_stays_zero():
    rows = scale_to_one_norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    assert (rows**2).mean(1).tolist() == pytest.approx([1.0, 0.0])


def test_a_member_never_learns_from_the_rows_that_are_kept_from_it():
    is_unseen = np.array([[True, False], [True, False], [False, True], [False, False]])
    logits = torch.zeros(4, 2, 3, requires_grad=True)
    batch, classes = Batch(np.arange(4), torch.zeros(4, 4), 1.0), np.array([0, 1, 2, 0])
    classifiers.ClassifiersLoss(classes, is_unseen)(logits, batch).backward()
    touched = logits.grad.abs().sum(2) > 0
    assert touched.tolist() == [[False, True], [False, True], [True, False], [True, True]]


def test_a_tenth_of_the_rows_is_kept_from_each_member_and_none_from_two():
    is_unseen = classifiers.draw_unseen(103, 10, seed=1)
    assert is_unseen.sum(0).tolist() == [11] * 3 + [10] * 7
    assert is_unseen.sum(1).tolist() == [1] * 103


def test_more_classifiers_than_tenths_still_have_rows_kept_from_each():
    is_unseen = classifiers.draw_unseen(97, 12, seed=1)
    assert set(is_unseen.sum(axis=0).tolist()) <= {9, 10}
    assert np.array_equal(is_unseen[:, 10:], is_unseen[:, :2])


def test_classifiers_are_as_wide_as_a_quarter_of_the_rows_within_bounds():
    assert [stage.choose_width(n) for n in (20, 1000, 5000, 10**6)] == [128, 256, 1024, 1024]


def test_the_factor_of_overconfident_logits_is_found():
    generator = torch.Generator().manual_seed(0)
    honest = torch.randn(20000, 4, generator=generator) * 2
    classes = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    factor, loss = classifiers.choose_factor(honest / 0.6, classes)
    assert factor == pytest.approx(0.6, abs=0.04)
    wanted = nn.functional.cross_entropy(honest, classes).item()
    assert loss == pytest.approx(wanted, abs=2e-3)


def test_labels_are_drawn_with_their_chances_and_anew_every_time():
    chances = np.tile(np.array([[0.7, 0.0, 0.3]], np.float32), (40000, 1))
    supervision = sample_pool.DrawnClasses(chances)
    assert (supervision.classes == 0).all()
    first = supervision.redrawn(np.random.default_rng(0))
    again = supervision.redrawn(np.random.default_rng(0))
    other = first.redrawn(np.random.default_rng(1))
    shares = np.bincount(first.classes, minlength=3) / len(chances)
    assert shares.tolist() == pytest.approx([0.7, 0.0, 0.3], abs=0.01)
    assert (first.classes == again.classes).all()
    assert (first.classes != other.classes).any()
    rows = np.arange(50)
    levels = first.levels(rows, rows)
    np.testing.assert_array_equal(levels, first.classes[:50, None] == first.classes[:50])


def test_chances_are_those_of_the_class_drawn_for_the_query_and_right_in_the_mean():
    probabilities = np.tile(np.array([[0.7, 0.0, 0.3], [0.05, 0.95, 0.0]], np.float32), (20000, 1))
    first = sample_pool.DrawnClasses(probabilities).redrawn(np.random.default_rng(0))
    queries, items = np.arange(6), np.arange(len(probabilities))
    chances = first.chances(queries, items) / (N_CHANCES - 1)
    for row, drawn in zip(chances, first.classes[:6], strict=True):
        means = [row[0::2].mean(), row[1::2].mean()]
        assert means == pytest.approx(probabilities[:2, drawn].tolist(), abs=0.005)
    again = sample_pool.DrawnClasses(probabilities).redrawn(np.random.default_rng(0))
    np.testing.assert_array_equal(first.chances(queries, items), again.chances(queries, items))
    other = first.redrawn(np.random.default_rng(1))
    assert (first._steps != other._steps).any()


def test_certain_classes_have_the_chances_0_and_1():
    certain = sample_pool.DrawnClasses(np.eye(3, dtype=np.float32)[[0, 1, 2, 1]])
    certain = certain.redrawn(np.random.default_rng(0))
    rows = np.arange(4)
    levels = certain.levels(rows, rows)
    np.testing.assert_array_equal(certain.chances(rows, rows), levels * (N_CHANCES - 1))


@pytest.mark.parametrize(
    ("name", "params", "reads"),
    [
        ("talr-ap", {}, [False, False, True, True]),
        ("talr-ap", {"expected": False}, [False] * 4),
        ("talr-ndcg", {}, [False] * 4),
        ("hashnet", {}, [False] * 4),
    ],
)
def test_chances_are_read_in_the_second_half_of_a_run_by_losses_that_can(
    name, params, reads, monkeypatch
):
    batches, compute = [], run.compute_loss

    def note_batch(loss, logits, items, batch):
        batches.append(batch)
        return compute(loss, logits, items, batch)

    monkeypatch.setattr(run, "compute_loss", note_batch)
    methods.get(name, **{**QUICK, "epochs": 4, "batch_size": 10**6, **params}).fit(X, Y)
    assert [batch.chances is not None for batch in batches[-4:]] == reads


def test_the_pool_has_every_row_equally_often_and_chances_that_sum_to_one():
    posterior = ClassPosterior(12, 5, 8, 2).eval()
    rows = torch.from_numpy(X).float()
    pool = sample_pool.draw_pool(posterior, rows, (0.0, 0.0), 1.0, seed=0)
    assert len(pool.inputs) == len(pool.probabilities) == sample_pool.pool_size(len(X))
    assert sample_pool.pool_size(len(X)) % len(X) == 0
    np.testing.assert_allclose(pool.probabilities.sum(1), 1, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(pool.inputs[: len(X)], posterior(rows))


@pytest.fixture
def classifiers_and_rows(fitted):
    """Trained classifiers, and the training rows as they read them."""
    parts = dict(fitted.encoder_.head.named_children())
    return parts["posterior"], parts["standardize"](torch.from_numpy(X).float())


def test_the_noise_of_the_pool_gives_it_the_doubt_of_held_out_rows(classifiers_and_rows):
    doubts = []
    for largest in (0.1, 0.4):
        pool = sample_pool.draw_pool(*classifiers_and_rows, (0.1, largest), 0.8, seed=1)
        doubts.append((1 - pool.probabilities.max(1)).mean())
    assert doubts[1] > doubts[0] + 0.01
    largest = sample_pool.match_doubt(*classifiers_and_rows, 0.1, 0.8, doubts[1], seed=0)
    assert largest == pytest.approx(0.4, abs=0.08)


def test_the_noise_of_the_pool_is_within_bounds(classifiers_and_rows):
    least = sample_pool.match_doubt(*classifiers_and_rows, 0.1, 1.0, doubt=0.0, seed=0)
    most = sample_pool.match_doubt(*classifiers_and_rows, 0.1, 1.0, doubt=0.99, seed=0)
    assert least == 0.1
    assert 0.59 < most < 0.6


def test_a_fit_reports_the_doubt_of_held_out_rows_and_the_noise_of_its_pool(fitted):
    report = fitted.report_["posterior"]
    assert 0 < report["doubt"] < 0.8
    smallest, largest = report["pool_noise"]
    assert smallest == report["noise"] <= largest


def test_the_bits_read_the_posterior_and_rank_better_than_sign(fitted):
    assert fitted.encoder_.architecture.posterior == 3
    found = fitted.report_["posterior"]
    assert found["noise"] in stage.NOISES
    assert 0.3 <= found["factor"] <= 1.5
    values = {}
    for name, hasher in (("talr", fitted), ("sign", methods.get("sign", n_bits=12).fit(X))):
        codes = hasher.encode(X)
        same = rankbits.affinity.classes(Y, Y)
        values[name] = rankbits.evaluate(codes, codes, same, ["AP"]).mean["AP"]
    assert values["talr"] > values["sign"] + 0.1


def test_it_is_saved_loaded_and_repeated_bit_for_bit(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = rankbits.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.project(X), fitted.project(X))
    again = methods.get("talr-ap", **QUICK).fit(X, Y)
    np.testing.assert_array_equal(again.project(X), fitted.project(X))


def test_a_checkpoint_of_every_stage_is_kept_and_continues(fitted, tmp_path):
    how = {**QUICK, "checkpoint": tmp_path / "run"}
    methods.get("talr-ap", **how).fit(X, Y)
    names = {path.name for path in (tmp_path / "run").iterdir() if path.is_dir()}
    assert names == {"posterior", *(f"pilot-{noise}" for noise in stage.NOISES)}
    resumed = methods.get("talr-ap", **how).fit(X, Y)
    assert resumed.report_["epochs_resumed"] == resumed.report_["epochs"]
    np.testing.assert_array_equal(resumed.project(X), fitted.project(X))


@pytest.fixture
def trainings(monkeypatch):
    """The trainings of classifiers, counted."""
    tasks, run_training = [], classifiers.run_training
    monkeypatch.setattr(
        classifiers, "run_training", lambda task: (tasks.append(task), run_training(task))[1]
    )
    return tasks


@pytest.mark.slow
def test_codes_of_two_lengths_read_the_posterior_of_a_cache(trainings):
    cache = PosteriorCache()

    def project(y=Y, **changes):
        return methods.get("talr-ap", **{**QUICK, **changes}).fit(X, y).project(X)

    apart = {n_bits: project(n_bits=n_bits) for n_bits in (6, 9)}
    assert len(trainings) == 2 * len(stage.STAGES)
    for n_bits in (6, 9):
        together = project(n_bits=n_bits, posterior_cache=cache)
        np.testing.assert_array_equal(together, apart[n_bits])
    assert len(trainings) == 3 * len(stage.STAGES)
    project(random_state=1, posterior_cache=cache)
    project(y=(Y + 1) % 3, posterior_cache=cache)
    assert len(trainings) == 5 * len(stage.STAGES)
    assert len(cache) == 3


def test_without_a_cache_no_fit_remembers_another(trainings):
    for _ in range(2):
        methods.get("talr-ap", **QUICK).fit(X, Y)
    assert len(trainings) == 2 * len(stage.STAGES)


def test_a_cache_is_shared_by_clones_cleared_by_its_owner_and_not_saved(fitted, tmp_path):
    cache = PosteriorCache()
    hasher = methods.get("talr-ap", **QUICK, posterior_cache=cache)
    assert clone(hasher).posterior_cache is cache
    hasher.fit(X, Y).save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").posterior_cache is None
    assert len(pickle.loads(pickle.dumps(hasher)).posterior_cache) == 0
    assert len(cache) == 1
    cache.clear()
    assert len(cache) == 0


def test_a_run_without_a_seed_that_stopped_before_the_bits_keeps_its_seed(tmp_path):
    how = {**QUICK, "random_state": None, "checkpoint": tmp_path / "run"}
    first = methods.get("talr-ap", **how).fit(X, Y)
    for part in (tmp_path / "run").glob("*.safetensors"):
        part.unlink()  # as if it had been killed while the classes were learned
    again = methods.get("talr-ap", **how).fit(X, Y)
    np.testing.assert_array_equal(again.project(X), first.project(X))


def test_a_log_that_cannot_be_written_is_refused_before_any_training(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "learn_posterior", lambda *a: pytest.fail("trained first"))
    with pytest.raises(InputError, match="log"):
        methods.get("talr-ap", **QUICK, log=tmp_path / "no" / "such" / "log.jsonl").fit(X, Y)


def test_validation_scores_come_from_rows_that_no_stage_saw():
    hasher = methods.get("talr-ap", **QUICK, validation_fraction=0.2).fit(X, Y)
    assert hasher.report_["split"]["held_out"] == 140
    assert 0 < hasher.report_["best"]["score"] <= 1


@pytest.mark.parametrize(
    "how", [{"posterior": 0}, {"hidden": (8,)}, {"encoder": "linear"}, {"kernel": "rbf"}]
)
def test_bits_that_read_the_rows_are_to_be_had(how):
    hasher = methods.get("talr-ap", **{**QUICK, **how}).fit(X, Y)
    assert hasher.encoder_.architecture.posterior == 0
    assert hasher.report_["posterior"] is None


def test_few_rows_or_tags_have_no_posterior():
    assert methods.get("talr-ap", **QUICK).fit(X[:200], Y[:200]).report_["posterior"] is None
    tags = np.eye(5, dtype=np.uint8)[Y]
    assert methods.get("talr-ap", **QUICK).fit(X, tags).report_["posterior"] is None
    with pytest.raises(InputError, match="posterior must be 0 unless y is class labels"):
        methods.get("talr-ap", **QUICK, posterior=2).fit(X, tags)
