"""Protocols are data; their published numbers are the papers'."""

import json
from dataclasses import replace

import numpy as np
import pytest

from rankbits import affinity
from rankbits.benchmark import (
    Near,
    NestedClasses,
    PerClass,
    ProtocolSplit,
    SameClass,
    SameSuperclass,
    SharedTags,
    Sizes,
    StandardParts,
    _protocols,
    protocol,
    protocols,
    register,
)
from rankbits.benchmark._published import TALR, table
from rankbits.datasets import Labelled
from rankbits.errors import InputError


def published(name, data, metric):
    return next(
        found.values
        for found in protocol(name).published
        if (found.data, found.metric) == (data, metric)
    )


@pytest.mark.parametrize(
    ("name", "data", "metric", "method", "bits", "value"),
    [
        ("cifar10-s1", "CIFAR-10", "AP", "BRE", 12, 0.361),
        ("cifar10-s1", "CIFAR-10", "AP", "StructHash", 32, 0.691),
        ("cifar10-s1", "CIFAR-10", "AP", "TALR-AP", 12, 0.732),
        ("cifar10-s1", "CIFAR-10", "AP", "TALR-AP", 48, 0.826),
        ("cifar10-s1", "CIFAR-10", "AP", "TALR-AP (arXiv text)", 48, 0.805),
        ("cifar10-s1", "CIFAR-10", "AP, ties broken", "GreedyHash", 48, 0.817),
        ("cifar10-s1", "CIFAR-10", "AP, ties broken", "OrthoHash", 64, 0.824),
        ("cifar10-s2", "CIFAR-10", "AP", "DPSH", 48, 0.932),
        ("cifar10-s2", "CIFAR-10", "AP", "TALR-AP", 16, 0.939),
        ("cifar10-s2", "CIFAR-10", "AP", "TALR-AP (arXiv text)", 24, 0.935),
        ("corel5k-ap", "NUS-WIDE", "AP", "MACHash", 24, 0.361),
        ("corel5k-ap", "NUS-WIDE", "AP", "TALR-AP", 32, 0.745),
        ("corel5k-ndcg", "NUS-WIDE", "nDCG", "DTSH", 48, 0.911),
        ("corel5k-ndcg", "NUS-WIDE", "nDCG", "TALR-NDCG", 64, 0.927),
        ("distance-ndcg", "LabelMe", "nDCG", "FastHash", 48, 0.855),
        ("distance-ndcg", "LabelMe", "nDCG", "MACHash", 64, 0.687),
        ("distance-ndcg", "LabelMe", "nDCG", "TALR-NDCG", 16, 0.866),
        ("mlgap-cifar10", "CIFAR-10", "LGAP@r2", "DSH", 12, 0.2633),
        ("mlgap-cifar10", "CIFAR-10", "LGAP@r2", "dispersed DSH", 24, 0.3461),
        ("mlgap-cifar10", "CIFAR-10", "AP", "dispersed DSH", 12, 0.3008),
        ("mlgap-cifar100", "CIFAR-100, superclasses", "LGAP@r2", "DSH", 24, 0.0660),
        ("mlgap-cifar100", "CIFAR-100, superclasses", "AP", "dispersed DSH", 24, 0.1187),
    ],
)
def test_published_values_are_those_of_the_papers(name, data, metric, method, bits, value):
    assert published(name, data, metric)[method][bits] == value


def test_every_table_of_the_talr_paper_covers_the_lengths_of_its_protocol():
    for found in protocols():
        if not found.published or found.published[0].source != TALR:
            continue
        rows = found.published[0].values
        assert all(set(row) <= set(found.bits) for row in rows.values())
        complete = [method for method, row in rows.items() if set(row) == set(found.bits)]
        assert len(complete) >= 3


def test_a_line_with_too_few_values_is_our_mistake():
    with pytest.raises(ValueError, match="zip"):
        table((16, 32), "BRE .1")


def test_the_rules_are_those_of_the_papers():
    assert protocol("cifar10-s1").split == PerClass(queries=100, training=500)
    assert protocol("cifar10-s2").split == StandardParts()
    assert protocol("distance-ndcg").split == Sizes(2000, 20000, 5000)
    assert protocol("rsh-cifar100").split == Sizes(1000, 59000, 1100)
    assert protocol("rsh-cifar100").relevance == NestedClasses()
    assert protocol("rsh-cifar100").metrics == ("nDCG(rsh)", "nDCG", "ACG@r3")
    assert protocol("lwh-cifar10").split == Sizes(2000, 58000, 1000)
    assert {"AP", "P@r2", "P@100", "R@20000"} <= set(protocol("lwh-cifar10").metrics)
    near = protocol("distance-ndcg").relevance
    assert near == Near((0.05, 0.01, 0.002, 0.001), (1, 2, 5, 10))
    assert protocol("distance-ndcg").defaults["talr-ndcg"] == {"encoder": "linear"}
    assert protocol("corel5k-ap").relevance == SharedTags(graded=False)
    assert protocol("corel5k-ndcg").relevance == SharedTags(graded=True)


