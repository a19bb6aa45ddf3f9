"""Features of public data sets: what was written comes back, what is damaged is refused."""

import numpy as np
import pytest

from rankbits.datasets import load_features
from rankbits.errors import FileFormatError, InputError
from realdata import real

CLASSES = {
    "x_train": np.arange(12, dtype=np.float16).reshape(4, 3),
    "x_test": np.arange(6, dtype=np.float16).reshape(2, 3) + 100,
    "y_train": np.array([2, 0, 1, 0], np.uint8),
    "y_test": np.array([1, 2], np.uint8),
    "classes": np.array(["cat", "dog", "eel"]),
}
TAGS = np.array([[1, 0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 1, 0, 0, 0, 0], [1] * 9], np.uint8)
TAGGED = {
    "features": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float16),
    "labels": np.packbits(TAGS, axis=1),
    "is_test": np.array([False, True, False]),
    "n_labels": np.array(9),
    "words": np.array(list("abcdefghi")),
}


def written(folder, arrays, **changes):
    path = folder / "set.npz"
    kept = {key: value for key, value in {**arrays, **changes}.items() if value is not None}
    np.savez(path, **kept)
    return path


def test_classes_come_back_with_the_training_part_first(tmp_path):
    found = load_features(written(tmp_path, CLASSES))
    assert found.x.dtype == np.float32
    np.testing.assert_array_equal(found.x, np.concatenate([CLASSES["x_train"], CLASSES["x_test"]]))
    assert found.y.tolist() == [2, 0, 1, 0, 1, 2]
    assert found.is_test.tolist() == [False] * 4 + [True] * 2
    assert found.names == ("cat", "dog", "eel")
    assert (found.coarse, len(found)) == (None, 6)


def test_superclasses_and_no_names(tmp_path):
    path = written(tmp_path, CLASSES, classes=None, fine_to_coarse=np.array([1, 0, 1], np.uint8))
    found = load_features(path)
    assert found.coarse.tolist() == [1, 0, 1]
    assert found.names == ()


def test_tags_are_unpacked_and_test_rows_go_last(tmp_path):
    found = load_features(written(tmp_path, TAGGED))
    assert found.x.tolist() == [[1, 2], [5, 6], [3, 4]]
    assert np.array_equal(found.y, TAGS[[0, 2, 1]])
    assert found.is_test.tolist() == [False, False, True]
    assert found.names == tuple("abcdefghi")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x_train": None}, "neither x_train nor features"),
        ({"y_test": None}, "it has no y_test"),
        ({"y_train": np.zeros(3, int)}, "as many rows in x_train as in y_train, got 4 and 3"),
        ({"x_test": np.zeros((2, 4))}, "same features in x_train and x_test, got 3 and 4"),
        ({"x_train": np.zeros((4, 3, 1))}, "x_train as numbers of shape"),
        ({"x_test": np.full((2, 3), np.nan)}, "finite numbers in x_test"),
        ({"x_test": np.full((2, 3), 1e300)}, "finite numbers in x_test"),
        ({"y_train": np.array([0.5, 1, 2, 3])}, "y_train as class numbers"),
        ({"y_train": np.array([-1, 1, 2, 2])}, "y_train as class numbers"),
        ({"classes": np.array(["cat", "dog"])}, "has the class 2 and 2 class names"),
        ({"classes": np.arange(3)}, "classes as strings"),
        ({"fine_to_coarse": np.array([0, 1])}, "has the class 2 and 2 superclasses"),
    ],
)
def test_classes_that_do_not_fit_together_are_refused(tmp_path, change, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        load_features(written(tmp_path, CLASSES, **change))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": None}, "it has no labels"),
        ({"n_labels": np.array(17)}, r"uint8 of shape \(n, 3\), the packed bits of 17 tags"),
        ({"n_labels": np.array(0)}, "packed bits of 0 tags"),
        ({"n_labels": np.array([9])}, "its number of tags as n_labels"),
        ({"labels": TAGS.astype(int)}, "packed bits of 9 tags"),
        (
            {"labels": np.packbits(TAGS[:2], axis=1)},
            "as many rows in features as in labels, got 3 and 2",
        ),
        ({"is_test": np.zeros(3, int)}, "is_test as 3 bools"),
        ({"words": np.array(["a"])}, "has 9 tags and 1 words"),
    ],
)
def test_tags_that_do_not_fit_together_are_refused(tmp_path, change, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        load_features(written(tmp_path, TAGGED, **change))


def test_damaged_and_foreign_files_are_refused(tmp_path):
    whole = written(tmp_path, CLASSES).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("x_train")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "pickle.npz", x_train=np.array([{}], object))
    for name in ("cut", "text", "empty", "pickle"):
        with pytest.raises(FileFormatError, match=rf"{name}.npz is ") as caught:
            load_features(tmp_path / f"{name}.npz")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="there is no"):
        load_features(tmp_path / "none.npz")


def test_real_features_of_cifar10():
    found = load_features(real("cifar10_efflite0_160_pca256_f16.npz"))
    assert found.x.shape == (60000, 256)
    assert np.bincount(found.y).tolist() == [6000] * 10
    assert np.bincount(found.y[found.is_test]).tolist() == [1000] * 10


def test_real_features_of_cifar100_have_five_classes_a_superclass():
    found = load_features(real("cifar100_efflite0_160_pca256_f16.npz"))
    assert np.bincount(found.coarse).tolist() == [5] * 20
    assert np.bincount(found.y).tolist() == [600] * 100


def test_real_tags_of_corel5k():
    found = load_features(real("corel5k_efflite0_192.npz"))
    assert found.x.shape == (4999, 1280)
    assert found.y.shape == (4999, 374)
    assert found.is_test.sum() == 499
    assert 3.3 < found.y.sum(axis=1).mean() < 3.7
