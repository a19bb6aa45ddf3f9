"""y in all its forms, turned into levels between rows."""

import numpy as np
import pytest

from rankbits import affinity
from rankbits.errors import InputError
from rankbits.methods.supervision import supervise

ROWS = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
EVERYTHING = np.arange(40)


def levels_of(supervision):
    everything = np.arange(len(supervision))
    return supervision.levels(everything, everything).astype(int)


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(40) % 3,
        (np.arange(40) % 3).astype(float),
        np.arange(40) % 3 == 0,
        [f"class {i % 3}" for i in range(40)],
        np.array([f"class {i % 3}" for i in range(40)], dtype=object),
        np.array([i % 3 for i in range(40)], dtype=object),
        -5 * (np.arange(40) % 3) + 2**40,
    ],
)
def test_one_dimension_is_classes_and_equal_labels_are_relevant(labels):
    supervision = supervise(ROWS, labels)
    expected = [[int(a == b) for b in labels] for a in labels]
    assert np.array_equal(levels_of(supervision), expected)
    assert supervision.kind == "classes"
    assert sorted(set(supervision.classes)) == list(range(len(set(np.asarray(labels).tolist()))))


@pytest.mark.parametrize("graded", [False, True])
def test_two_dimensions_of_0_and_1_share_tags(graded, rng):
    y = (rng.random((40, 6)) < 0.3).astype(int)
    expected = [[int(sum(a * b)) if graded else int(any(a * b)) for b in y] for a in y]
    supervision = supervise(ROWS, y, graded=graded)
    assert np.array_equal(levels_of(supervision), expected)
    assert np.array_equal(supervision.tags, y)
    assert supervision.classes is None


@pytest.mark.parametrize("graded", [False, True])
def test_no_y_ranks_the_others_by_distance_for_each_row(graded):
    supervision = supervise(ROWS, None, graded=graded)
    expected = np.zeros((40, 40), int)
    for row, levels in zip(ROWS.astype(float), expected, strict=True):
        distances = np.linalg.norm(ROWS - row, axis=1)
        order = [i for i in np.argsort(distances, kind="stable") if distances[i] > 0]
        for place, item in enumerate(order):
            if graded:  # 10, 50, 200, 1000, but half of 39 others at most
                levels[item] = 10 if place < 10 else 5 if place < 19 else 0
            else:
                levels[item] = int(place < 10)
    assert np.array_equal(levels_of(supervision), expected)
    assert supervision.kind == "ranks"


def test_ranks_of_few_rows_leave_some_irrelevant():
    rows = np.array([[0.0], [1.0], [2.1], [3.3], [4.6]])
    levels = levels_of(supervise(rows, None, graded=True))
    assert set(levels[~np.eye(5, dtype=bool)].tolist()) == {0, 10}
    assert (levels > 0).sum(axis=1).tolist() == [2] * 5


def test_an_affinity_is_taken_as_it_is(rng):
    matrix = rng.integers(0, 4, (40, 40)) * 3
    supervision = supervise(ROWS, affinity.levels(matrix))
    assert np.array_equal(levels_of(supervision), matrix)
    judged = affinity.judgements([(0, 5, 3), (7, 2, 1)], 40, 40)
    expected = np.zeros((40, 40), int)
    expected[0, 5], expected[7, 2] = 3, 1
    assert np.array_equal(levels_of(supervise(ROWS, judged)), expected)


def test_some_of_the_rows_keep_their_levels(rng):
    y = rng.integers(0, 4, 40)
    rows = rng.permutation(40)[:15]
    part = supervise(ROWS, y).take(rows)
    assert np.array_equal(levels_of(part), y[rows][:, None] == y[rows])
    again = part.take(np.array([3, 1]))
    assert np.array_equal(levels_of(again), y[rows[[3, 1]]][:, None] == y[rows[[3, 1]]])


