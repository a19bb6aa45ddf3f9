"""Models on disk: whole, unpickled, refused when altered; the old one or the new one, always."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy
from sklearn.exceptions import NotFittedError

import rankbits
from rankbits import _folders, _json, methods
from rankbits.errors import FileFormatError, InputError
from rankbits.methods import LSH, persistence
from rankbits.methods.json_values import from_json, to_json

LINEAR = ("lsh", "pcah", "itq", "sign")
ROWS = np.random.default_rng(3).standard_normal((40, 9))


def fitted(name="lsh", seed=0, n_bits=5):
    hasher = methods.get(name, n_bits=n_bits)
    if "random_state" in hasher.get_params():
        hasher.set_params(random_state=seed)
    return hasher.fit(ROWS)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    fitted().save(folder)
    return folder


def record_of(folder):
    return json.loads((folder / "model.json").read_text())


def rewrite(folder, **changes):
    """Change fields of model.json and sign it again, as a forger would; None removes one."""
    record = {**record_of(folder), **changes}
    record = {name: value for name, value in record.items() if value is not Ellipsis}
    record["json_sha256"] = _json._checksum(record)
    (folder / "model.json").write_text(json.dumps(record))


def rewrite_arrays(folder, **arrays):
    content = safetensors.numpy.save(arrays)
    (folder / "model.safetensors").write_bytes(content)
    rewrite(folder, arrays_sha256=hashlib.sha256(content).hexdigest())


def nest(n_levels):
    """Lists in lists."""
    value = []
    for _ in range(n_levels):
        value = [value]
    return value


def replace(path, put):
    """Something else under the name of a file."""
    path.unlink()
    put(path)


def link_to(target):
    return lambda path: path.symlink_to(target)


def same(a, b):
    return np.array_equal(a.project(ROWS), b.project(ROWS))


@pytest.mark.parametrize("name", LINEAR)
def test_all_that_was_learned_comes_back(name, tmp_path):
    hasher = fitted(name)
    hasher.save(str(tmp_path / "model"))
    again = rankbits.load(str(tmp_path / "model"))
    assert vars(again).keys() == vars(hasher).keys()
    for key, value in vars(hasher).items():
        np.testing.assert_array_equal(getattr(again, key), value)


def test_the_folder_holds_two_files_and_the_record_says_what_they_are(folder):
    assert sorted(os.listdir(folder)) == ["model.json", "model.safetensors"]
    record, content = record_of(folder), (folder / "model.safetensors").read_bytes()
    assert record["format"] == "rankbits model"
    assert record["version"] == 1
    assert record["rankbits"] == rankbits.__version__
    assert record["arrays_sha256"] == hashlib.sha256(content).hexdigest()
    assert record["params"] == {"center": True, "n_bits": 5, "random_state": 0}
    assert set(safetensors.numpy.load(content)) == {"mean", "planes"}


def test_arrays_that_are_not_contiguous_or_of_other_bytes_are_stored_by_value(tmp_path):
    hasher = fitted()
    logits = hasher.project(ROWS)
    hasher.planes_ = np.asfortranarray(hasher.planes_)
    hasher.mean_ = np.repeat(hasher.mean_, 2).astype(">f8")[::2]
    hasher.save(tmp_path / "model")
    assert np.array_equal(rankbits.load(tmp_path / "model").project(ROWS), logits)


def test_names_of_features_come_back(tmp_path):
    hasher = fitted()
    hasher.feature_names_in_ = np.array([f"f{k}" for k in range(9)], object)
    hasher.save(tmp_path / "model")
    assert rankbits.load(tmp_path / "model").feature_names_in_.tolist()[-1] == "f8"


def test_a_method_that_is_not_fitted_or_not_known_is_not_saved(tmp_path):
    class Own(LSH):
        pass

    with pytest.raises(NotFittedError):
        methods.get("lsh").save(tmp_path / "model")
    with pytest.raises(
        InputError, match=r"only a method of rankbits can be saved, got Own; rankbits has: lsh"
    ):
        Own(n_bits=3).fit(ROWS).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.random.RandomState(0), "pass an integer as the seed"),
        (len, "set it to None before saving"),
        (object(), "got object"),
        (b"bytes", "got bytes"),
        ([0, {1: 2}], "got dict"),
    ],
)
def test_parameters_that_json_cannot_hold_are_refused(tmp_path, value, reason):
    hasher = fitted().set_params(random_state=value)
    with pytest.raises(
        InputError, match=rf"params\['random_state'\].* must be None, a bool.*{reason}"
    ):
        hasher.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_parameters_keep_their_kind():
    value = {"a": (1, (2.5, None)), "b": [True, "x"], "c": {"d": ()}, "e": np.int8(3)}
    text = json.dumps(to_json("params", value))
    restored = from_json(json.loads(text))
    assert restored == value
    assert type(restored["a"]) is type(restored["a"][1]) is tuple
    for wrapper in ("__tuple__", "__float__"):
        with pytest.raises(InputError, match="must be None, a bool"):
            to_json("params", {wrapper: [1]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, np.float32("nan")])
def test_numbers_that_are_not_finite_come_back(value):
    text = json.dumps(to_json("params", {"a": value}), allow_nan=False)
    np.testing.assert_equal(from_json(json.loads(text)), {"a": float(value)})


DAMAGE = {
    "no record": (lambda f: (f / "model.json").unlink(), "no model.json"),
    "no arrays": (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
    "empty record": (lambda f: (f / "model.json").write_bytes(b""), "model.json is not JSON"),
    "no utf-8": (lambda f: (f / "model.json").write_bytes(b"\xff\xfe{"), "model.json is not JSON"),
    "deep record": (lambda f: (f / "model.json").write_text("[" * 99_999), "is not JSON"),
    "a list": (lambda f: (f / "model.json").write_text("[]"), "must have the format"),
    "other format": (lambda f: rewrite(f, format="other"), "must have the format 'rankbits model'"),
    "new version": (
        lambda f: rewrite(f, version=2),
        "format version 2, but this rankbits .* reads 1",
    ),
    "no version": (lambda f: rewrite(f, version=...), "format version None"),
    "method": (lambda f: rewrite(f, method="lhs"), "the method 'lhs' is unknown to this rankbits"),
    "extra field": (lambda f: rewrite(f, more=1), "missing or unknown: more"),
    "lost field": (lambda f: rewrite(f, facts=...), "missing or unknown: facts"),
    "field of other type": (lambda f: rewrite(f, n_bits="5"), "has '5' as its n_bits"),
    "bool for int": (lambda f: rewrite(f, n_bits=True), "has True as its n_bits"),
    "extra parameter": (lambda f: rewrite(f, params={"x": 1}), "lsh has no parameter 'x'"),
    "extra fact": (lambda f: rewrite(f, facts={"x": 1}), "facts must be none; got .*x"),
    "other bits": (lambda f: rewrite(f, n_bits=6), "codes of 5 bits, but its record says 6"),
    "other features": (lambda f: rewrite(f, n_features_in=8), r"mean must be .* shape \(8\)"),
    "no features": (
        lambda f: rewrite(f, n_features_in=0),
        "n_features_in must be an integer from 1 to 16777216, got 0",
    ),
    "features unsaid": (lambda f: rewrite(f, n_features_in=None), "do not belong together"),
    "names": (lambda f: rewrite(f, feature_names_in=["a"]), "must name each of its 9 features"),
    "odd tuple": (lambda f: rewrite(f, facts={"__tuple__": 3}), "a wrapped value must be"),
    "odd float": (lambda f: rewrite(f, facts={"a": {"__float__": 3}}), "a wrapped value must be"),
    "two wraps": (lambda f: rewrite(f, facts={"__float__": "inf", "a": 1}), "a wrapped value"),
    "facts no dict": (
        lambda f: rewrite(f, facts={"__tuple__": []}),
        "facts in model.json must",
    ),
    "params no dict": (
        lambda f: rewrite(f, params={"__tuple__": []}),
        "params in model.json must",
    ),
    "one array": (lambda f: rewrite_arrays(f, mean=np.zeros(9)), "must hold the arrays mean, plan"),
    "wrong shape": (
        lambda f: rewrite_arrays(f, mean=np.zeros(9), planes=np.zeros((5, 9))),
        r"planes must be finite float64 of shape \(9, b\), got float64 of shape \(5, 9\)",
    ),
    "wrong type": (
        lambda f: rewrite_arrays(f, mean=np.zeros(9), planes=np.zeros((9, 5), "f")),
        "got float32",
    ),
    "a nested record": (lambda f: rewrite(f, params=nest(300)), "more than 32 levels"),
    "beyond all features": (lambda f: rewrite(f, n_features_in=10**400), "n_features_in must be"),
    "more bits than any code": (lambda f: rewrite(f, n_bits=4097), "from 1 to 4096, got 4097"),
    "a pipe for a record": (lambda f: replace(f / "model.json", os.mkfifo), "must be a file"),
    "a pipe for arrays": (lambda f: replace(f / "model.safetensors", os.mkfifo), "must be a file"),
    "a device": (lambda f: replace(f / "model.json", link_to("/dev/zero")), "must be a file"),
    "a folder": (lambda f: replace(f / "model.safetensors", os.mkdir), "must be a file"),
    "a link to itself": (
        lambda f: replace(f / "model.json", link_to("model.json")),
        "be read: Too",
    ),
    "a huge record": (
        lambda f: os.truncate(f / "model.json", 100 << 30),
        "model.json must have at most 16777216 bytes",
    ),
    "huge arrays": (
        lambda f: os.truncate(f / "model.safetensors", 100 << 30),
        "model.safetensors must be filled by its arrays",
    ),
    "numbers without squares": (
        lambda f: rewrite_arrays(f, mean=np.full(9, 1e200), planes=np.zeros((9, 5))),
        "mean must have numbers of at most 1e\\+150",
    ),
    "not finite": (
        lambda f: rewrite_arrays(f, mean=np.full(9, np.nan), planes=np.zeros((9, 5))),
        "mean must be finite",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_model_that_is_damaged_or_unknown_is_refused_in_one_sentence(folder, case):
    damage, reason = DAMAGE[case]
    damage(folder)
    with pytest.raises(FileFormatError, match=reason) as caught:
        rankbits.load(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("columns", [[0], [0, 1, 2, 2, 3], [4, 3, 2, 1, 0], [0, 1, 2, 3, 9], "ab"])
def test_columns_of_sign_that_do_not_fit_are_refused(tmp_path, columns):
    fitted("sign").save(tmp_path / "model")
    rewrite(tmp_path / "model", facts={"features": columns})
    with pytest.raises(FileFormatError, match=r"features"):
        rankbits.load(tmp_path / "model")


def test_the_parts_of_itq_must_fit_each_other(tmp_path):
    fitted("itq").save(tmp_path / "model")
    parts = safetensors.numpy.load_file(tmp_path / "model" / "model.safetensors")
    for name, shape in (("rotation", (4, 4)), ("components", (8, 5)), ("quantization_losses", 0)):
        rewrite_arrays(tmp_path / "model", **{**parts, name: np.zeros(shape)})
        with pytest.raises(FileFormatError, match=name):
            rankbits.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_file_that_is_cut_or_altered_anywhere_is_refused(folder, name):
    path, dice = folder / name, random.Random(1)
    whole = path.read_bytes()
    closing = len(whole) - 1 if name == "model.json" else len(whole)  # its last byte is a newline
    for size in sorted({0, 1, closing - 1, *(dice.randrange(closing) for _ in range(40))}):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            rankbits.load(folder)
    for place in [dice.randrange(closing) for _ in range(300)]:
        if whole[place : place + 1].isspace() and name == "model.json":
            continue
        altered = bytearray(whole)
        altered[place] ^= 1 << dice.randrange(8)
        path.write_bytes(altered)
        with pytest.raises(FileFormatError):
            rankbits.load(folder)


def test_a_missing_folder_and_a_file_are_named(tmp_path):
    with pytest.raises(InputError, match=f"there is no {tmp_path / 'absent'}"):
        rankbits.load(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file is a file"):
        rankbits.load(tmp_path / "file")
    with pytest.raises(FileFormatError, match=r"it has no model.json"):
        rankbits.load(tmp_path)


def test_a_model_is_replaced_as_a_whole_and_nothing_is_left_beside_it(folder):
    new = fitted("itq", seed=4)
    new.save(folder)
    assert same(rankbits.load(folder), new)
    assert os.listdir(folder.parent) == ["model"]


def test_an_empty_folder_and_a_link_to_a_model_may_be_written_to(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(folder)
    new = fitted(seed=2)
    for place in ("empty", "link"):
        new.save(tmp_path / place)
        assert same(rankbits.load(tmp_path / place), new)
    assert (tmp_path / "link").is_symlink()
    assert same(rankbits.load(folder), new)


def test_what_is_not_a_model_by_itself_is_never_replaced(folder, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "model.json").write_text('{"format": "other"}')
    (folder / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("x")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name in ("photos", "json", "model", "file"):
        with pytest.raises(InputError, match=r"holds something else|is a file"):
            fitted(seed=2).save(tmp_path / name)
    with pytest.raises(InputError, match="must lie in an existing folder"):
        fitted().save(tmp_path / "no" / "model")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("step", ["fsync", "rename", "replace", "write", "second rename"])
def test_a_step_that_fails_keeps_the_old_model_and_leaves_nothing(folder, monkeypatch, step):
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if step == "second rename" and len(calls) != 2:
            return real(*args, **kwargs)
        raise OSError(28, "No space left on device")

    real = os.rename
    if step == "write":
        monkeypatch.setattr(persistence, "seal", fail)
    else:
        monkeypatch.setattr(os, step.removeprefix("second "), fail)
    with pytest.raises(OSError, match="No space left"):
        fitted(seed=5).save(folder)
    monkeypatch.undo()
    assert calls
    assert same(rankbits.load(folder), fitted())
    assert os.listdir(folder.parent) == ["model"]


def test_a_model_that_a_kill_left_aside_is_loaded_and_comes_back_with_the_next_save(folder):
    old, aside = fitted(), _folders._backup(folder)
    os.rename(folder, aside)
    assert same(rankbits.load(folder), old)
    assert not folder.exists()
    new = fitted(seed=6)
    new.save(folder)
    assert same(rankbits.load(folder), new)
    assert os.listdir(folder.parent) == ["model"]


def test_an_aside_that_a_kill_left_beside_the_new_model_goes_with_the_next_save(folder):
    shutil.copytree(folder, _folders._backup(folder))
    new = fitted(seed=6)
    new.save(folder)
    assert same(rankbits.load(folder), new)
    assert os.listdir(folder.parent) == ["model"]


def test_an_aside_that_is_not_ours_is_not_touched(folder):
    aside = _folders._backup(folder)
    aside.mkdir()
    (aside / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="holds something else"):
        fitted(seed=6).save(folder)
    assert (aside / "thesis.tex").read_text() == "years of work"


SAVER = """
import sys, numpy as np
from rankbits import methods
rows = np.random.default_rng(3).standard_normal((40, 9))
models = [methods.get("lsh", n_bits=5, random_state=k).fit(rows) for k in range(2)]
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1])
"""


def saver(folder):
    process = subprocess.Popen([sys.executable, "-c", SAVER, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_kill_at_any_moment_leaves_one_model_or_the_other(folder):
    known, dice = [fitted(seed=k).project(ROWS) for k in range(2)], random.Random(7)
    for _ in range(4):
        with saver(folder) as process:
            time.sleep(dice.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
        logits = rankbits.load(folder).project(ROWS)
        assert any(np.array_equal(logits, one) for one in known)
    fitted(seed=1).save(folder)
    assert np.array_equal(rankbits.load(folder).project(ROWS), known[1])
    assert os.listdir(folder.parent) == ["model"]


KILLED_AT_EVERY_STEP = """
import os, sys, numpy as np
import rankbits
from rankbits import methods
folder = sys.argv[1]
rows = np.random.default_rng(3).standard_normal((40, 9))
models = [methods.get("lsh", n_bits=5, random_state=k).fit(rows) for k in range(2)]
known = [model.project(rows) for model in models]
STEPS = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "open", "close")

