"""Folders of pictures through the command line: fitted, encoded under their names, found again."""

import json
import os

import numpy as np
import pytest

import rankbits
from commands import Command, assert_one_line
from rankbits import BinaryCodes
from rankbits.datasets import load_images

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("torch")

fit, encode = Command("fit"), Command("encode")
CNN = ["--method", "talr-ap", "--encoder", "cnn", "--bits", 8, "--param", "epochs=1"]
CNN += ["--param", "hidden=[4]", "--param", "n_restarts=1", "--out", "model"]


def write_pictures(folder, names, seed, sizes=((12, 12),)):
    rng = np.random.default_rng(seed)
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        height, width = sizes[number % len(sizes)]
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pictures(
        tmp_path / "classes", [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(9)], 0
    )
    write_pictures(tmp_path / "flat", [f"{k}.png" for k in range(7)], 1, ((12, 12), (9, 20)))
    return tmp_path


@pytest.mark.parametrize("encoder", ["cnn", "resnet"])
def test_sub_folders_are_the_labels_of_fit(folder, encoder):
    printed = fit.printed("classes", *CNN, "--encoder", encoder)
    data = load_images("classes")
    hasher = rankbits.methods.get(
        "talr-ap", encoder=encoder, n_bits=8, epochs=1, hidden=[4], n_restarts=1, random_state=0
    ).fit(data.x, data.y)
    assert (printed["items"], printed["features"]) == (18, 12 * 12 * 3)
    assert printed["fingerprint"] == hasher.encode(data.x).model


def test_pictures_of_a_flat_folder_are_learned_from_the_features_of_the_backbone(folder):
    pytest.importorskip("efficientnet_lite_pytorch")
    flat = ["flat", "--method", "talr-ap", "--bits", 8, "--param", "epochs=1", "--out", "model"]
    assert_one_line(fit(*flat, "--image-size", 12), "y must be given", "encoder='backbone'")
    assert_one_line(
        fit(*flat, "--encoder", "backbone", "--neighbors", "0.1=1"), "leave --neighbors out"
    )
    small = ["--encoder", "backbone", "--param", "image_size=32"]
    printed = fit.printed(*flat, *small, "--report")
    assert (printed["items"], printed["report"]["supervision"]["y"]) == (7, "ranks")
    assert encode.printed("model", "flat", "--out", "codes.npy")["items"] == 7


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_pictures_are_encoded_under_their_names(folder, ending):
    fit.printed("classes", *CNN)
    printed = encode.printed("model", "flat", "--out", f"codes{ending}")
    pictures = load_images("flat", size=12)
    assert BinaryCodes.load(f"codes{ending}") == rankbits.load("model").encode(pictures.x)
    assert printed["names"] == "codes.names.txt"
    with open("codes.names.txt") as file:
        assert file.read().splitlines() == list(pictures.files) == [f"{k}.png" for k in range(7)]


def test_several_folders_are_told_apart_by_their_names(folder):
    fit.printed("classes", *CNN)
    encode.printed("model", "flat", "classes", "--out", "codes.npy")
    with open("codes.names.txt") as file:
        names = file.read().splitlines()
    assert (names[0], names[7], len(names)) == ("flat/0.png", "classes/cat/0.png", 25)
    assert len(BinaryCodes.load("codes.npy")) == 25


def test_pictures_of_several_sizes_need_a_size(folder):
    write_pictures(folder / "classes", ["dog/wide.png"], 2, ((9, 20),))
    assert_one_line(fit("classes", *CNN), "pictures must have one size", "--image-size")
    assert fit.printed("classes", *CNN, "--image-size", 10)["features"] == 300
    assert rankbits.load("model").input_shape_ == (10, 10, 3)
    np.save("x.npy", np.zeros((9, 4)))
    assert_one_line(
        fit("x.npy", *CNN, "--image-size", 10, "--overwrite"), "--image-size needs a folder"
    )


def test_a_search_prints_the_names_of_what_it_finds(folder):
    fit.printed("classes", *CNN)
    encode.printed("model", "classes", "--out", "codes.npy")
    index = Command("index")
    index.printed("build", "codes.npy", "--out", "live")
    search = ["search", "live", "codes.npy", "-k", 2, "--names", "codes.names.txt"]
    printed = index.printed(*search)
    files = load_images("classes").files
    assert printed["names"] == [[files[item] for item in ids] for ids in printed["ids"]]
    index.printed(*search, "--out", "found.npz")
    with np.load("found.npz") as arrays:
        assert arrays["names"].tolist() == printed["names"]
    (folder / "few.txt").write_text("one\ntwo\n")
    assert_one_line(index(*search[:-1], "few.txt"), "few.txt must have a line for each id")


def test_a_folder_where_a_file_is_wanted_is_named_as_one(folder):
    rankbits.methods.get("lsh", n_bits=8, random_state=0).fit(np.eye(5)).save("lsh")
    assert_one_line(
        encode("lsh", "flat", "--out", "c.npy"), "rows of shape (5,)", "flat is a folder"
    )
    itq = ["--method", "itq", "--bits", 8, "--out", "m"]
    assert_one_line(fit("flat", *itq), "flat is a folder", "--method talr-ap --encoder backbone")
    assert_one_line(fit("classes", *CNN, "--neighbors", "0.1=1"), "--neighbors needs feature")
    os.mkdir("empty")
    assert_one_line(fit("empty", *CNN), "folder must hold pictures", "empty has none")
    assert_one_line(
        fit("classes", *CNN, "--labels", "flat"), "path must name a file, flat is a folder"
    )
    assert_one_line(
        Command("index")("build", "flat", "--out", "live"),
        "path must name a file, flat is a folder",
    )


def test_names_of_an_interrupted_run_wait_for_the_codes(folder, monkeypatch):
    fit.printed("classes", *CNN)
    (folder / "codes.names.txt").write_text("old\n")
    BinaryCodes.from_bits(np.eye(1, 8)).save("codes.npy")
    bad = folder / "flat" / "3.png"
    content = bad.read_bytes()
    bad.write_bytes(content[:40])
    assert_one_line(encode("model", "flat", "--out", "codes.npy"), "3.png is not a readable PNG")
    assert (folder / "codes.names.txt").read_text() == "old\n"
    bad.write_bytes(content)
    assert json.loads(encode("model", "flat", "--out", "codes.npy").stdout)["items"] == 7
    assert (folder / "codes.names.txt").read_text().startswith("0.png\n")


def test_a_text_file_of_the_users_is_not_replaced_by_names(folder):
    fit.printed("classes", *CNN)
    (folder / "codes.names.txt").write_text("my own list")
    words = ("model", "classes", "--out", "codes.npy")
    assert_one_line(encode(*words), "codes.names.txt would be replaced")
    assert (folder / "codes.names.txt").read_text() == "my own list"
    (folder / "codes.names.txt").unlink()
    for _ in range(2):  # names of codes that are replaced go with them
        encode.printed(*words)