def test_a_table_of_levels_changes_none_of_them(rng):
    part = supervise(ROWS, None).take(rng.permutation(40)[:25])
    assert np.array_equal(levels_of(part.tabulated()), levels_of(part))
    assert part.tabulated().affinity is not part.affinity


def test_positives_are_all_relevant_items_but_the_query_itself(rng):
    y = (rng.random((40, 8)) < 0.1).astype(int)
    supervision = supervise(ROWS, y)
    offsets, items = supervision.positives()
    shared = y @ y.T > 0
    for query in range(40):
        expected = [item for item in range(40) if item != query and shared[query, item]]
        assert items[offsets[query] : offsets[query + 1]].tolist() == expected


def test_a_sample_of_many_positives_has_no_repeats_and_no_strangers():
    y = np.repeat([0, 1, 2], [30, 8, 2])
    offsets, items = supervise(ROWS, y).positives(most=5)
    assert np.diff(offsets).tolist() == [5] * 38 + [1] * 2
    for query in range(40):
        sample = items[offsets[query] : offsets[query + 1]]
        assert (y[sample] == y[query]).all()
        assert query not in sample
        assert len(set(sample.tolist())) == len(sample)


def test_density_is_the_share_of_relevant_pairs(rng):
    y = np.repeat([0, 1], [10, 30])
    assert supervise(ROWS, y).density() == pytest.approx((10 * 9 + 30 * 29) / (40 * 39))


def test_a_class_of_one_is_noted_not_refused():
    notes = supervise(ROWS, [7] + [0] * 20 + [1] * 19).notes()
    assert notes["classes"] == 3
    assert notes["classes_of_one"] == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda y: np.where(EVERYTHING == 11, 1 - y, y),
        lambda y: None,
        lambda y: affinity.classes(y, y),
    ],
)
def test_the_digest_tells_other_supervision_apart(change):
    y = EVERYTHING % 2
    assert supervise(ROWS, y).digest() == supervise(ROWS, y.copy()).digest()
    assert supervise(ROWS, y).digest() != supervise(ROWS, change(y)).digest()


class Nothing(affinity.Affinity):
    levels = np.array([0, 1])
    shape = (40, 40)

    def indices(self, queries, items):
        return np.zeros((40, 40), np.uint8)[queries, items]


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (np.zeros(40, int), "y must have at least two classes, got one"),
        (EVERYTHING, "y must have a class with at least two members, got 40 classes of one"),
        (np.zeros(39, int), "y must have one label for each row of X, got 39 labels for 40 rows"),
        (np.ones((41, 2)), "y must have one label for each row of X, got 41 labels for 40 rows"),
        (np.eye(40, dtype=int), "got no positives at all"),
        (np.zeros((40, 3), int), "got no positives at all"),
        (np.ones((40, 3), int), "got one level for all of them"),
        (Nothing(), "got no positives at all"),
        (affinity.judgements([(3, 3, 1)], 40, 40), "got no positives at all"),
        (
            affinity.judgements([(3, 4, 1)], 40, 41),
            r"an affinity over \(X, X\), of shape \(40, 40\), got shape \(40, 41\)",
        ),
        (np.full((40, 2), 2), "must be multi-hot tags of 0 and 1, got the value 2"),
        (np.linspace(0, 1, 40), "y must be class labels"),
        (np.full(40, np.nan), "y must be class labels, got NaN"),
        (np.zeros((40, 2, 2)), r"y must be class labels of shape \(n,\)"),
        ([None] * 40, "y must be class labels"),
    ],
)
def test_supervision_under_which_nothing_can_be_learned_is_refused(y, says):
    with pytest.raises(InputError, match=says):
        supervise(ROWS, y)


def test_distances_need_vectors_that_differ():
    with pytest.raises(InputError, match="y must be given for images"):
        supervise(np.zeros((4, 8, 8, 3)), None)
    with pytest.raises(InputError, match="X must have rows that differ"):
        supervise(np.ones((9, 3)), None)