def die_at(n):
    left = [n]
    def dying(call):
        def wrapped(*args, **options):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return call(*args, **options)
        return wrapped
    for step in STEPS:
        setattr(os, step, dying(getattr(os, step)))

n, was_killed = 0, True
while was_killed:
    for k in (0, 1):
        models[1 - k].save(folder)
        if os.fork() == 0:
            die_at(n)
            models[k].save(folder)
            os._exit(0)
        was_killed = os.wait()[1] != 0
        logits = rankbits.load(folder).project(rows)
        assert any(np.array_equal(logits, one) for one in known), n
    models[0].save(folder)
    assert os.listdir(os.path.dirname(folder)) == ["model"], n
    n += 1
print(n)
"""


def test_a_kill_at_every_step_of_a_save_leaves_one_model_and_no_litter(folder):
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_a_folder_that_another_process_is_filling_is_left_alone(folder):
    place, lock = _folders._fresh(folder)
    fitted(seed=6).save(folder)
    assert place.exists()
    os.close(lock)
    fitted(seed=6).save(folder)
    assert os.listdir(folder.parent) == ["model"]


def test_a_reader_sees_a_whole_model_while_it_is_replaced_again_and_again(folder):
    known = [fitted(seed=k).project(ROWS) for k in range(2)]
    with saver(folder) as process:
        for _ in range(300):
            logits = rankbits.load(folder).project(ROWS)
            assert any(np.array_equal(logits, one) for one in known)
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("put", [os.mkfifo, link_to("/dev/zero"), link_to("model.json")])
def test_a_folder_whose_record_is_no_file_is_not_replaced(folder, put):
    replace(folder / "model.json", put)
    with pytest.raises(InputError, match=r"holds something else, model\.json"):
        fitted().save(folder)
    assert sorted(os.listdir(folder)) == ["model.json", "model.safetensors"]


def test_a_folder_that_links_to_itself_is_refused(tmp_path):
    (tmp_path / "model").symlink_to("model")
    with pytest.raises(InputError, match=r"there is no .*model"):
        rankbits.load(tmp_path / "model")
    with pytest.raises(InputError, match="model is a link that leads back to itself"):
        fitted().save(tmp_path / "model")
