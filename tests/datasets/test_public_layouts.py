"""LabelMe, Tiny Images, ImageNet folders, NUS-WIDE features and vectors of texts: small files."""

import numpy as np
import pytest
from scipy.io import savemat

from rankbits.datasets import (
    load_collection,
    load_imagenet,
    load_labelme,
    load_labelme_distances,
    load_nuswide_features,
    load_nuswide_tags,
    load_requests,
    load_tiny_gist,
)
from rankbits.errors import FileFormatError, InputError

RNG = np.random.default_rng(3)
GIST = RNG.standard_normal((7, 512))
SHARED = RNG.random((7, 7))
TRAINING, TEST = [7, 1, 3, 2], [5, 4]  # numbers of images, from 1; image 6 is in neither


def write_labelme(folder, **changes):
    content = {"gist": GIST, "ndxtrain": [TRAINING], "ndxtest": [TEST], "DistLM": SHARED} | changes
    savemat(folder / "LabelMe_gist.mat", {k: v for k, v in content.items() if v is not None})
    return folder / "LabelMe_gist.mat"


def test_labelme_rows_stand_as_the_file_numbers_them(tmp_path):
    file = write_labelme(tmp_path)
    data = load_labelme(file, normalize=False)
    order = np.array([*TRAINING, *TEST]) - 1
    np.testing.assert_array_equal(data.x, GIST[order].astype(np.float32))
    assert data.is_test.tolist() == [False] * 4 + [True] * 2
    assert data.y.shape == (6, 0)
    distances = load_labelme_distances(file)
    assert distances[0, 5] == pytest.approx((SHARED[6, 3] + SHARED[3, 6]) / 2, rel=1e-6)


def test_labelme_descriptors_are_centered_and_of_unit_length(tmp_path):
    x = load_labelme(write_labelme(tmp_path)).x
    one = GIST[6] - GIST.mean(axis=0)
    np.testing.assert_allclose(x[0], one / np.sqrt((one**2).sum()), rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ndxtest": None}, "it has no ndxtest"),
        ({"ndxtest": [[8]]}, "must have ndxtest as numbers of images from 1 to 7"),
        ({"ndxtrain": [[1.5]]}, "must have ndxtrain as numbers of images"),
        ({"ndxtest": [[1, 4]]}, "must name each image once"),
        ({"gist": GIST * np.inf}, "must have gist as finite numbers"),
    ],
)
def test_a_labelme_file_that_is_wrong_is_named(tmp_path, changes, sentence):
    with np.errstate(invalid="ignore"), pytest.raises(FileFormatError, match=sentence):
        load_labelme(write_labelme(tmp_path, **changes))


def test_a_labelme_file_that_is_cut_off_or_missing_is_named(tmp_path):
    file = write_labelme(tmp_path)
    file.write_bytes(file.read_bytes()[:900])
    with pytest.raises(FileFormatError, match=r"LabelMe_gist.mat is not a readable .mat file"):
        load_labelme(file)
    with pytest.raises(InputError, match=r"path must name LabelMe_gist.mat, there is no"):
        load_labelme(tmp_path / "other.mat")
    with pytest.raises(FileFormatError, match="DistLM as numbers of shape"):
        load_labelme_distances(write_labelme(tmp_path, DistLM=SHARED[:3]))


def test_the_first_rows_of_a_binary_file_of_descriptors(tmp_path):
    rows = RNG.standard_normal((5, 384)).astype("<f4")
    (tmp_path / "gist.bin").write_bytes(rows.tobytes())
    data = load_tiny_gist(tmp_path / "gist.bin", n_rows=3)
    np.testing.assert_array_equal(data.x, rows[:3])
    assert not data.is_test.any()
    with pytest.raises(FileFormatError, match="must have 6 rows, it has 5"):
        load_tiny_gist(tmp_path / "gist.bin", n_rows=6)
    (tmp_path / "gist.bin").write_bytes(rows.tobytes()[:-4])
    with pytest.raises(FileFormatError, match=r"are 5\.00 rows: a download that was cut off"):
        load_tiny_gist(tmp_path / "gist.bin", n_rows=3)
    rows[1, 2] = np.nan
    (tmp_path / "gist.bin").write_bytes(rows.tobytes())
    with pytest.raises(FileFormatError, match="row 1 has others"):
        load_tiny_gist(tmp_path / "gist.bin", n_rows=3)


