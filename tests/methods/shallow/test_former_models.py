"""Models that an earlier rankbits saved: they load, and encode as they did.

`data/models_0_1.zip` was written when lwh's parameter was `regularisation` and its gamma a fact,
and itq's losses were `quantisation_losses`. It holds the codes of the first 40 digits, too.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import rankbits

ARCHIVE = Path(__file__).parent / "data" / "models_0_1.zip"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    for codes in folder.glob("*/codes.npy"):
        codes.rename(folder / f"{codes.parent.name}.npy")
    return folder


@pytest.mark.parametrize("name", ["itq", "rsh", "lwh", "lsh", "sign"])
def test_a_model_saved_by_an_earlier_version_encodes_as_it_did(folder, name):
    hasher = rankbits.load(folder / name)
    codes = np.load(folder / f"{name}.npy")
    assert np.array_equal(hasher.transform(load_digits().data[:40]), codes)


def test_what_had_another_name_has_the_one_of_today(folder):
    assert rankbits.load(folder / "lwh").regularization == 2e-4
    assert len(rankbits.load(folder / "itq").quantization_losses_) == 5


@pytest.mark.parametrize("name", ["itq", "rsh", "lwh"])
def test_saved_again_it_is_a_model_of_today(folder, name, tmp_path):
    hasher = rankbits.load(folder / name)
    hasher.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    rows = load_digits().data[:40]
    assert np.array_equal(again.project(rows), hasher.project(rows))
    assert again.get_params() == hasher.get_params()
    for file in (tmp_path / "model").iterdir():
        assert b"isation" not in file.read_bytes()
