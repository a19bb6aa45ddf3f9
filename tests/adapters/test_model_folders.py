"""Folders of SentenceTransformers that bring code: none of it runs, by whichever door they come."""

import importlib.util
import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from rankbits import methods
from rankbits.adapters.sentence_transformers import append_hasher, load_model
from rankbits.cli import app
from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="sentence-transformers is not installed",
    ),
    pytest.mark.filterwarnings("ignore"),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "apple", "pear", "plum"]
TEXTS = ["apple pear", "plum", "pear plum plum apple"]


@pytest.fixture
def marker(tmp_path):
    """A file that foreign code writes."""
    return tmp_path / "code_ran"


@pytest.fixture
def folder(tmp_path):
    """A small network that reads texts, saved by its library."""
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(WORDS), intermediate_size=8, **sizes)).save_pretrained(
        plain
    )
    BertTokenizerFast(vocab_file=str(plain / "vocab.txt")).save_pretrained(plain)
    model = SentenceTransformer(str(plain), device="cpu")
    model.save(str(tmp_path / "model"), create_model_card=False)
    return tmp_path / "model"


def change_json(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


class Pickled:
    """An object whose unpickling writes the marker."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return exec, (f"open({str(self.marker)!r}, 'w').write('x')",)


def add_module_class(folder, marker):
    (folder / "evil.py").write_text(
        f"open({str(marker)!r}, 'w').write('x')\nimport torch\nclass Evil(torch.nn.Module): ...\n"
    )
    change_json(folder / "modules.json", lambda modules: modules[1].update(type="evil.Evil"))


def name_a_function(folder, marker):
    change_json(
        folder / "modules.json",
        lambda modules: modules[1].update(type="sentence_transformers.base.model.pickle"),
    )


def pickle_the_weights(folder, marker):
    (folder / "model.safetensors").unlink()
    torch.save({"x": Pickled(marker)}, folder / "pytorch_model.bin")


def ask_for_pickles(folder, marker):
    """Settings of the folder under which transformers unpickles without restrictions."""
    pickle_the_weights(folder, marker)
    settings = {"weights_only": False, "dtype": "auto"}
    change_json(folder / "sentence_bert_config.json", lambda it: it.update(model_kwargs=settings))
    change_json(folder / "config.json", lambda it: it.pop("dtype", None))


def map_to_own_code(folder, marker):
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').write('x')\n")
    classes = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    change_json(folder / "config.json", lambda it: it.update(auto_map=classes, model_type="evil"))


ATTACKS = {
    "class": (add_module_class, "names 'evil.Evil'"),
    "function": (name_a_function, "names 'sentence_transformers.base.model.pickle'"),
    "pickle": (pickle_the_weights, "without pickles and code of its own"),
    "settings": (ask_for_pickles, "must not change how files are loaded"),
    "auto_map": (map_to_own_code, "without pickles and code of its own"),
}


def load_as_model(folder):
    from rankbits.service import Limits
    from rankbits.service._encoders import load_encoder

    return load_encoder(folder, None, Limits())


def load_as_text_model(folder):
    from rankbits.service import Limits
    from rankbits.service._encoders import load_encoder

    return load_encoder(None, folder, Limits())


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("door", [load_model, load_as_model, load_as_text_model])
def test_code_that_a_folder_brings_does_not_run(folder, marker, attack, door):
    change, words = ATTACKS[attack]
    change(folder, marker)
    with pytest.raises(FileFormatError, match=words):
        door(folder)
    assert not marker.exists()


@pytest.mark.parametrize("option", ["--model", "--text-model"])
def test_the_command_serves_no_folder_that_brings_code(folder, marker, tmp_path, rng, option):
    pytest.importorskip("fastapi")
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(rng.standard_normal((20, 8)))
    hasher.save(tmp_path / "method")
    Collection.create(tmp_path / "c", 8).close()
    add_module_class(folder, marker)
    others = ["--model", str(tmp_path / "method")] if option == "--text-model" else []
    words = ["serve", str(tmp_path / "c"), *others, option, str(folder), "--port", "0"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "--trust-model-code" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not marker.exists()


def test_code_runs_only_where_it_is_trusted(folder, marker):
    add_module_class(folder, marker)
    with pytest.raises(AttributeError):  # the class of the test cannot load itself
        load_model(folder, trust_code=True)
    assert marker.exists()


def test_modules_in_the_folder_of_a_method_change_nothing(folder, marker, rng):
    from rankbits.service import Limits
    from rankbits.service._encoders import load_encoder

    add_module_class(folder, marker)
    hasher = methods.get("lsh", n_bits=8, random_state=0).fit(rng.standard_normal((20, 5)))
    hasher.save(folder.parent / "method")
    for name in ("modules.json", "evil.py"):
        (folder.parent / "method" / name).write_text((folder / name).read_text())
    encoder = load_encoder(folder.parent / "method", None, Limits(), trust_code=True)
    assert encoder.method == "lsh"
    assert not marker.exists()


def test_a_model_without_code_is_loaded_as_it_was_saved(folder, rng):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    assert np.array_equal(load_model(folder).encode(TEXTS), model.encode(TEXTS))
    hasher = methods.get("itq", n_bits=4, random_state=0).fit(rng.standard_normal((30, 8)))
    ending = append_hasher(model, hasher)
    ending.save(str(folder.parent / "ending"), create_model_card=False)
    loaded = load_model(folder.parent / "ending")
    assert np.array_equal(loaded.encode(TEXTS), ending.encode(TEXTS))
    assert np.array_equal(loaded.encode_query(TEXTS), ending.encode_query(TEXTS))
    loaded.save(str(folder.parent / "again"), create_model_card=False)
    again = load_model(folder.parent / "again")
    assert np.array_equal(again.encode_query(TEXTS), ending.encode_query(TEXTS))


def test_pickles_beside_other_weights_are_not_read(folder, marker):
    torch.save({"x": Pickled(marker)}, folder / "pytorch_model.bin")
    assert load_model(folder).encode(TEXTS).shape == (3, 8)
    assert not marker.exists()


def test_links_to_files_are_followed_as_in_a_download_cache(folder):
    expected = load_model(folder).encode(TEXTS)
    blob = folder.parent / "blob"
    (folder / "model.safetensors").rename(blob)
    (folder / "model.safetensors").symlink_to(blob)
    assert np.array_equal(load_model(folder).encode(TEXTS), expected)


@pytest.mark.parametrize(
    "modules",
    [
        {},
        [],
        [3],
        [{"name": "x", "type": "sentence_transformers.models.Pooling"}],
        [{"path": "../x", "type": "sentence_transformers.models.Pooling"}],
        [{"path": "/x", "type": "sentence_transformers.models.Pooling"}],
        [{"path": "", "type": 7}],
    ],
)
def test_a_list_of_modules_that_is_none_is_refused(folder, modules):
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(FileFormatError, match="must list modules"):
        load_model(folder)


def test_what_is_no_folder_is_refused_and_nothing_is_fetched(tmp_path):
    with pytest.raises(InputError, match="must be a folder"):
        load_model(tmp_path / "nothing")
    with pytest.raises(InputError, match="must be a folder"):
        load_model("sentence-transformers/all-MiniLM-L6-v2")
    (tmp_path / "modules.json").write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match="must be JSON"):
        load_model(tmp_path)
