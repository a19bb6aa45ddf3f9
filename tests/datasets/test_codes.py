import numpy as np
import pytest

from rankbits import BinaryCodes
from rankbits.datasets import load_codes
from rankbits.errors import FileFormatError, InputError


def saved(path, array):
    np.save(path, array)
    return path


@pytest.fixture
def bits():
    return np.random.default_rng(0).integers(0, 2, (9, 20), dtype=np.uint8)


def every_form(bits):
    """The same codes in each form that is told by its values."""
    signs = 2 * bits.astype(np.int8) - 1
    return {
        "packed": np.packbits(bits, axis=1),
        "0/1": bits,
        "bool": bits.astype(bool),
        "int64": bits.astype(np.int64),
        "-1/+1": signs,
        "float signs": signs.astype(np.float64),
        "float 0/1": bits.astype(np.float32),
    }


@pytest.mark.parametrize("form", every_form(np.zeros((1, 20), np.uint8)))
def test_every_form_gives_the_same_codes_when_the_length_is_known(tmp_path, bits, form):
    path = saved(tmp_path / "x.npy", every_form(bits)[form])
    assert load_codes(path, 20) == BinaryCodes.from_bits(bits)
    if form != "packed":
        assert load_codes(path) == BinaryCodes.from_bits(bits)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_real_values_are_codes_only_if_somebody_says_so(tmp_path, bits, dtype):
    values = (2.0 * bits - 1) * np.linspace(0.1, 3, bits.size).reshape(bits.shape)
    path = saved(tmp_path / "x.npy", values.astype(dtype))
    for n_bits in (None, 20):
        with pytest.raises(InputError, match=r"real values such as .*--codes logits.*rankbits fit"):
            load_codes(path, n_bits)
    assert load_codes(path, form="logits") == BinaryCodes.from_bits(bits)


def test_one_real_value_in_the_last_row_is_enough_to_refuse(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbits.datasets._codes._SAMPLE_CELLS", 40)  # two rows at a time
    values = np.ones((9, 20), np.float32)
    path = saved(tmp_path / "x.npy", values)
    assert load_codes(path).bits().all()
    values[8, 19] = 0.25
    with pytest.raises(InputError, match=r"real values such as 0\.25 \(float32 of shape \(9, 20\)"):
        load_codes(saved(path, values))


def test_int8_codes_of_sentence_transformers_are_refused_with_advice_that_works(tmp_path, bits):
    packed = np.packbits(bits[:, :16], axis=1)
    shifted = (packed.astype(np.int16) - 128).astype(np.int8)  # precision="binary"
    path = saved(tmp_path / "x.npy", shifted)
    with pytest.raises(InputError, match=r"precision='binary'.*astype\(np.int16\) \+ 128"):
        load_codes(path, 16)
    advised = (shifted.astype(np.int16) + 128).astype(np.uint8)
    assert load_codes(saved(path, advised), 16) == BinaryCodes.from_bits(bits[:, :16])


@pytest.mark.parametrize("n_bits", range(1, 18))
def test_auto_tells_packed_from_bits_at_every_small_length(tmp_path, n_bits):
    bits = np.random.default_rng(n_bits).integers(0, 2, (30, n_bits), dtype=np.uint8)
    for array in (bits, np.packbits(bits, axis=1)):
        assert load_codes(saved(tmp_path / "x.npy", array), n_bits) == BinaryCodes.from_bits(bits)


def test_saved_codes_carry_their_length(tmp_path, bits):
    codes = BinaryCodes.from_bits(bits)
    codes.save(tmp_path / "x.npy")
    assert load_codes(tmp_path / "x.npy") == codes
    assert load_codes(tmp_path / "x.npy", 20) == codes
    with pytest.raises(InputError, match=r"n_bits is 24.*holds codes of 20"):
        load_codes(tmp_path / "x.npy", 24)


@pytest.mark.parametrize("lost", [3, len(b"rankbits:n_bits=20\n")])
def test_saved_codes_that_lost_their_tail_are_refused(tmp_path, bits, lost):
    path = tmp_path / "x.npy"
    BinaryCodes.from_bits(bits).save(path)
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(FileFormatError, match=r"damaged"):
        load_codes(path, 20)


def test_packed_bytes_without_a_length_are_refused_unless_called_packed(tmp_path, bits):
    path = saved(tmp_path / "x.npy", np.packbits(bits[:, :16], axis=1))
    with pytest.raises(InputError, match=r"uint8 of shape \(9, 2\).*say how many.*--bits"):
        load_codes(path)
    assert load_codes(path, form="packed").n_bits == 16


def test_a_form_that_is_named_is_taken(tmp_path):
    path = saved(tmp_path / "x.npy", np.array([[3, -2, 0]], np.int16))
    assert load_codes(path, form="logits").bits().tolist() == [[1, 0, 0]]
    with pytest.raises(InputError, match=r"x.npy: bits must be all 0/1 or all -1/"):
        load_codes(path, form="bits")
    with pytest.raises(InputError, match=r"form must be one of auto, packed, bits, logits"):
        load_codes(path, form="pack")


@pytest.mark.parametrize(
    ("array", "n_bits", "reason"),
    [
        (np.zeros((3, 7), np.uint8), 64, r"uint8 of shape \(n, 8\) if packed, \(n, 64\) if not"),
        (np.zeros((3, 8), np.int8), 64, r"shape \(n, 64\).*got int8 of shape \(3, 8\)"),
        (np.zeros((3, 8), np.float32), 64, r"got float32 of shape \(3, 8\)"),
        (np.zeros(8, np.uint8), 8, r"shape \(n, columns\).*got uint8 of shape \(8,\)"),
        (np.zeros((0, 8), np.uint8), 64, r"n > 0, got uint8 of shape \(0, 8\)"),
        (np.array([["a", "b"]]), None, "numbers of shape"),
        (np.array([[0.5, np.nan]]), None, "real values such as 0.5"),
        (np.array([[1.0, np.nan]]), None, "real values such as nan"),
        (np.array([[2, 0]]), None, "x.npy: bits must be all 0/1"),
        (np.array([[255]], np.uint8), 5, "must end in 3 zero bits"),
        (np.zeros((3, 8)), 0, "n_bits must be an integer from 1 to 4096, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, array, n_bits, reason):
    path = saved(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=reason) as caught:
        load_codes(path, n_bits)
    assert "\n" not in str(caught.value)


def test_codes_come_from_one_array_of_several(tmp_path, bits):
    np.savez(tmp_path / "x.npz", queries=bits, other=bits[:3])
    assert len(load_codes(f"{tmp_path}/x.npz:other", 20)) == 3
    assert len(load_codes(tmp_path / "x.npz", 20, key="queries")) == 9
