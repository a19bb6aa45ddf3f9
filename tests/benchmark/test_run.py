"""Runs: the numbers that the functions below would give, kept and not repeated."""

import collections
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import rankbits
from rankbits import affinity, methods
from rankbits.benchmark import (
    LabelledPerClass,
    Near,
    NewClasses,
    PerClass,
    Sizes,
    protocol,
    run,
)
from rankbits.benchmark._sources import load_source
from rankbits.benchmark._store import settings_hash
from rankbits.benchmark._summary import summarise
from rankbits.datasets import load_features
from rankbits.errors import FileFormatError, InputError
from rankbits.methods import Additive

S1 = replace(protocol("cifar10-s1"), split=PerClass(queries=4, training=20))
CODE_USE = ("n_distinct", "share_of_space", "collision_rate", "entropy_bits")
DISTANCES = replace(
    protocol("distance-ndcg"),
    split=Sizes(50, 400, 100),
    relevance=Near((0.2, 0.1), (1, 8)),
)


GROWN = replace(
    protocol("cifar100-grown"), data="cifar10", split=NewClasses(6, 200, 15, sees_items=True)
)


def test_known_and_new_classes_are_scored_apart_and_labels_of_the_others_are_not_seen(data_folder):
    result = run(GROWN, data_folder, "additive", 16, queries="real")
    data = load_features(data_folder / "cifar10_tiny.npz")
    split = GROWN.split.draw(data, 0)
    y = np.array([-1 if row in split.unlabelled else data.y[row] for row in split.database])
    hasher = Additive(16, classes="grow", random_state=0).fit(data.x[split.database], y)
    codes = hasher.encode(data.x[split.database])
    found = {name: row["mean"] for name, row in result["runs"][0]["metrics"].items()}
    assert list(found) == ["AP", "AP of new classes", "AP of known classes"]
    for kind, rows in split.kinds.items():
        same_class = affinity.classes(data.y[rows], data.y[split.database])
        weights = hasher.project_queries(data.x[rows])
        scored = rankbits.evaluate(None, codes, same_class, "AP", query_weights=weights)
        assert found[f"AP of {kind}"] == pytest.approx(scored.mean["AP"], abs=1e-12)
    assert found["AP"] == pytest.approx(np.mean(list(found.values())[1:]))
    assert (
        result["summary"][0]["metrics"]["AP of new classes"]["mean"] == found["AP of new classes"]
    )


def test_methods_that_would_learn_a_class_of_rows_without_labels_are_refused(data_folder):
    with pytest.raises(InputError, match="methods must be among itq, additive under cifar100-gr"):
        run(GROWN, data_folder, "talr-ap", 16, queries="real")


def test_a_method_that_takes_rows_without_labels_gets_them_apart(data_folder, monkeypatch):
    semi = replace(protocol("cifar10-s1-semi"), split=LabelledPerClass(4, 20), defaults={})
    data, got = load_features(data_folder / "cifar10_tiny.npz"), {}
    fit = type(methods.get("talr-ap")).fit

    def watch(self, x, y=None, query_x=None, judgements=None, *, unlabelled=None):
        got.update(x=x, y=y, unlabelled=unlabelled)
        return fit(self, x, y)

    monkeypatch.setattr(type(methods.get("talr-ap")), "fit", watch)
    run(semi, data_folder, params={"epochs": 1})
    split = semi.split.draw(data, 0)
    labelled = PerClass(4, 20).draw(data, 0).training
    assert np.array_equal(got["x"], data.x[labelled])
    assert np.array_equal(got["y"], data.y[labelled])
    assert np.array_equal(got["unlabelled"], data.x[split.unlabelled])


