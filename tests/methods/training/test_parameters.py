"""Constructors of the methods trained by gradients: declared once, documented, typed."""

import inspect
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import rankbits
from rankbits import _check, methods
from rankbits.errors import InputError
from rankbits.methods.parameters.docstrings import split_entries, split_sections
from rankbits.methods.parameters.fields import auto_names, check_parameters
from rankbits.methods.registry import METHODS, class_of
from rankbits.methods.training.config import common_config
from rankbits.methods.training.parameters import TrainingParameters
from rankbits.methods.training.recipes import COMMON, RECIPES

GRADIENT = [name for name, entry in METHODS.items() if entry.needs_torch]
Y = np.arange(120) % 3
X = np.random.default_rng(1).normal(size=(120, 6)) + 3 * np.eye(3, 6)[Y]

every_method = pytest.mark.parametrize("name", GRADIENT)


@every_method
def test_every_parameter_is_documented_with_its_default(name):
    cls = class_of(name)
    entries = split_entries(split_sections(inspect.getdoc(cls))["Parameters"])
    signature = inspect.signature(cls)
    assert set(entries) == set(signature.parameters) == set(cls().get_params())
    for parameter, text in entries.items():
        heading, *description = text.splitlines()
        default = signature.parameters[parameter].default
        shown = re.search(r"default=(.*)$", heading)[1]
        assert eval(shown, {}) == default, heading
        assert description, f"{parameter} has no description"
        assert all(line.startswith("    ") for line in description)


@every_method
def test_a_docstring_has_its_summary_its_attributes_and_its_source(name):
    sections = split_sections(inspect.getdoc(class_of(name)))
    assert list(sections)[:3] == ["", "Parameters", "Attributes"]
    assert ".. [1]" in sections["References"]
    assert {"encoder_", "report_", "history_"} <= set(split_entries(sections["Attributes"]))
    assert sections[""].splitlines()[0].endswith("[1]_.")
    assert next(iter(split_entries(sections["Parameters"]))) == "n_bits"


def test_help_shows_each_parameter_on_an_entry_of_its_own_and_no_list_of_defaults():
    script = "from rankbits.methods.deep.talr import TalrAP; help(TalrAP)"
    page = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert ' |  dropout : float, default="auto"\n' in page
    assert " |  relaxation : {" in page
    assert "\n |  dropout = " not in page


@every_method
def test_the_code_length_may_come_first_and_all_else_comes_by_keyword(name):
    cls = class_of(name)
    assert cls(12).n_bits == cls(n_bits=12).n_bits == methods.get(name, n_bits=12).n_bits == 12
    kinds = [parameter.kind for parameter in inspect.signature(cls).parameters.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError, match="positional argument"):
        cls(12, "linear")
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        cls(epoch=3)


@every_method
def test_parameters_are_stored_as_given_and_survive_set_params_clone_and_repr(name):
    cls, hidden = class_of(name), [8, 4]
    hasher = cls(16, hidden=hidden, learning_rate=-1.0)  # fit checks, the constructor does not
    assert hasher.hidden is hidden
    assert hasher.set_params(epochs=7).get_params()["epochs"] == 7
    assert clone(hasher).get_params() == hasher.get_params()
    assert "epochs=7" in repr(hasher)
    assert cls.__name__ in repr(hasher)
    with pytest.raises(InputError, match="learning_rate must be a finite number above 0, got -1"):
        hasher.fit(X, Y)


