"""What every method must do alike, whatever it learns."""

import importlib.util
import inspect
import json
import pickle
import re
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankbits
from rankbits import BinaryCodes, methods
from rankbits.errors import InputError
from rankbits.methods import registry
from rankbits.methods.parameters.docstrings import split_entries, split_sections

N_FEATURES, N_CLASSES = 16, 3
QUICK = {"epochs": 3, "n_threads": 1}  # of methods that train by gradients
UNCHECKED = {"random_state", "unlabeled", "radius"}  # by the class; `fit` checks them with more
FEW_TREES = {name: {"n_trees": 3} for name in ("fasthash", "structhash")}


def needs_torch(name):
    return registry.METHODS[name].needs_torch


def written():
    """Methods whose extra is installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    return [name for name in methods.names() if has_torch or not needs_torch(name)]


def create(name, **params):
    if name not in written():
        pytest.skip(f"{name} needs torch")
    quick = QUICK if needs_torch(name) else FEW_TREES.get(name, {})
    return methods.get(name, **quick, **params)


def seeded(name, **params):
    hasher = create(name, **params)
    return hasher.set_params(random_state=0) if "random_state" in hasher.get_params() else hasher


@pytest.fixture(params=methods.names())
def name(request):
    return request.param


@cache
def made_data():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, N_CLASSES, 120)
    centres = 2.0 * rng.standard_normal((N_CLASSES, N_FEATURES))
    return centres[labels] + rng.standard_normal((120, N_FEATURES)) + 0.5, labels


@pytest.fixture
def data():
    return made_data()


@cache
def fitted_once(name, n_bits):
    return seeded(name, n_bits=n_bits).fit(*made_data())


@pytest.fixture(params=[1, 8, 13])
def fitted(name, request):
    return fitted_once(name, request.param)


@parametrize_with_checks([seeded(name, n_bits=1) for name in written()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_logits_are_floats_one_for_each_bit(fitted, data):
    logits = fitted.project(data[0])
    assert logits.shape == (120, fitted.n_bits)
    assert logits.dtype.kind == "f"


def test_a_bit_is_1_where_its_logit_is_positive(fitted, data):
    expected = np.packbits(fitted.project(data[0]) > 0, axis=1)
    packed = fitted.transform(data[0])
    assert packed.dtype == np.uint8
    assert np.array_equal(packed, expected)
    assert fitted.encode(data[0]) == BinaryCodes(expected, fitted.n_bits)


def test_bits_differ_between_items(fitted, data):
    bits = fitted.encode(data[0]).bits()
    assert 0 < bits.mean() < 1


def test_the_same_seed_learns_the_same(name, data):
    one, other = (seeded(name, n_bits=9).fit(*data).project(data[0]) for _ in range(2))
    assert np.array_equal(one, other)


def test_a_clone_has_the_parameters_and_nothing_learned(fitted, data):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(data[0])


def test_pickles_as_well(fitted, data):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.project(data[0]), fitted.project(data[0]))


def test_a_saved_method_comes_back_whole(fitted, data, tmp_path):
    fitted.save(tmp_path / "model")
    again = rankbits.load(tmp_path / "model")
    assert type(again) is type(fitted)
    assert again.get_params() == fitted.get_params()
    assert again.n_bits_ == fitted.n_bits_
    assert np.array_equal(again.project(data[0]), fitted.project(data[0]))
    learned = {key for key in vars(fitted) if key.endswith("_") and not key.startswith("_")}
    assert learned >= {key for key in vars(again) if key.endswith("_")}


def test_a_saved_method_says_its_name(fitted, name, tmp_path):
    fitted.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["method"] == name


def test_rows_are_projected_alike_in_blocks_of_any_size(fitted, data, monkeypatch):
    whole = fitted.project(data[0])
    monkeypatch.setattr("rankbits.methods.base._BLOCK_CELLS", 7 * N_FEATURES)
    blocks = fitted.project(data[0])
    np.testing.assert_allclose(blocks, whole, rtol=0, atol=1e-5 * np.abs(whole).max())
    one_by_one = np.concatenate([fitted.transform(row[None]) for row in data[0]])
    is_clear = np.abs(whole) > 1e-5 * np.abs(whole).max()
    bits = np.unpackbits(one_by_one, axis=1, count=fitted.n_bits)
    assert np.array_equal(bits[is_clear], (whole > 0)[is_clear])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8])
def test_numbers_of_any_type_count_by_their_value(name, data, dtype):
    x = np.clip(np.round(data[0] + 8), 0, 100).astype(dtype)
    as_doubles = x.astype(np.float64)
    of_dtype, of_doubles = (seeded(name, n_bits=7).fit(rows, data[1]) for rows in (x, as_doubles))
    np.testing.assert_allclose(
        of_dtype.project(x), of_doubles.project(as_doubles), rtol=1e-6, atol=1e-6
    )


def test_a_mapped_file_is_as_good_as_memory(fitted, data, tmp_path):
    np.save(tmp_path / "x.npy", data[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.array_equal(fitted.transform(mapped), fitted.transform(data[0]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(name, fitted, data, value):
    x = data[0].copy()
    x[7, 3] = value
    with pytest.raises(InputError, match=r"X must be finite, got (NaN|infinity) in row 7"):
        fitted.transform(x)
    with pytest.raises(InputError, match=r"X must be finite"):
        seeded(name, n_bits=4).fit(x, data[1])


def test_sparse_rows_are_refused_with_what_to_do(name, fitted, data):
    rows = sparse.csr_array(data[0])
    with pytest.raises(InputError, match=r"X must be dense, got a sparse csr_array; call X.toarra"):
        fitted.transform(rows)
    with pytest.raises(InputError, match="X must be dense"):
        seeded(name, n_bits=4).fit(rows, data[1])


def test_other_features_than_in_training_are_refused(fitted, data):
    with pytest.raises(InputError, match=f"{N_FEATURES - 1} features.*{N_FEATURES} features"):
        fitted.transform(data[0][:, 1:])


@pytest.mark.parametrize("n_bits", [0, -1, 4097, 2.5, True, "8"])
def test_a_code_length_that_is_none_is_refused(name, data, n_bits):
    with pytest.raises(InputError, match="n_bits must be an integer from 1 to 4096"):
        seeded(name, n_bits=n_bits).fit(*data)


@pytest.mark.parametrize("n_labels", [119, 121])
def test_y_of_another_length_is_refused(name, data, n_labels):
    sentence = f"y must have one label for each row of X, got {n_labels} labels for 120 rows"
    with pytest.raises(InputError, match=sentence):
        seeded(name, n_bits=4).fit(data[0], np.resize(data[1], n_labels))


def test_a_column_of_labels_is_refused_or_ignored(name, data):
    hasher, column = seeded(name, n_bits=4), data[1][:, None]
    if "y : ignored" in inspect.getdoc(hasher.fit):
        assert np.array_equal(hasher.fit_transform(data[0], column), hasher.fit_transform(data[0]))
        return
    with pytest.raises(InputError, match=r"y is a column of shape \(120, 1\).* pass y.ravel\(\)"):
        hasher.fit(data[0], column)


def test_its_class_can_be_imported_by_name(name):
    hasher = create(name)
    assert getattr(methods, type(hasher).__name__) is type(hasher)


def documented_parameters(method_class):
    """Names in the section Parameters of a class's docstring, one entry each."""
    section = inspect.getdoc(method_class).split("Parameters\n----------\n")[1].split("\n\n")[0]
    return [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]