def test_a_run_is_fit_encode_evaluate_on_the_rows_of_the_split(data_folder):
    result = run(S1, data_folder, "itq", 8, split_seeds=[5], metrics=["P@10"])
    found = result["runs"][0]
    data = load_features(data_folder / "cifar10_tiny.npz")
    split = S1.split.draw(data, 5)
    hasher = methods.get("itq", n_bits=8, random_state=0).fit(data.x[split.training])
    database = hasher.encode(data.x[split.database])
    wanted = rankbits.evaluate(
        hasher.encode(data.x[split.queries]),
        database,
        affinity.classes(data.y[split.queries], data.y[split.database]),
        ["AP", "AP.worst", "AP.best", "P@r2", "P@10"],
    )
    assert {name: row["mean"] for name, row in found["metrics"].items()} == wanted.mean
    items_on_code = collections.Counter(map(tuple, database.bits().tolist()))
    codes_with_items = collections.Counter(items_on_code.values())
    assert found["code_use"]["occupancy"] == sorted(map(list, codes_with_items.items()))
    assert found["code_use"]["n_distinct"] == len(items_on_code)
    assert found["code_use"]["share_of_space"] == len(items_on_code) / 256
    shares = np.array(list(items_on_code.values())) / 6260
    entropy = -(shares * np.log2(shares)).sum()
    assert result["summary"][0]["code_use"]["entropy_bits"] == pytest.approx(entropy)
    assert found["split"] == {
        "hash": split.hash,
        "queries": 40,
        "database": 6260,
        "training": 200,
    }
    assert found["metrics"]["AP"]["conventions"]["ties"].startswith("expectation")
    assert set(found["seconds"]) == {"fit", "encode", "evaluate"}
    assert found["environment"]["numpy"] == np.__version__


def test_real_valued_queries_are_ranked_by_their_weights(data_folder, tmp_path):
    arguments = (S1, data_folder, "itq", 8)
    by_weights = run(*arguments, split_seeds=[5], queries="real", out=tmp_path)["runs"][0]
    data = load_features(data_folder / "cifar10_tiny.npz")
    split = S1.split.draw(data, 5)
    hasher = methods.get("itq", n_bits=8, random_state=0).fit(data.x[split.training])
    expected = rankbits.evaluate(
        None,
        hasher.encode(data.x[split.database]),
        affinity.classes(data.y[split.queries], data.y[split.database]),
        ["AP"],
        query_weights=hasher.project_queries(data.x[split.queries]),
    )
    assert by_weights["metrics"]["AP"]["mean"] == expected.mean["AP"]
    assert list(by_weights["metrics"]) == ["AP", "AP.worst", "AP.best"]  # weights have no radius
    by_bits = run(*arguments, split_seeds=[5], out=tmp_path)["runs"][0]
    assert by_bits["metrics"]["AP"]["mean"] != expected.mean["AP"]  # not the file of the other
    with pytest.raises(InputError, match="queries must be one of"):
        run(*arguments, queries="floats")
    with pytest.raises(InputError, match="queries must be bits"):
        run(DISTANCES, data_folder, "itq", 8, queries="real")


def test_a_method_without_query_bits_is_refused_before_it_is_fitted(data_folder, monkeypatch):
    done = run(S1, data_folder, "additive", 8, split_seeds=[5], queries="real")
    assert done["runs"][0]["metrics"]
    monkeypatch.setattr(Additive, "fit", None)
    with pytest.raises(InputError, match=r"queries must be 'real' for additive.*--by weights"):
        run(S1, data_folder, "additive", 8, split_seeds=[5])


def test_seed_i_draws_split_i_and_the_codes(data_folder):
    runs = run(S1, data_folder, ["lsh"], [8], seeds=3)["runs"]
    seeds = [(row["settings"]["split_seed"], row["settings"]["seed"]) for row in runs]
    assert seeds == [(0, 0), (1, 1), (2, 2)]
    assert len({row["split"]["hash"] for row in runs}) == 3
    again = run(S1, data_folder, ["lsh"], [8], seeds=3)["runs"]
    assert [row["metrics"] for row in again] == [row["metrics"] for row in runs]


