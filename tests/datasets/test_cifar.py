"""CIFAR's python batches: read as plain data, and nothing that a pickle could do is done."""

import os
import pickle

import numpy as np
import pytest

from rankbits.datasets import is_cifar_folder, load_cifar
from rankbits.errors import FileFormatError, InputError
from realdata import real

RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (18, 32, 32, 3), dtype=np.uint8)
LABELS = [0, 1, 2] * 6


def rows_of(images):
    """As CIFAR stores an image: all red values, then green, then blue."""
    return np.stack(
        [np.concatenate([image[:, :, c].ravel() for c in range(3)]) for image in images]
    )


def dump(path, value, protocol=2):
    path.write_bytes(pickle.dumps(value, protocol))


def cifar10(folder, protocol=2, key=bytes):
    """Five batches of three images, three test images, and names."""

    def word(text):
        return text.encode() if key is bytes else text

    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for place, name in enumerate(names):
        part = slice(3 * place, 3 * place + 3)
        batch = {word("data"): rows_of(IMAGES[part]), word("labels"): LABELS[part]}
        dump(folder / name, batch, protocol)
    dump(
        folder / "batches.meta", {word("label_names"): [word(w) for w in ("a", "b", "c")]}, protocol
    )
    return folder


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
@pytest.mark.parametrize("key", [bytes, str])
def test_images_and_labels_come_back(tmp_path, protocol, key):
    found = load_cifar(cifar10(tmp_path, protocol, key))
    np.testing.assert_array_equal(found.x, IMAGES)
    assert found.x.dtype == np.uint8
    assert found.y.tolist() == LABELS
    assert found.is_test.tolist() == [False] * 15 + [True] * 3
    assert found.names == ("a", "b", "c")
    assert is_cifar_folder(tmp_path)


def test_a_batch_as_python_2_wrote_it(tmp_path):
    """Opcode by opcode: strings are bytes without a codec, arrays are numpy.core.multiarray's."""
    raw = rows_of(IMAGES[:1]).tobytes()

    def string(value):
        return b"T" + len(value).to_bytes(4, "little") + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01(K\x01M\x00\x0ct"
        b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89" + string(raw) + b"tb"
    )
    batch = b"\x80\x02}(U\x04data" + array + b"U\x06labels](K\x02eu."
    cifar10(tmp_path)
    for name in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"):
        (tmp_path / name).write_bytes(batch)
    found = load_cifar(tmp_path)
    np.testing.assert_array_equal(found.x[:5], IMAGES[[0] * 5])
    assert found.y.tolist() == [2] * 5 + LABELS[:3]


def test_cifar100_has_fine_labels_and_their_superclasses(tmp_path):
    for name, part in (("train", slice(0, 12)), ("test", slice(12, 18))):
        fine = LABELS[part]
        coarse = [int(label == 1) for label in fine]
        data = {"data": rows_of(IMAGES[part]), "fine_labels": fine, "coarse_labels": coarse}
        dump(tmp_path / name, data)
    found = load_cifar(tmp_path)
    assert found.y.tolist() == LABELS
    assert found.coarse.tolist() == [0, 1, 0]
    assert found.names == ()
    dump(tmp_path / "test", {**data, "coarse_labels": [1] * 6})
    with pytest.raises(FileFormatError, match="one superclass per class"):
        load_cifar(tmp_path)


class Harm:
    """What a plain unpickler would run."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_calls_something_is_refused_and_calls_nothing(tmp_path, protocol):
    cifar10(tmp_path)
    mark = tmp_path / "harm"
    for call in ((os.mkdir, str(mark)), (eval, f"__import__('os').mkdir({str(mark)!r})")):
        dump(tmp_path / "data_batch_2", {"data": Harm(*call)}, protocol)
        with pytest.raises(FileFormatError, match="plain data, this one asks for"):
            load_cifar(tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        np.array([{}], object),
        np.zeros((1, 3072), np.float32),
        np.zeros((1, 3072), np.int32),
        np.zeros(3072, np.uint8),
        np.zeros((1, 3071), np.uint8),
        [1, 2],
        None,
    ],
)
def test_what_is_no_image_matrix_is_refused(tmp_path, value):
    cifar10(tmp_path)
    dump(tmp_path / "test_batch", {"data": value, "labels": [0]})
    with pytest.raises(FileFormatError, match="test_batch"):
        load_cifar(tmp_path)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, "2"], [0, 1, True], None, [0, 1, 3], [0, 1, -1]])
def test_labels_that_do_not_fit_are_refused(tmp_path, labels):
    cifar10(tmp_path)
    dump(tmp_path / "test_batch", {"data": rows_of(IMAGES[:3]), "labels": labels})
    with pytest.raises(FileFormatError):
        load_cifar(tmp_path)


def test_an_array_whose_bytes_do_not_fill_its_shape_is_refused(tmp_path):
    cifar10(tmp_path)
    whole = (tmp_path / "data_batch_1").read_bytes()
    assert whole.count(b"K\x03M\x00\x0c") == 1  # the shape (3, 3072)
    (tmp_path / "data_batch_1").write_bytes(whole.replace(b"K\x03M\x00\x0c", b"K\x04M\x00\x0c"))
    with pytest.raises(FileFormatError, match=r"shape \(4, 3072\) does not have 9216 bytes"):
        load_cifar(tmp_path)


def test_damaged_batches_are_refused_in_one_line(tmp_path):
    cifar10(tmp_path)
    whole = (tmp_path / "data_batch_1").read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", whole[:100], b"\x80\x02]q\x00.", b"no pickle\nat all"]
    for _ in range(200):
        edited = bytearray(whole[:200] + whole[-100:])
        edited[rng.integers(len(edited))] = rng.integers(256)
        damaged.append(bytes(edited))
    for content in damaged:
        (tmp_path / "data_batch_1").write_bytes(content)
        with pytest.raises(FileFormatError) as caught:
            load_cifar(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_folder_without_batches_is_refused(tmp_path):
    assert not is_cifar_folder(tmp_path)
    with pytest.raises(InputError, match=r"data_batch_1 \(CIFAR-10\) or train"):
        load_cifar(tmp_path)


def test_real_batches_of_cifar10():
    folder = real("cifar-10-batches-py")
    found = load_cifar(folder)
    assert found.x.shape == (60000, 32, 32, 3)
    assert np.bincount(found.y).tolist() == [6000] * 10
