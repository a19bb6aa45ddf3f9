"""Protocols on sets that nobody redistributes, by small files of their public layouts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from rankbits.benchmark import PerTag, Sizes, StandardQueries, has_data, protocol, run
from rankbits.benchmark._sources import load_source
from rankbits.datasets import Labelled
from rankbits.errors import FileFormatError, InputError

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("labelme", "or LabelMe_gist.mat; .* Small codes and large image databases"),
        ("nuswide", "or Low_Level_Features/Train_Normalized_.*CIVR 2009"),
        ("imagenet100", "or classes.txt, train/CLASS/.*HashNet, ICCV 2017"),
        ("tinyimages", "or tinygist80million.bin; .*80 million tiny images"),
        ("clinc150", r"a file clinc150\*.npz of features; .*Larson et al."),
        ("npl", "National Physical Laboratory"),
    ],
)
def test_missing_data_is_an_error_with_its_layout_and_where_it_is_described(tmp_path, name, words):
    with pytest.raises(InputError, match=words):
        load_source(name, tmp_path)
    assert not has_data(name, tmp_path)


def test_a_file_of_features_that_is_cut_off_is_named_and_not_missing(tmp_path):
    file = tmp_path / "corel5k_tiny.npz"
    np.savez(file, features=np.zeros((9, 4)))
    file.write_bytes(file.read_bytes()[:200])
    for look in (has_data, load_source):
        with pytest.raises(FileFormatError, match=r"corel5k_tiny.npz is not a readable .npz file"):
            look("corel5k", tmp_path)


@pytest.mark.parametrize("file", ["LabelMe_gist.mat", "LabelMe_GIST.mat"])
def test_labelme_is_found_in_a_folder_of_the_data(tmp_path, file):
    (tmp_path / "labelme").mkdir()
    gist = RNG.standard_normal((60, 16))
    parts = {"ndxtrain": [np.arange(1, 51)], "ndxtest": [np.arange(51, 61)]}
    savemat(tmp_path / "labelme" / file, {"gist": gist, **parts})
    assert has_data("labelme", tmp_path)
    small = replace(protocol("labelme-ndcg"), split=Sizes(10, 50, 30))
    result = run(small, tmp_path, ["lsh", "talr-ndcg"], 4, params={"talr-ndcg.epochs": 1})
    assert result["data"]["rows"] == 60
    assert {row["method"] for row in result["summary"]} == {"lsh", "talr-ndcg"}


def test_tiny_images_by_distance_percentiles(tmp_path):
    rows = RNG.standard_normal((40, 384)).astype("<f4")
    (tmp_path / "tinygist80million.bin").write_bytes(rows.tobytes())
    with pytest.raises(InputError, match="must have 1000000 rows, it has 40"):
        load_source("tinyimages", tmp_path)
    data = Labelled(rows, np.zeros((40, 0), np.uint8), np.zeros(40, bool))
    small = replace(protocol("rsh-tinyimages"), split=Sizes(5, 35, 30))
    done = run(small, data, "rsh", 4)["runs"][0]
    split = small.split.draw(data, 0)
    cuts = np.quantile(_distances(rows[split.training]), [0.02, 0.05])
    apart = np.sqrt(((rows[split.queries][:, None] - rows[split.database]) ** 2).sum(axis=2))
    expected = (apart <= cuts[0]).astype(int) + (apart <= cuts[1])
    task = small.relevance.task(data, split)
    levels = task.affinity.levels[task.affinity.indices(slice(None), slice(None))]
    np.testing.assert_array_equal(levels, expected)
    assert done["metrics"]["nDCG(rsh)"]["queries"] == (expected.max(axis=1) > 0).sum()


def _distances(rows):
    apart = np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=2, dtype=np.float64))
    return apart[np.triu_indices(len(rows), 1)]


def test_judged_documents_of_a_collection(tmp_path):
    documents, queries = RNG.standard_normal((30, 6)), RNG.standard_normal((4, 6))
    pairs = np.array([[0, 3, 1], [0, 7, 2], [1, 7, 1], [3, 29, 1]])
    np.savez(tmp_path / "npl_tiny.npz", documents=documents, queries=queries, qrels=pairs)
    npl = protocol("npl")
    done = run(npl, tmp_path, "lsh", 5)["runs"][0]
    assert done["split"]["queries"] == 4
    assert done["metrics"]["AP"]["skipped"] == 1  # nothing is judged relevant to query 2
    data = load_source("npl", tmp_path).data
    judged = npl.relevance.task(data, npl.split.draw(data, 0)).affinity
    dense = judged.levels[judged.indices(slice(None), slice(None))]
    expected = np.zeros((4, 30), int)
    expected[pairs[:, 0], pairs[:, 1]] = pairs[:, 2]
    np.testing.assert_array_equal(dense, expected)
    with pytest.raises(InputError, match="data must have judgements"):
        npl.relevance.task(replace(data, judgements=None), npl.split.draw(data, 0))


def test_intents_within_domains(tmp_path):
    y = np.repeat(np.arange(4), 6)
    np.savez(
        tmp_path / "clinc150_tiny.npz",
        x=RNG.standard_normal((24, 5)),
        y=y,
        split=np.arange(24) % 3,
        domain=np.array([0, 0, 1, 1]),
    )
    done = run("clinc150", tmp_path, "lsh", 4)["runs"][0]
    assert (done["split"]["queries"], done["split"]["database"]) == (8, 16)
    data = load_source("clinc150", tmp_path).data
    task = protocol("clinc150").relevance.task(data, protocol("clinc150").split.draw(data, 0))
    assert task.affinity.levels.tolist() == [0, 1, 2]


def test_queries_for_each_tag_and_training_rows_beside_them():
    tags = (RNG.random((400, 5)) < 0.3).astype(np.uint8)
    data = Labelled(np.zeros((400, 2), np.float32), tags, np.zeros(400, bool))
    split = PerTag(queries=6, training=20).draw(data, 3)
    assert len(split.queries) == 30
    assert len(split.training) == 100
    assert not np.intersect1d(split.queries, split.database).size
    assert np.isin(split.training, split.database).all()
    assert (tags[split.queries].sum(axis=0) >= 6).all()
    assert (tags[split.training].sum(axis=0) >= 20).all()
    assert PerTag(6, 20).draw(data, 3).hash == split.hash != PerTag(6, 20).draw(data, 4).hash
    with pytest.raises(InputError, match=r"data must have 80 \+ 1 rows for each tag"):
        PerTag(80, 1).draw(data, 0)


def test_test_rows_ask_and_some_rows_of_each_class_are_learned():
    y = np.repeat(np.arange(3), 20)
    data = Labelled(np.zeros((60, 2), np.float32), y, np.arange(60) % 4 == 0)
    split = StandardQueries(training=5).draw(data, 1)
    assert (np.flatnonzero(data.is_test) == split.queries).all()
    assert (np.flatnonzero(~data.is_test) == split.database).all()
    assert np.bincount(y[split.training]).tolist() == [5, 5, 5]
    assert np.isin(split.training, split.database).all()
    with pytest.raises(InputError, match="data must have 16 rows of each class"):
        StandardQueries(training=16).draw(data, 1)


def test_counted_tags_and_lists_on_tags_have_protocols(data_folder):
    small = {"split": Sizes(20, 70, 50)}
    for name, metric in (("rsh-corel5k", "nDCG(rsh)"), ("lwh-corel5k", "P@r2")):
        result = run(replace(protocol(name), **small), data_folder, ["rsh"], [6])
        assert metric in result["summary"][0]["metrics"]