def test_split_seeds_are_drawn_each_with_every_seed(data_folder):
    runs = run(S1, data_folder, "lsh", 8, seeds=2, split_seeds=[7, 4])["runs"]
    seeds = [(row["settings"]["split_seed"], row["settings"]["seed"]) for row in runs]
    assert seeds == [(7, 0), (7, 1), (4, 0), (4, 1)]
    assert runs[0]["split"] == runs[1]["split"] != runs[2]["split"]
    assert runs[0]["metrics"] != runs[1]["metrics"]


def test_runs_stand_by_method_and_length_whatever_the_order_of_work(data_folder):
    result = run(S1, data_folder, ["sign", "lsh"], [8, 4], seeds=2)
    order = [(row["settings"]["method"], row["settings"]["bits"]) for row in result["runs"]]
    assert order == [(m, b) for m in ("sign", "lsh") for b in (8, 4) for _ in range(2)]
    assert [(row["method"], row["bits"]) for row in result["summary"]] == order[::2]


def test_the_summary_is_mean_and_sample_deviation(data_folder):
    result = run(S1, data_folder, "lsh", 12, seeds=3)
    values = [row["metrics"]["AP"]["mean"] for row in result["runs"]]
    (row,) = result["summary"]
    assert row["runs"] == 3
    assert row["metrics"]["AP"]["mean"] == pytest.approx(np.mean(values), rel=1e-15)
    assert row["metrics"]["AP"]["sd"] == pytest.approx(np.std(values, ddof=1), rel=1e-12)
    fits = [run["seconds"]["fit"] for run in result["runs"]]
    assert row["seconds"]["fit"] == pytest.approx(np.mean(fits))
    beside = {found["method"]: found["value"] for found in row["published"]}
    assert beside["TALR-AP"] == 0.732
    assert "GreedyHash" not in beside  # it has no value at 12 bits


def test_the_summary_by_hand():
    def result(method, value, seconds):
        return {
            "settings": {"method": method, "bits": 8},
            "metrics": {"AP": {"mean": value}},
            "code_use": dict.fromkeys(CODE_USE, 10 * value),
            "seconds": {"fit": seconds},
        }

    rows = summarise([result("a", 0.2, 1.0), result("b", 0.9, 1.0), result("a", 0.6, 3.0)])
    assert [row["method"] for row in rows] == ["a", "b"]
    assert rows[0]["metrics"]["AP"]["mean"] == pytest.approx(0.4)
    assert rows[0]["metrics"]["AP"]["sd"] == pytest.approx(0.08**0.5)
    assert rows[0]["seconds"]["fit"] == 2.0
    assert rows[0]["code_use"] == pytest.approx(dict.fromkeys(CODE_USE, 4.0))
    assert rows[1]["metrics"]["AP"] == {"mean": 0.9, "sd": None}


def test_a_run_that_is_there_is_not_repeated(data_folder, tmp_path):
    seen = []
    arguments = {"seeds": 2, "out": tmp_path / "new" / "results"}

    def call(**changes):
        seen.clear()
        return run(
            S1, data_folder, "lsh", 8, report=lambda _, old: seen.append(old), **arguments | changes
        )

    first = call()
    assert seen == [False, False]
    files = sorted((tmp_path / "new" / "results").iterdir())
    assert len(files) == 2
    assert json.loads(files[0].read_text()) == first["runs"][0]
    assert call() == first
    assert seen == [True, True]
    assert call(seeds=3)["runs"][:2] == first["runs"]
    assert seen == [True, True, False]
    assert call(n_threads=1)["runs"] == first["runs"]
    assert seen == [True, True]  # threads change no number
    call(metrics=["RR"])
    assert seen == [False, False]
    call(split_seeds=[0])
    assert seen == [True, False]  # split 0 with seed 0 is there, with seed 1 it is not


def test_a_stopped_table_goes_on_where_it_stopped(data_folder, tmp_path):
    def stop(_, old):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(S1, data_folder, "lsh", [4, 8], out=tmp_path, report=stop)
    seen = []
    run(S1, data_folder, "lsh", [4, 8], out=tmp_path, report=lambda _, old: seen.append(old))
    assert seen == [True, False]


