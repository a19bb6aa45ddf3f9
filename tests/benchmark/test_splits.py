"""Splits: seeded, balanced, and no query in the database."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from rankbits.benchmark import (
    LabelledPerClass,
    NewClasses,
    PerClass,
    ProtocolSplit,
    Sizes,
    StandardParts,
)
from rankbits.datasets import Labelled
from rankbits.errors import InputError

Y = np.repeat(np.arange(4), [30, 20, 25, 40])
DATA = Labelled(np.arange(115.0)[:, None], Y, np.arange(115) % 5 == 0)
NEW = NewClasses(known=2, training=30, queries=7)
RULES = [
    PerClass(3, 5),
    LabelledPerClass(3, 5),
    StandardParts(),
    Sizes(20, 60, 15),
    NEW,
    replace(NEW, sees_items=True),
]


def roles(split):
    return set(split.queries.tolist()), set(split.database.tolist()), set(split.training.tolist())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [0, 1, 17])
def test_no_query_is_in_the_database_and_all_training_rows_are(rule, seed):
    split = rule.draw(DATA, seed)
    queries, database, training = roles(split)
    assert not queries & database
    assert training <= database
    for rows in (split.queries, split.database, split.training):
        assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_seed_names_one_split(rule):
    assert rule.draw(DATA, 3).hash == rule.draw(DATA, 3).hash


@pytest.mark.parametrize("rule", [PerClass(3, 5), Sizes(20, 60, 15), NEW])
def test_another_seed_is_another_split(rule):
    assert len({rule.draw(DATA, seed).hash for seed in range(20)}) == 20


def test_setting_1_draws_every_class_alike_and_leaves_nothing_out():
    split = PerClass(3, 5).draw(DATA, 0)
    assert np.bincount(Y[split.queries]).tolist() == [3] * 4
    assert np.bincount(Y[split.training]).tolist() == [5] * 4
    assert len(split.database) == 115 - 12


def test_rows_of_a_class_are_equally_likely_to_be_queries():
    """300 draws of 3 out of 30: each row is expected 30 times, with a spread of about 5."""
    drawn = np.concatenate([PerClass(3, 5).draw(DATA, seed).queries for seed in range(300)])
    times = np.bincount(drawn, minlength=115)[:30]
    assert times.sum() == 900
    assert times.min() > 8
    assert times.max() < 56


def test_a_small_class_is_refused():
    with pytest.raises(InputError, match=r"at least 21 rows of each class, class 1 has 20"):
        PerClass(3, 18).draw(DATA, 0)


def test_standard_parts_are_the_data_sets_own():
    split = StandardParts().draw(DATA, 9)
    assert split.queries.tolist() == list(range(0, 115, 5))
    assert split.training.tolist() == split.database.tolist()
    alone = Labelled(DATA.x, DATA.y, np.zeros(115, bool))
    with pytest.raises(InputError, match="got 0 and 115 rows"):
        StandardParts().draw(alone, 0)


def test_sizes_are_kept_and_too_few_rows_refused():
    split = Sizes(20, 60, 15).draw(DATA, 2)
    assert [len(rows) for rows in (split.queries, split.database, split.training)] == [20, 60, 15]
    with pytest.raises(InputError, match="at least 116 rows, got 115"):
        Sizes(16, 100, 5).draw(DATA, 0)


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_of_known_classes_and_queries_of_both_kinds(seed):
    split = NEW.draw(DATA, seed)
    known = set(Y[split.training].tolist())
    assert len(known) == 2
    assert len(split.training) == 30
    assert len(split.database) == 92  # all that is not of the test part
    kinds = {name: set(rows.tolist()) for name, rows in split.kinds.items()}
    assert [len(rows) for rows in kinds.values()] == [7, 7]
    assert {Y[row] for row in kinds["known classes"]} <= known
    assert not {Y[row] for row in kinds["new classes"]} & known
    assert kinds["known classes"] | kinds["new classes"] == set(split.queries.tolist())
    assert DATA.is_test[split.queries].all()


def test_a_method_that_sees_the_items_sees_the_same_labels():
    alone, joint = NEW.draw(DATA, 0), replace(NEW, sees_items=True).draw(DATA, 0)
    assert np.array_equal(joint.queries, alone.queries)
    assert np.array_equal(joint.training, joint.database)
    assert np.array_equal(np.setdiff1d(joint.training, joint.unlabelled), alone.training)
    shown = ProtocolSplit(joint.queries, joint.database, joint.training, kinds=joint.kinds)
    assert shown.hash != joint.hash


def test_semi_supervised_setting_1_has_the_rows_of_setting_1_and_all_others_without_labels():
    few, all_rows = PerClass(3, 5).draw(DATA, 4), LabelledPerClass(3, 5).draw(DATA, 4)
    assert np.array_equal(all_rows.queries, few.queries)
    assert np.array_equal(all_rows.database, few.database)
    assert np.array_equal(all_rows.training, few.database)
    assert set(all_rows.unlabelled) == set(few.database) - set(few.training)
    assert all_rows.hash != few.hash


def test_too_few_rows_or_classes_of_a_kind_are_refused():
    with pytest.raises(InputError, match="data must have 90 rows of 2 classes in a part, got"):
        replace(NEW, training=90).draw(DATA, 0)
    with pytest.raises(InputError, match="more than the 4 that are known"):
        replace(NEW, known=4).draw(DATA, 0)


def test_the_hash_is_of_sorted_rows_with_their_roles():
    def part(name, rows):
        return f"{name} {len(rows)}\n".encode() + b"".join(r.to_bytes(8, "little") for r in rows)

    wanted = part("queries", [1, 7]) + part("database", [0, 2, 300]) + part("training", [2])
    split = ProtocolSplit(np.array([7, 1]), np.array([300, 0, 2]), np.array([2]))
    assert split.hash == hashlib.sha256(wanted).hexdigest()
    swapped = ProtocolSplit(np.array([0, 2, 300]), np.array([1, 7]), np.array([2]))
    assert swapped.hash != split.hash