def test_a_grid_search_chooses_parameters_of_training_and_of_the_loss():
    def score(hasher, x, y):
        codes = hasher.encode(x)
        same = rankbits.affinity.classes(y, y)
        return rankbits.evaluate(codes, codes, same, ["AP"], exclude_self=True).mean["AP"]

    grid = {"epochs": [1, 2], "relaxation": ["exact", "simplified"]}
    hasher = methods.get("talr-ap", n_bits=8, encoder="linear", n_threads=1, random_state=0)
    search = GridSearchCV(hasher, grid, scoring=score, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.report_["config"]["epochs"] == search.best_params_["epochs"]


def test_the_common_recipe_has_a_value_for_each_parameter_that_may_be_auto_and_no_other():
    assert set(COMMON) == set(auto_names(TrainingParameters))
    check_parameters(common_config())
    for recipe in RECIPES.values():
        assert set(recipe) <= set(COMMON)
        check_parameters(common_config(**{k: v for k, v in recipe.items() if not callable(v)}))


@every_method
def test_a_method_changes_recipes_that_exist_in_values_that_exist(name):
    for key, values in class_of(name)._recipes.items():
        assert key in RECIPES
        assert set(values) <= set(COMMON)
        check_parameters(common_config(**values))


def test_parameters_are_checked_once_and_a_configuration_built_of_them_no_more(monkeypatch):
    checks, check = Counter(), _check.number

    def count(name, *args, **limits):
        checks[name] += 1
        return check(name, *args, **limits)

    monkeypatch.setattr(_check, "number", count)
    hasher = methods.get("talr-ap", n_bits=8, epochs=1, hidden=(4,), clip=np.float32(2), dropout=0)
    config = hasher.fit(X, Y).report_["config"]
    names = ("clip", "delta", "backbone_rate", "checkpoint_seconds")
    assert {name: checks[name] for name in names} == dict.fromkeys(names, 1)
    assert [type(config[name]) for name in ("clip", "dropout", "hidden")] == [float, float, tuple]


def test_a_configuration_is_complete_and_frozen():
    config = common_config(hidden=(8,), batch_size=9)
    assert (config.hidden, config.batch_size, config.epochs) == ((8,), 9, COMMON["epochs"])
    with pytest.raises(FrozenInstanceError, match="epochs"):
        config.epochs = 3
    assert replace(config, epochs=3).epochs == 3
    assert config.epochs == COMMON["epochs"]


def test_what_the_report_calls_configuration_has_every_setting_and_no_place():
    hasher = methods.get("talr-ap", n_bits=8, encoder="linear", epochs=2, random_state=0)
    config = hasher.fit(X, Y).report_["config"]
    assert (config["epochs"], config["batch_size"], config["noise"]) == (2, 120, 0.7)
    places = {"encoder", "backbone", "checkpoint", "checkpoint_epochs", "checkpoint_seconds",
              "resume", "log", "verbose", "device", "n_threads", "scoring", "posterior_cache",
              "random_state"}  # fmt: skip
    names = {declared.name for declared in fields(TrainingParameters)}
    assert set(config) == (names - places) | {"seed", "mixes_classes"}


def test_the_callers_generator_is_left_alone_by_a_fit():
    import torch

    state = torch.get_rng_state()
    methods.get("talr-ap", n_bits=8, epochs=1, hidden=(4,)).fit(X, Y)
    assert torch.equal(torch.get_rng_state(), state)


TYPED = """
from rankbits.methods import BRE, Sign
from rankbits.methods.deep.csq import CSQ
from rankbits.methods.deep.talr import TalrAP

CSQ(32, center_seed=3, epochs=4)
CSQ(32, centre_seed=3)
CSQ(32, "linear")
TalrAP(32, dropout="much")
reveal_type(TalrAP().dispersion)
BRE(32, n_points=3, gamma=None, verbose="auto", random_state=0)
Sign(None, center=False)
BRE(32, n_point=3)
BRE(32, 3)
BRE(32, losses_=[])
Sign(choose=1)
reveal_type(BRE().gamma)
reveal_type(BRE().planes_)
"""


def test_a_type_checker_sees_every_constructor(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED)
    report, _, _ = api.run(["--strict", str(tmp_path / "typed.py")])
    findings = defaultdict(str)
    for line, message in re.findall(r"typed\.py:(\d+): (.*)", report):
        findings[line] += message
    assert sorted(findings, key=int) == [str(line) for line in (7, 8, 9, 10, *range(13, 19))]
    assert 'Unexpected keyword argument "centre_seed"' in findings["7"]
    assert "Too many positional arguments" in findings["8"]
    assert 'has incompatible type "str"; expected "float"' in findings["9"]
    assert 'Revealed type is "float"' in findings["10"].replace("builtins.", "")
    assert 'Unexpected keyword argument "n_point"' in findings["13"]
    assert "Too many positional arguments" in findings["14"]
    assert 'Unexpected keyword argument "losses_"' in findings["15"]
    assert 'has incompatible type "int"; expected "str"' in findings["16"]
    assert 'Revealed type is "float | None"' in findings["17"].replace("builtins.", "")
    assert "ndarray" in findings["18"]
