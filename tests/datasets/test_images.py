"""Pictures: folders of images, and mosaics of CIFAR's."""

import io

import numpy as np
import pytest
from PIL import Image

from rankbits.datasets import load_cifar_mosaics, load_images
from rankbits.datasets.pictures import list_pictures
from rankbits.errors import FileFormatError, InputError
from realdata import real

RNG = np.random.default_rng(4)
IMAGES = RNG.integers(0, 256, (18, 32, 32, 3), dtype=np.uint8)


def picture(pixels, kind="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


def mosaic(images, columns):
    """Row by row, as a wall of pictures is read."""
    rows = [np.hstack(images[start : start + columns]) for start in range(0, len(images), columns)]
    return picture(np.vstack(rows), "WEBP", lossless=True)


def written(folder, **changes):
    """Two mosaics of six training images and one of six test images."""
    train = [mosaic(IMAGES[:6], 3), mosaic(IMAGES[6:12], 2)]
    arrays = {
        "webp_train": np.frombuffer(b"".join(train), np.uint8),
        "len_train": np.array([len(part) for part in train]),
        "y_train": np.arange(12, dtype=np.uint8) % 3,
        "webp_test": np.frombuffer(mosaic(IMAGES[12:], 6), np.uint8),
        "len_test": np.array([len(mosaic(IMAGES[12:], 6))]),
        "y_test": np.zeros(6, np.uint8),
        "classes": np.array(["a", "b", "c"]),
        **changes,
    }
    np.savez(folder / "mosaics.npz", **{k: v for k, v in arrays.items() if v is not None})
    return folder / "mosaics.npz"


def test_mosaics_come_back_image_by_image(tmp_path):
    found = load_cifar_mosaics(written(tmp_path))
    np.testing.assert_array_equal(found.x, IMAGES)
    assert found.y.tolist() == [0, 1, 2] * 4 + [0] * 6
    assert found.is_test.sum() == 6
    assert found.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"y_test": None}, "it has no y_test"),
        ({"y_test": np.zeros(5, int)}, "as many rows in webp_test as in y_test, got 6 and 5"),
        ({"len_test": np.array([3])}, "lengths that add up"),
        ({"len_test": np.array([1.0])}, "lengths that add up"),
        ({"webp_test": np.zeros(9, np.uint8), "len_test": np.array([9])}, "not a readable mosaic"),
        (
            {
                "webp_test": np.frombuffer(picture(IMAGES[0]), np.uint8),
                "len_test": np.array([len(picture(IMAGES[0]))]),
            },
            "not a readable mosaic",
        ),
        (
            {
                "webp_test": np.frombuffer(picture(IMAGES[0, :20], "WEBP"), np.uint8),
                "len_test": np.array([len(picture(IMAGES[0, :20], "WEBP"))]),
            },
            "one of 20 x 32",
        ),
    ],
)
def test_mosaics_that_are_none_are_refused(tmp_path, changes, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        load_cifar_mosaics(written(tmp_path, **changes))


def test_lengths_that_run_backwards_are_refused(tmp_path):
    whole = len(mosaic(IMAGES[12:], 6))
    with pytest.raises(FileFormatError, match="lengths that add up"):
        load_cifar_mosaics(written(tmp_path, len_test=np.array([-5, whole + 5])))


def folder_of_images(folder):
    for label, rows in (("dog", [0, 1]), ("cat", [2]), (".cache", [3])):
        (folder / label).mkdir()
        for row in rows:
            (folder / label / f"{row}.png").write_bytes(picture(IMAGES[row]))
    (folder / "dog" / "notes.txt").write_text("good dogs")
    (folder / "readme.png").write_bytes(picture(IMAGES[5]))
    return folder


def test_a_sub_folder_is_a_class(tmp_path):
    (tmp_path / "empty").mkdir()
    found = load_images(folder_of_images(tmp_path))
    np.testing.assert_array_equal(found.x, IMAGES[[2, 0, 1]])
    assert found.names == ("cat", "dog")
    assert found.y.tolist() == [0, 1, 1]
    assert found.files == ("cat/2.png", "dog/0.png", "dog/1.png")
    assert len(found) == 3


def test_a_flat_folder_has_pictures_and_no_labels(tmp_path):
    for row in (3, 1):
        (tmp_path / f"{row}.PNG").write_bytes(picture(IMAGES[row]))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("not a picture")
    found = load_images(tmp_path)
    np.testing.assert_array_equal(found.x, IMAGES[[1, 3]])
    assert (found.y, found.names, found.files) == (None, (), ("1.PNG", "3.PNG"))


def test_names_that_take_two_lines_are_refused(tmp_path):
    (tmp_path / "a\nb.png").write_bytes(picture(IMAGES[0]))
    with pytest.raises(InputError, match=r"no line breaks, got 'a\\nb.png'"):
        load_images(tmp_path)


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_blocks_of_a_folder_are_its_pictures_in_the_size_that_is_given(tmp_path, step):
    rows = list_pictures(folder_of_images(tmp_path)).rows((16, 20))
    everything = np.concatenate(list(rows.blocks(0, step)))
    assert everything.shape == (rows.n_rows, *rows.row_shape) == (3, 16, 20, 3)
    np.testing.assert_array_equal(
        np.concatenate(list(rows.blocks(step, step)) or [everything[3:]]), everything[step:]
    )
    whole = list_pictures(tmp_path).rows((32, 32))
    np.testing.assert_array_equal(
        np.concatenate(list(whole.blocks(0, step))), load_images(tmp_path).x
    )


def test_another_file_in_a_folder_makes_it_another_input(tmp_path):
    before = list_pictures(folder_of_images(tmp_path)).rows((32, 32)).identity()
    assert before == list_pictures(tmp_path).rows((32, 32)).identity()
    (tmp_path / "cat" / "9.png").write_bytes(picture(IMAGES[9]))
    assert before != list_pictures(tmp_path).rows((32, 32)).identity()


def test_images_of_several_sizes_need_a_size(tmp_path):
    folder_of_images(tmp_path)
    (tmp_path / "cat" / "wide.jpg").write_bytes(picture(np.full((4, 9, 3), 77, np.uint8), "JPEG"))
    with pytest.raises(InputError, match=r"one size.*\(32, 32\).*\(4, 9\); resize them with size="):
        load_images(tmp_path)
    found = load_images(tmp_path, size=16)
    assert found.x.shape == (4, 16, 16, 3)
    assert abs(found.x[1].astype(int) - 77).max() <= 1


def test_grey_and_transparent_images_become_rgb(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(picture(IMAGES[0, :, :, 0]))
    (tmp_path / "a" / "2.png").write_bytes(picture(np.dstack([IMAGES[1], IMAGES[0, :, :, 0]])))
    found = load_images(tmp_path)
    np.testing.assert_array_equal(found.x[0], np.repeat(IMAGES[0, :, :, :1], 3, axis=2))
    np.testing.assert_array_equal(found.x[1], IMAGES[1])


def test_damaged_images_and_empty_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"must hold pictures .* by themselves or in a sub-folder"):
        load_images(tmp_path)
    with pytest.raises(InputError, match="there is no"):
        load_images(tmp_path / "none")
    folder_of_images(tmp_path)
    with pytest.raises(InputError, match="size must be"):
        load_images(tmp_path, size=0)
    for content in (b"", b"text", picture(IMAGES[0])[:50], picture(IMAGES[0], "WEBP")):
        (tmp_path / "cat" / "2.png").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"2.png is not a readable PNG"):
            load_images(tmp_path)


def test_real_mosaics_of_cifar10():
    path = real("cifar10_webp.npz")
    found = load_cifar_mosaics(path)
    assert found.x.shape == (60000, 32, 32, 3)
    assert np.bincount(found.y).tolist() == [6000] * 10
    blue_of_planes, blue_of_frogs = (found.x[found.y == k, :, :, 2].mean() for k in (0, 6))
    assert blue_of_planes > blue_of_frogs + 40  # the sky
