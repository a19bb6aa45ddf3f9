"""Methods by name and classes by import: loaded only when they are used."""

import ast
import inspect
import subprocess
import sys

import numpy as np
import pytest

import rankbits
from rankbits import methods
from rankbits.errors import InputError, MissingExtraError
from rankbits.methods import registry


def run(script):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout


def type_checked_names():
    """The names that the block `if TYPE_CHECKING` of the door imports, with their modules."""
    tree = ast.parse(inspect.getsource(methods))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: line.module
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


def test_the_table_the_door_and_what_editors_see_agree():
    table = {method.class_name: method.path for method in registry.METHODS.values()}
    functions = {"PosteriorCache", "export_onnx", "fingerprint", "get", "load", "names"}
    assert len(table) == len(registry.METHODS)
    assert type_checked_names() == table
    assert set(methods.__all__) == {*table, *functions}
    assert {*table, *functions} <= set(dir(methods))


def test_every_class_can_be_imported_and_is_the_one_that_get_uses():
    pytest.importorskip("torch")
    for name, method in registry.METHODS.items():
        imported = getattr(methods, method.class_name)
        assert imported.__name__ == method.class_name
        assert type(methods.get(name)) is imported
        assert registry.name_of(imported()) == name


def test_a_class_that_needs_torch_names_the_extra_where_torch_is_missing():
    script = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")

sys.meta_path.insert(0, Blocker())
from rankbits.methods import ITQ
try:
    from rankbits.methods import TalrAP
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert run(script) == (
        "MissingExtraError the method talr-ap needs torch; install it with: "
        "pip install 'rankbits[train]'\n"
    )


def test_importing_a_class_without_a_gradient_does_not_import_torch():
    script = (
        "import sys\nfrom rankbits.methods import ITQ, LSH, LWH, PCAH, RSH, Sign\n"
        "print([m for m in sys.modules if m == 'torch' or m.startswith('rankbits.methods._')])"
    )
    assert run(script) == "[]\n"


def test_an_attribute_that_no_method_has_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'rankbits.methods' has no attribute 'ITK'"):
        _ = methods.ITK
    with pytest.raises(ImportError, match="ITK"):
        from rankbits.methods import ITK  # noqa: F401


def test_names_are_those_that_can_be_asked_for():
    assert {"lsh", "pcah", "itq", "sign", "talr-ap", "talr-ndcg"} <= set(methods.names())
    assert len(set(methods.names())) == len(methods.names())


def test_a_method_comes_with_its_parameters():
    itq = methods.get("itq", n_bits=48, n_iter=7, random_state=3)
    assert itq.get_params() == {"n_bits": 48, "n_iter": 7, "random_state": 3}


@pytest.mark.parametrize(("name", "near"), [("talr-app", "talr-ap"), ("itg", "itq")])
def test_an_unknown_name_is_answered_with_the_nearest(name, near):
    with pytest.raises(InputError, match=f"got '{name}'; did you mean '{near}'"):
        methods.get(name)


def test_an_unknown_parameter_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match=r"lsh has no parameter 'nbits'.*did you mean n_bits\?"):
        methods.get("lsh", nbits=3)


def test_a_method_with_a_gradient_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"talr-ap needs torch; .*rankbits\[train\]"):
        methods.get("talr-ap")


def test_export_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"export to ONNX needs torch; .*rankbits\[train\]"):
        methods.export_onnx(methods.get("lsh"), "model.onnx")


def test_importing_the_package_brings_none_of_the_large_libraries():
    large = ("sklearn", "torch", "scipy", "pyarrow", "matplotlib", "safetensors", "onnx")
    script = f"import sys, rankbits; print([m for m in {large} if m in sys.modules])"
    assert run(script) == "[]\n"
    assert run(script.replace("rankbits;", "rankbits.methods;")) == "[]\n"


def test_importing_the_package_brings_few_modules_beside_those_of_numpy():
    script = "import sys, numpy; n = len(sys.modules); import rankbits; print(len(sys.modules) - n)"
    assert int(run(script)) < 200


def test_a_star_import_does_not_need_torch():
    script = (
        "import sys; sys.modules['torch'] = None\nfrom rankbits import *\nprint(methods.names()[0])"
    )
    assert run(script) == "lsh\n"


def test_lazy_names_are_listed_and_given():
    assert {"methods", "objectives", "load"} <= set(dir(rankbits))
    assert rankbits.load is methods.load
    assert rankbits.methods is methods
    with pytest.raises(AttributeError, match="has no attribute 'method'"):
        _ = rankbits.method


def test_a_trained_model_is_loaded_and_encodes_without_what_only_fitting_needs(tmp_path):
    pytest.importorskip("torch")
    rows = np.random.default_rng(0).standard_normal((40, 6))
    hasher = methods.get("talr-ap", n_bits=4, encoder="linear", epochs=1, random_state=0)
    hasher.fit(rows, np.arange(40) % 2).save(tmp_path / "model")
    fitting = ["torch._dynamo", "sklearn.metrics", "sklearn.decomposition"]
    script = (
        "import sys, numpy, rankbits\n"
        f"rankbits.load({str(tmp_path / 'model')!r}).encode(numpy.ones((2, 6)))\n"
        f"print([m for m in {fitting} if m in sys.modules])"
    )
    assert run(script) == "[]\n"
