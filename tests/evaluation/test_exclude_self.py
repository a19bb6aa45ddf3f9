"""`exclude_self` means the same wherever it is taken, as Python's bool, NumPy's, or rows."""

import numpy as np
import pytest

from rankbits import BinaryCodes, affinity, count_ties, evaluate, metrics
from rankbits.errors import InputError
from rankbits.evaluation import audit, count_shards

N_ITEMS = 12
RNG = np.random.default_rng(1)
CODES = BinaryCodes.from_bits(RNG.integers(0, 2, (N_ITEMS, 3)))
LABELS = RNG.integers(0, 2, N_ITEMS)
SAME = affinity.classes(LABELS, LABELS)
SHARDS = [(CODES[a:b], affinity.classes(LABELS, LABELS[a:b])) for a, b in ((0, 5), (5, N_ITEMS))]
DOORS = {
    "count_ties": lambda own: count_ties(CODES, CODES, SAME, own).counts,
    "count_shards": lambda own: count_shards(CODES, SHARDS, own).counts,
    "crowds": lambda own: metrics.crowds(CODES, CODES, own),
    "lgap": lambda own: metrics.lgap(CODES, CODES, SAME, 1, own),
    "evaluate AP": lambda own: evaluated("AP", own),
    "evaluate LGAP": lambda own: evaluated("LGAP@r1", own),
    "audit": lambda own: [row.value for row in audit(CODES, CODES, SAME, exclude_self=own).ap.rows],
}
pytestmark = pytest.mark.parametrize("door", DOORS)


def evaluated(name, own):
    return evaluate(CODES, CODES, SAME, name, exclude_self=own).per_query[name]


@pytest.mark.parametrize("own", [np.True_, np.arange(N_ITEMS), list(range(N_ITEMS))], ids=repr)
def test_other_ways_to_say_true_give_what_true_gives(door, own):
    np.testing.assert_array_equal(DOORS[door](own), DOORS[door](True))


@pytest.mark.parametrize("own", [np.False_, np.full(N_ITEMS, -1)], ids=repr)
def test_other_ways_to_say_false_give_what_false_gives(door, own):
    np.testing.assert_array_equal(DOORS[door](own), DOORS[door](False))
    assert not np.array_equal(DOORS[door](own), DOORS[door](True))


def test_rows_name_each_query_its_own_item(door):
    shifted = np.roll(np.arange(N_ITEMS), 5)
    assert not np.array_equal(DOORS[door](shifted), DOORS[door](True))


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (np.arange(3), "a bool or 12 integers, got int64 of shape"),
        (np.ones(N_ITEMS, bool), "a bool or 12 integers, got bool"),
        ("yes", "a bool or 12 integers"),
        (np.full(N_ITEMS, N_ITEMS), "items from -1 to 11, got 12"),
        (np.full(N_ITEMS, -2), "items from -1 to 11, got -2"),
    ],
    ids=repr,
)
def test_what_names_no_item_is_refused(door, own, reason):
    with pytest.raises(InputError, match=rf"^exclude_self must .*{reason}"):
        DOORS[door](own)