@pytest.mark.parametrize("content", ["", "[]", '{"rankbits_bench": 1}', "[" * 100_000])
def test_a_damaged_file_is_run_again(data_folder, tmp_path, content):
    whole = run(S1, data_folder, "sign", 4, out=tmp_path)["runs"]
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    again = run(S1, data_folder, "sign", 4, out=tmp_path)["runs"]
    assert again[0]["metrics"] == whole[0]["metrics"]
    assert json.loads(file.read_text()) == again[0]


def test_other_data_under_the_same_name_is_run_again(data_folder, tmp_path):
    with np.load(data_folder / "cifar10_tiny.npz") as stored:
        arrays = {key: stored[key].copy() for key in stored}
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "cifar10_tiny.npz", **arrays)
    seen = []
    for value in (None, 9.0):
        if value is not None:
            arrays["x_train"][0, 0] = value
            np.savez(tmp_path / "data" / "cifar10_tiny.npz", **arrays)
        for place in (data_folder, tmp_path / "data"):
            run(S1, place, "sign", 4, out=tmp_path / "o", report=lambda _, old: seen.append(old))
    assert seen == [False, True, True, False]


def test_the_order_of_settings_does_not_matter_and_their_values_do():
    a = settings_hash({"bits": 8, "params": {"x": 1, "y": [2.5]}})
    assert a == settings_hash({"params": {"y": [2.5], "x": 1}, "bits": 8})
    assert a != settings_hash({"bits": 8, "params": {"x": 1, "y": [2.50001]}})


def test_parameters_for_all_methods_for_one_and_by_the_protocol(data_folder):
    chosen = replace(S1, defaults={"sign": {"center": False, "choose": "variance"}})
    runs = run(chosen, data_folder, ["sign", "lsh"], 4, params={"sign.choose": "first"})["runs"]
    assert runs[0]["settings"]["params"] == {"center": False, "choose": "first"}
    assert runs[1]["settings"]["params"] == {}
    found = run(chosen, data_folder, ["sign"], 4, params={"center": True})["runs"][0]
    assert found["settings"]["params"] == {"center": True, "choose": "variance"}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"protocol_name": "cifar10"}, "protocol must be one of cifar10-s1"),
        ({"methods": ["lsh", "nope"]}, "name must be one of"),
        ({"methods": []}, "methods and bits must not be empty"),
        ({"bits": [8, 0]}, "bits must be an integer from 1 to 4096, got 0"),
        ({"bits": [True]}, "bits must be an integer"),
        ({"bits": []}, "methods and bits must not be empty"),
        ({"seeds": 0}, "seeds must be an integer >= 1"),
        ({"split_seeds": [-1]}, "split_seeds must be an integer >= 0"),
        ({"n_threads": 0}, "n_threads must be"),
        ({"params": {"depth": 3}}, "lsh has no parameter 'depth'"),
        ({"params": {"itq.x": 3}}, "params must be of a method that is run, 'itq.x' is of 'itq'"),
        ({"params": {"n_bits": 3}}, "params must not have n_bits"),
        ({"params": {"lsh.random_state": 3}}, "params must not have random_state"),
        ({"metrics": ["mAP"]}, "unknown metric 'mAP'"),
        ({"data": "nowhere"}, "data must name a folder or a file, there is no nowhere"),
    ],
)
def test_whatever_is_wrong_is_said_before_any_work(data_folder, tmp_path, changes, sentence):
    arguments = {"protocol_name": S1, "data": data_folder, "methods": ["lsh"], "bits": [8]}
    with pytest.raises(InputError, match=sentence):
        run(**arguments | {"out": tmp_path / "o"} | changes)
    assert not list(tmp_path.glob("o/*"))


def test_out_must_be_a_folder(data_folder, tmp_path):
    (tmp_path / "o").write_text("")
    with pytest.raises(InputError, match="out must name a folder"):
        run(S1, data_folder, "lsh", 8, out=tmp_path / "o")