def write_imagenet(folder, names=("n01", "n02", "n03")):
    image = pytest.importorskip("PIL.Image")
    for part, n_pictures in (("train", 2), ("val", 1)):
        for shade, name in enumerate(names):
            place = folder / part / name
            place.mkdir(parents=True)
            for number in range(n_pictures):
                picture = image.new("RGB", (9, 7), (40 * shade, 10, 10))
                picture.save(place / f"{number}.JPEG", quality=95)
    (folder / "classes.txt").write_text("n03 third class\nn01\n")
    return folder


def test_imagenet_is_cut_to_the_classes_of_the_list(tmp_path):
    data = load_imagenet(write_imagenet(tmp_path), size=8)
    assert data.names == ("n03", "n01")
    assert data.y.tolist() == [0, 0, 1, 1, 0, 1]
    assert data.is_test.tolist() == [False] * 4 + [True] * 2
    assert data.x.shape == (6, 8, 8, 3)
    assert abs(int(data.x[0, 0, 0, 0]) - 80) < 6


def test_a_class_without_pictures_and_a_damaged_picture_are_named(tmp_path):
    folder = write_imagenet(tmp_path)
    (folder / "train" / "n03" / "1.JPEG").write_bytes(b"\xff\xd8broken")
    with pytest.raises(FileFormatError, match=r"n03/1.JPEG is not a readable JPEG"):
        load_imagenet(folder, size=8)
    (folder / "classes.txt").write_text("n01\nn09\n")
    with pytest.raises(InputError, match="train has none of 1 classes, n09 first"):
        load_imagenet(folder, size=8)
    (folder / "classes.txt").write_text("n01\nn01\n")
    with pytest.raises(FileFormatError, match="must name each class once"):
        load_imagenet(folder, size=8)
    with pytest.raises(InputError, match="path must name the list of classes"):
        load_imagenet(folder, folder / "none.txt")


TAGS = {"sky": ([1, 0, 1], [1, 1]), "cat": ([0, 1, 0], [0, 0]), "sea": ([0, 0, 0], [0, 1])}
CH = {"Train": RNG.random((3, 64)), "Test": RNG.random((2, 64))}
WT = {"Train": RNG.random((3, 4)), "Test": RNG.random((2, 4))}


def write_nuswide(folder):
    labels, features = folder / "Groundtruth" / "TrainTestLabels", folder / "Low_Level_Features"
    labels.mkdir(parents=True)
    features.mkdir()
    for place, part in enumerate(("Train", "Test")):
        for name, columns in TAGS.items():
            text = "".join(f"{value}\n" for value in columns[place])
            (labels / f"Labels_{name}_{part}.txt").write_text(text)
        for kind, values in (("CH", CH), ("WT", WT)):
            lines = "".join(" ".join(map(repr, row)) + " \n" for row in values[part].tolist())
            (features / f"{part}_Normalized_{kind}.dat").write_text(lines)
    return folder


def test_nuswide_features_stand_side_by_side_with_the_most_frequent_labels(tmp_path):
    data = load_nuswide_features(write_nuswide(tmp_path), n_concepts=2)
    assert data.names == ("sky", "cat")  # sky 4 times, cat and sea once, cat first by name
    assert data.y.tolist() == [[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]]
    assert data.is_test.tolist() == [False] * 3 + [True] * 2
    expected = np.concatenate([np.concatenate([CH[p], WT[p]], axis=1) for p in ("Train", "Test")])
    np.testing.assert_allclose(data.x, expected, rtol=1e-6)
    only_sea = load_nuswide_features(tmp_path, n_concepts=None)
    assert only_sea.names == ("cat", "sea", "sky")
    assert len(only_sea) == 5


def test_features_of_nuswide_may_lie_in_a_folder_named_after_their_archive(tmp_path):
    folder = write_nuswide(tmp_path)
    (folder / "NUS_WID_Low_Level_Features").mkdir()
    features = folder / "Low_Level_Features"
    features.rename(folder / "NUS_WID_Low_Level_Features" / "Low_Level_Features")
    assert load_nuswide_features(folder, n_concepts=2).x.shape == (5, 68)


def test_the_one_misprint_of_the_public_label_lists_is_read_as_no_label(tmp_path):
    folder = write_nuswide(tmp_path)
    labels = folder / "Groundtruth" / "TrainTestLabels"
    (labels / "Labels_lake_Train.txt").write_text("1\n-1130179\n0\n")
    (labels / "Labels_lake_Test.txt").write_text("0\n1\n")
    data = load_nuswide_features(folder, n_concepts=None)
    assert data.y[:, data.names.index("lake")].tolist() == [1, 0, 0, 0, 1]
    (labels / "Labels_cat_Train.txt").write_text("0\n-1130179\n0\n")
    with pytest.raises(FileFormatError, match=r"Labels_cat_Train.txt, line 2 must be 0 or 1"):
        load_nuswide_features(folder, n_concepts=None)


