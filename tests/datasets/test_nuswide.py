"""NUS-WIDE's text files."""

import numpy as np
import pytest

from rankbits.datasets import load_nuswide
from rankbits.errors import FileFormatError, InputError
from realdata import real

TAGS = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1], [0, 0, 1], [0, 1, 0]], np.uint8)
CONCEPTS = ("airport", "book", "sky")


def written(folder, ending="\n", images=True):
    labels = folder / "Groundtruth" / "AllLabels"
    labels.mkdir(parents=True)
    for name, column in zip(CONCEPTS, TAGS.T, strict=True):
        text = "".join(f"{value}{ending}" for value in column)
        (labels / f"Labels_{name}.txt").write_bytes(text.encode())
    (labels / "readme.txt").write_text("about")
    if images:
        (folder / "ImageList").mkdir()
        names = "".join(f"actor\\{row:04}_7.jpg\r\n" for row in range(5))
        (folder / "ImageList" / "Imagelist.txt").write_bytes(names.encode())
    return folder


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
def test_label_lists_stand_side_by_side(tmp_path, ending):
    found = load_nuswide(written(tmp_path, ending))
    np.testing.assert_array_equal(found.tags, TAGS)
    assert found.concepts == CONCEPTS
    assert found.images[1] == "actor/0001_7.jpg"
    assert found.rows.tolist() == [0, 1, 2, 3, 4]


def test_the_most_frequent_concepts_and_the_images_that_show_one(tmp_path):
    found = load_nuswide(written(tmp_path), n_concepts=2)
    assert found.concepts == ("sky", "book")
    assert found.rows.tolist() == [0, 2, 3, 4]
    assert found.tags.tolist() == [[1, 0], [1, 1], [1, 0], [0, 1]]
    assert found.images == tuple(f"actor/{row:04}_7.jpg" for row in (0, 2, 3, 4))
    assert len(found) == 4


def test_the_image_list_may_be_missing(tmp_path):
    assert load_nuswide(written(tmp_path, images=False), n_concepts=1).images == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0\n2\n0\n0\n0\n", r"Labels_book.txt, line 2 must be 0 or 1, got b'2'"),
        ("0\n0\n0\n0\n10\n", r"Labels_book.txt, line 5 must be 0 or 1"),
        ("0\n0\n0\n0\n1\x00\n", r"Labels_book.txt, line 5 must be 0 or 1"),
        ("", r"Labels_book.txt, line 1 must be 0 or 1, got nothing"),
        ("0\n1\n", "airport has 5 lines and book has 2"),
    ],
)
def test_a_damaged_label_list_is_refused(tmp_path, text, sentence):
    written(tmp_path)
    (tmp_path / "Groundtruth" / "AllLabels" / "Labels_book.txt").write_text(text)
    with pytest.raises(FileFormatError, match=sentence):
        load_nuswide(tmp_path)


def test_an_image_list_out_of_step_and_folders_without_labels_are_refused(tmp_path):
    with pytest.raises(InputError, match="must hold Groundtruth/AllLabels"):
        load_nuswide(tmp_path)
    written(tmp_path)
    (tmp_path / "ImageList" / "Imagelist.txt").write_text("one.jpg\n")
    with pytest.raises(FileFormatError, match=r"must name 5 images.*got 1"):
        load_nuswide(tmp_path)
    with pytest.raises(InputError, match="n_concepts must be an integer from 1 to 3"):
        load_nuswide(tmp_path, n_concepts=4)
    for file in (tmp_path / "Groundtruth" / "AllLabels").glob("Labels_*"):
        file.unlink()
    with pytest.raises(InputError, match=r"must hold files named Labels_CONCEPT.txt"):
        load_nuswide(tmp_path)


def test_real_label_lists():
    folder = real("nus-wide")
    found = load_nuswide(folder, n_concepts=21)
    assert 190_000 < len(found) < 200_000