def test_tags_and_their_numbers(data_folder):
    for name, metric in (("corel5k-ap", "AP"), ("corel5k-ndcg", "nDCG")):
        result = run(name, data_folder, ["sign"], [6])
        assert list(result["summary"][0]["metrics"]) == [metric]
        assert result["runs"][0]["split"]["queries"] == 15
    with pytest.raises(InputError, match="data must have multi-hot tags"):
        run("corel5k-ap", data_folder / "cifar10_tiny.npz", ["sign"], [6])


def test_distances_without_labels(data_folder):
    result = run(DISTANCES, data_folder, ["pcah"], [6], n_threads=1)
    assert list(result["summary"][0]["metrics"]) == ["nDCG", "nDCG(8-bit)", "nDCG(released)"]
    assert result["runs"][0]["environment"]["threads"] == 1


def test_a_gradient_method_learns_under_every_kind_of_relevance(data_folder):
    quick = {"epochs": 2, "encoder": "linear"}
    for chosen, method in (
        (S1, "talr-ap"),
        ("corel5k-ndcg", "talr-ndcg"),
        (DISTANCES, "talr-ndcg"),
    ):
        found = run(chosen, data_folder, method, 6, params=quick, n_threads=1)["runs"][0]
        assert found["settings"]["params"]["encoder"] == "linear"
        assert found["method_report"]
        json.dumps(found, allow_nan=False)


def test_code_lengths_on_the_rows_of_a_split_share_a_class_posterior(data_folder):
    quick = {"epochs": 1, "posterior": 1, "hidden": [4]}
    runs = run(S1, data_folder, "talr-ap", [4, 6], params=quick, n_threads=1)["runs"]
    one, other = (row["method_report"]["posterior"] for row in runs)
    assert one == other  # to its seconds: it was trained once
    alone = run(S1, data_folder, "talr-ap", [6], params=quick, n_threads=1)["runs"][0]
    assert alone["metrics"] == runs[1]["metrics"]


def test_the_one_file_of_features_is_found(data_folder):
    found = load_source("cifar10", data_folder)
    assert found.name == "cifar10_tiny.npz"
    assert found.to_dict()["rows"] == 6300
    assert load_source("cifar10", data_folder / "cifar10_tiny.npz").digest == found.digest


def test_no_file_or_several_or_a_damaged_one_are_refused(data_folder, tmp_path):
    with pytest.raises(InputError, match=r"data must hold a file cifar10\*.npz of features"):
        load_source("cifar10", tmp_path)
    whole = (data_folder / "cifar10_tiny.npz").read_bytes()
    for name in ("cifar10.npz", "cifar10-b.npz"):
        (tmp_path / name).write_bytes(whole)
    with pytest.raises(InputError, match=r"has cifar10-b.npz, cifar10.npz; name the file itself"):
        load_source("cifar10", tmp_path)
    (tmp_path / "cifar10.npz").write_bytes(whole[:500])
    with pytest.raises(FileFormatError, match="not a readable"):
        load_source("cifar10", tmp_path / "cifar10.npz")


def test_batches_of_images_are_read_where_there_are_no_features(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3072), dtype=np.uint8)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        batch = {"data": pixels, "labels": [0, 1, 2, 3]}
        (folder / name).write_bytes(pickle.dumps(batch, 2))
    for place in (tmp_path, folder):
        found = load_source("cifar10", place)
        assert found.name == "cifar-10-batches-py"
        assert found.data.x.shape == (24, 32, 32, 3)
    with pytest.raises(InputError, match=r"data must hold a file corel5k\*.npz"):
        load_source("corel5k", folder)


def test_a_file_of_another_run_is_not_taken_for_this_one(data_folder, tmp_path):
    first, second = run(S1, data_folder, "lsh", 8, seeds=2, out=tmp_path)["runs"]
    one, two = sorted(tmp_path.iterdir())
    two.write_bytes(one.read_bytes())
    again = run(S1, data_folder, "lsh", 8, seeds=2, out=tmp_path)["runs"]
    assert [row["metrics"] for row in again] == [first["metrics"], second["metrics"]]