def test_partial_and_damaged_files_of_nuswide_are_named(tmp_path):
    folder = write_nuswide(tmp_path)
    file = folder / "Low_Level_Features" / "Train_Normalized_WT.dat"
    whole = file.read_text()
    file.write_text(whole[: whole.rindex("\n", 0, -1) + 1])
    with pytest.raises(FileFormatError, match=r"Train_Normalized_WT.dat must have 3 lines"):
        load_nuswide_features(folder, 2)
    file.write_text(whole.replace(" ", " x ", 1))
    with pytest.raises(FileFormatError, match=r"Train_Normalized_WT.dat is not a readable text"):
        load_nuswide_features(folder, 2)
    file.unlink()
    with pytest.raises(InputError, match=r"folder has one part of WT, and no .*Train_Normalized_W"):
        load_nuswide_features(folder, 2)
    (folder / "Groundtruth" / "TrainTestLabels" / "Labels_cat_Test.txt").unlink()
    (folder / "Low_Level_Features" / "Test_Normalized_WT.dat").unlink()
    with pytest.raises(InputError, match=r"a label list, there is no .*Labels_cat_Test.txt"):
        load_nuswide_features(folder, 2)
    with pytest.raises(InputError, match="must hold low-level features such as"):
        load_nuswide_features(tmp_path / "Groundtruth", 2)


def test_tags_of_users(tmp_path):
    tags = tmp_path / "NUS_WID_Tags"
    tags.mkdir()
    (tags / "TagList1k.txt").write_text("nature\nsky\n")
    (tags / "AllTags1k.txt").write_text("1\t0\n1\t1\n")
    values, names = load_nuswide_tags(tmp_path)
    assert values.tolist() == [[1, 0], [1, 1]]
    assert names == ("nature", "sky")
    (tags / "AllTags1k.txt").write_text("1\t2\n")
    with pytest.raises(FileFormatError, match="must have 0 or 1 for each of the 2 tags"):
        load_nuswide_tags(tmp_path)


REQUESTS = {
    "x": RNG.standard_normal((4, 3)).astype(np.float16),
    "y": np.array([1, 0, 1, 2], np.int16),
    "split": np.array([2, 0, 1, 0], np.int8),
    "domain": np.array([0, 0, 1], np.int16),
    "names": np.array(["a", "b", "c"]),
}


def test_requests_have_intents_within_domains(tmp_path):
    np.savez(tmp_path / "clinc150.npz", **REQUESTS)
    data = load_requests(tmp_path / "clinc150.npz")
    np.testing.assert_array_equal(data.x, REQUESTS["x"][[1, 2, 3, 0]].astype(np.float32))
    assert data.y.tolist() == [0, 1, 2, 1]
    assert data.is_test.tolist() == [False, False, False, True]
    assert data.coarse.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"split": np.array([3, 0, 0, 0])}, "must have 0, 1 or 2 in split, got 3"),
        ({"domain": np.array([0, 0])}, "must have a domain and a name for each intent"),
        ({"y": np.array([1, 2])}, "as many rows in x as in y"),
    ],
)
def test_requests_that_do_not_fit_together_are_named(tmp_path, changes, sentence):
    np.savez(tmp_path / "clinc150.npz", **REQUESTS | changes)
    with pytest.raises(FileFormatError, match=sentence):
        load_requests(tmp_path / "clinc150.npz")


def test_a_collection_numbers_its_queries_after_its_documents(tmp_path):
    documents, queries = RNG.random((5, 3)), RNG.random((2, 3))
    pairs = np.array([[0, 4, 1], [1, 0, 2]])
    np.savez(tmp_path / "npl.npz", documents=documents, queries=queries, qrels=pairs)
    data = load_collection(tmp_path / "npl.npz")
    assert data.judgements.tolist() == [[5, 4, 1], [6, 0, 2]]
    assert data.is_test.tolist() == [False] * 5 + [True] * 2
    pairs[1, 1] = 5
    np.savez(tmp_path / "npl.npz", documents=documents, queries=queries, qrels=pairs)
    with pytest.raises(FileFormatError, match=r"row 1 is \[1, 5, 2\]"):
        load_collection(tmp_path / "npl.npz")
    np.savez(tmp_path / "npl.npz", documents=documents, queries=queries[:, :2], qrels=pairs)
    with pytest.raises(FileFormatError, match="vectors of one length"):
        load_collection(tmp_path / "npl.npz")
