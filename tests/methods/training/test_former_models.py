"""Models and checkpoints written before the training had its present names.

`saved_models` was written by the release before: a few small models, the codes that they gave to
the rows X, and the checkpoint of a finished training.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import rankbits
from rankbits import methods
from rankbits.errors import FileFormatError
from rankbits.methods.training.architecture import Architecture
from rankbits.methods.training.encoders import build_encoder, present_name

FOLDER = Path(__file__).parent / "saved_models"
SAVED = dict(np.load(FOLDER / "codes.npz"))
X, Y = SAVED.pop("X"), SAVED.pop("y")


def rows_of(name):
    return X.reshape(-1, 2, 2, 1) if name.endswith("cnn") else X


@pytest.mark.parametrize("name", SAVED)
def test_a_former_model_gives_the_codes_it_gave(name):
    hasher = rankbits.load(FOLDER / name)
    assert np.array_equal(hasher.transform(rows_of(name)), SAVED[name])


@pytest.mark.parametrize("name", SAVED)
def test_a_former_model_is_saved_again_under_present_names(name, tmp_path):
    rankbits.load(FOLDER / name).save(tmp_path / "model")
    hasher = rankbits.load(tmp_path / "model")
    assert np.array_equal(hasher.transform(rows_of(name)), SAVED[name])


def test_former_parameters_keep_their_values_under_their_present_names():
    params = rankbits.load(FOLDER / "csq").get_params()
    names = ("normalization", "quantization", "center_seed", "hidden")
    assert [params[name] for name in names] == ["layer", 0.01, 3, (8,)]


def test_a_former_model_is_fitted_again():
    hasher = rankbits.load(FOLDER / "talr-ap-mlp")
    assert hasher.fit(X, Y).report_["epochs"] == 2


def test_weights_of_a_former_backbone_find_their_place():
    former = {
        "kind": "linear", "input_shape": [6], "n_bits": 3, "hidden": [], "activation": "relu",
        "normalisation": "none", "dropout": 0.0, "input_dropout": 0.0, "skip": False,
        "n_anchors": 0, "trunk": "efficientnet-lite0", "image_size": 64, "n_members": 0,
        "n_classes": 0, "width": 0,
    }  # fmt: skip
    architecture = Architecture.from_json(former)
    assert (architecture.backbone, architecture.posterior) == ("efficientnet-lite0", 0)
    encoder = build_encoder(architecture, torch.nn.Sequential(torch.nn.Linear(5, 6)))
    names = {"trunk.0.weight", "trunk.0.bias", "head.standardise.mean", "head.standardise.scale",
             "head.body.layers.0.weight", "head.body.layers.0.bias"}  # fmt: skip
    assert {present_name(name) for name in names} == set(encoder.state_dict())


def test_a_former_checkpoint_is_refused_with_what_to_do_and_replaced_if_told(tmp_path):
    shutil.copytree(FOLDER / "checkpoint", tmp_path / "run")
    params = {"n_bits": 8, "epochs": 2, "n_threads": 1, "encoder": "linear", "random_state": 0}
    hasher = methods.get("talr-ap", checkpoint=tmp_path / "run", **params)
    with pytest.raises(FileFormatError, match=r"another version of rankbits .*resume=False"):
        hasher.fit(X, Y)
    assert hasher.set_params(resume=False).fit(X, Y).report_["epochs_resumed"] == 0
    assert hasher.set_params(resume=True).fit(X, Y).report_["epochs_resumed"] == 2