without_gradients = pytest.mark.parametrize(
    "name", [name for name in methods.names() if not needs_torch(name)]
)


@without_gradients
def test_every_parameter_has_an_entry_of_its_own_in_the_documentation(name):
    method_class = registry.class_of(name)
    signature = inspect.signature(method_class.__init__)
    assert documented_parameters(method_class) == list(signature.parameters)[1:]
    for section in ("Attributes", "References", "Examples"):
        assert f"{section}\n{'-' * len(section)}\n" in inspect.getdoc(method_class)


@without_gradients
def test_every_entry_says_the_default_and_what_the_parameter_does(name):
    method_class = registry.class_of(name)
    entries = split_entries(split_sections(inspect.getdoc(method_class))["Parameters"])
    for parameter, text in entries.items():
        heading, *description = text.splitlines()
        shown = re.search(r"default=(.*)$", heading)[1]
        assert eval(shown, {}) == inspect.signature(method_class).parameters[parameter].default
        assert description
        assert all(line.startswith("    ") for line in description)


@without_gradients
def test_a_wrong_parameter_is_refused_before_the_rows_are_looked_at(name, data):
    declared = {f.name: f.metadata["check"] for f in fields(registry.class_of(name))}
    for parameter in declared.keys() - UNCHECKED:
        with pytest.raises(InputError) as expected:
            declared[parameter](parameter, object)
        with pytest.raises(InputError) as error:
            create(name).set_params(**{parameter: object}).fit("no rows", data[1])
        assert str(error.value) == str(expected.value)
        assert parameter in str(error.value)


def test_columns_of_the_packed_codes_have_names(fitted):
    columns = fitted.get_feature_names_out()
    assert len(set(columns)) == len(columns) == -(-fitted.n_bits // 8)