def test_protocols_are_json_and_have_different_names():
    assert len({found.name for found in protocols()}) == len(protocols())
    for found in protocols():
        again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert again["name"] == found.name
        for told, paper in zip(again["published"], found.published, strict=True):
            assert told["values"].keys() == paper.values.keys()
    with pytest.raises(InputError, match="did you mean 'cifar10-s1'"):
        protocol("cifar10s1")


X = np.random.default_rng(0).standard_normal((40, 3))
SPLIT = ProtocolSplit(np.arange(0, 5), np.arange(5, 40), np.arange(5, 20))


def levels(relation):
    return relation.levels[relation.indices(slice(None), slice(None))]


def test_a_registered_protocol_is_known_by_its_name_and_none_is_replaced(monkeypatch):
    monkeypatch.setattr(_protocols, "_BY_NAME", dict(_protocols._BY_NAME))
    old = protocol("cifar10-s1")
    new = replace(old, name="cifar10-s3")
    assert register(new) is new
    assert protocol("cifar10-s3") is new
    assert protocols()[-1] is new
    with pytest.raises(InputError, match="protocol 'cifar10-s1' is registered already"):
        register(replace(old, title="another"))


def test_classes_and_tags_are_cut_by_role():
    classes = np.arange(40) % 3
    task = SameClass().task(Labelled(X, classes, np.zeros(40, bool)), SPLIT)
    assert np.array_equal(task.training_y, classes[5:20])
    assert np.array_equal(levels(task.affinity), classes[:5, None] == classes[5:])
    tags = (np.arange(120).reshape(40, 3) % 7 < 3).astype(np.uint8)
    task = SharedTags(graded=True).task(Labelled(X, tags, np.zeros(40, bool)), SPLIT)
    assert np.array_equal(task.training_y, tags[5:20])
    assert np.array_equal(levels(task.affinity), tags[:5].astype(int) @ tags[5:].T)
    assert np.array_equal(task.query_x, X[:5])
    assert np.array_equal(task.database_x, X[5:])
    with pytest.raises(InputError, match="data must have classes"):
        SameClass().task(Labelled(X, tags, np.zeros(40, bool)), SPLIT)
    with pytest.raises(InputError, match="data must have multi-hot tags"):
        SharedTags().task(Labelled(X, classes, np.zeros(40, bool)), SPLIT)


def test_superclasses_judge_and_classes_within_them_are_learned():
    classes, coarse = np.arange(40) % 6, np.array([0, 0, 1, 1, 2, 2])
    data = Labelled(X, classes, np.zeros(40, bool), coarse=coarse)
    task = SameSuperclass().task(data, SPLIT)
    upper, mine = coarse[classes], classes[5:20]
    assert np.array_equal(levels(task.affinity), upper[:5, None] == upper[5:])
    wanted = (mine[:, None] == mine).astype(int) + (upper[5:20, None] == upper[5:20])
    assert np.array_equal(levels(task.training_y), wanted)
    assert set(wanted.flat) == {0, 1, 2}
    with pytest.raises(InputError, match="data must have the superclass of each class"):
        SameSuperclass().task(Labelled(X, classes, np.zeros(40, bool)), SPLIT)


def test_classes_within_superclasses_have_levels_2_and_1():
    classes, coarse = np.arange(40) * 7 % 6, np.array([0, 1, 0, 2, 1, 2])
    data = Labelled(X, classes, np.zeros(40, bool), coarse=coarse)
    task = NestedClasses().task(data, SPLIT)
    upper = coarse[classes]
    wanted = (classes[:, None] == classes).astype(int) + (upper[:, None] == upper)
    assert set(wanted.flat) == {0, 1, 2}
    assert np.array_equal(levels(task.affinity), wanted[:5, 5:])
    assert np.array_equal(task.training_y.astype(int) @ task.training_y.T, wanted[5:20, 5:20])
    with pytest.raises(InputError, match="data must have the superclass of each class"):
        NestedClasses().task(Labelled(X, classes, np.zeros(40, bool)), SPLIT)


def test_thresholds_come_from_distances_between_training_rows():
    rule = Near(shares=(0.2, 0.05), levels=(1, 4))
    task = rule.task(Labelled(X, np.zeros(40, int), np.zeros(40, bool)), SPLIT)
    train = X[5:20]
    apart = np.linalg.norm(train[:, None] - train[None], axis=2)
    wide, close = np.quantile(apart[np.triu_indices(15, 1)], [0.2, 0.05])
    assert isinstance(task.training_y, affinity.Neighbours)
    for relation, mine, theirs in (
        (task.affinity, X[:5], X[5:]),
        (task.training_y, train, train),
    ):
        distance = np.linalg.norm(mine[:, None] - theirs[None], axis=2)
        wanted = np.where(distance <= close, 4, np.where(distance <= wide, 1, 0))
        assert np.array_equal(levels(relation), wanted)
    with pytest.raises(InputError, match="data must have features"):
        rule.task(Labelled(X[:, :, None], np.zeros(40, int), np.zeros(40, bool)), SPLIT)
