"""Folders of SentenceTransformers, opened without running anything that lies in them.

The library imports classes that a folder names, unpickles weights, and lets settings in the folder
decide how. So it never sees the folder itself, but a view of it: a temporary folder of links to
files of kinds that hold data and no code, whose modules are classes of sentence-transformers.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankbits import _check
from rankbits._files import READ_ERRORS, one_line
from rankbits.errors import FileFormatError, InputError

EXTRA = "text"
_MODULES = "modules.json"
_LIBRARY = "sentence_transformers."
_KINDS = (".jinja", ".json", ".md", ".model", ".safetensors", ".txt")  # data, no code
_LEFT_OUT = ("adapter_config.json",)  # would load another folder, which it names
_SETTINGS = (
    "config_args",
    "config_kwargs",
    "model_args",
    "model_kwargs",
    "processor_kwargs",
    "tokenizer_args",
)
_SETTINGS_FILES = "sentence_*_config.json"
_HARMLESS = (
    "add_pooling_layer",
    "attn_implementation",
    "do_lower_case",
    "dtype",
    "max_length",
    "model_max_length",
    "padding_side",
    "torch_dtype",
    "truncation_side",
    "use_fast",
)
_ATTENTION = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", None)
_REMEDY = "; if you trust whoever made it, --trust-model-code loads it with its code"


def load_without_code(folder: str | os.PathLike[str], ending: str) -> tuple[Any, str | None]:
    """The SentenceTransformer of a folder, and where its last module lies if that is `ending`.

    Parameters
    ----------
    folder : str or path-like
        It may name classes of sentence-transformers, which are installed, and no others.
    ending : str
        Full name of a class that the last module may have; that module is left to the caller.
    """
    package = _check.extra("sentence_transformers", "a model of texts", EXTRA)
    source = Path(folder)
    if not source.is_dir():
        raise InputError(f"{source} must be a folder of a SentenceTransformer")
    modules = _read_modules(source)
    place = modules.pop()["path"] if modules and modules[-1]["type"] == ending else None
    for module in modules or []:
        _require_known(source, module["type"])
    _require_harmless(source)
    with _view(source, modules) as view:
        try:
            model = package.SentenceTransformer(
                str(view), device="cpu", local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # noqa: BLE001 - whatever its many readers raise
            raise FileFormatError(
                f"{source} cannot be loaded as a SentenceTransformer without pickles and code of "
                f"its own: {one_line(error)[:200]}{_REMEDY}"
            ) from None
    return model, place


def load_with_code(folder: str | os.PathLike[str]) -> Any:
    """The SentenceTransformer of a folder, which may run code that lies in it."""
    package = _check.extra("sentence_transformers", "a model of texts", EXTRA)
    return package.SentenceTransformer(
        os.fspath(folder), device="cpu", local_files_only=True, trust_remote_code=True
    )


def _read_modules(folder: Path) -> list[dict[str, str]] | None:
    """What modules.json lists; None where it is missing, as in folders of transformers."""
    if not (folder / _MODULES).exists():
        return None
    modules = _read_json(folder / _MODULES)
    if not isinstance(modules, list) or not modules or not all(map(_is_module, modules)):
        raise FileFormatError(
            f"{folder / _MODULES} must list modules with a name, a type and a path within the "
            "folder"
        )
    return modules


def _is_module(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return False
    is_inside = ".." not in Path(entry["path"]).parts and not Path(entry["path"]).is_absolute()
    return is_inside and isinstance(entry.get("type"), str)


def _require_known(folder: Path, name: str) -> None:
    """Refuse a class that is no module of sentence-transformers."""
    if not _is_of_library(name):
        raise FileFormatError(
            f"{folder} must be made of modules of sentence-transformers, it names {name!r:.80}, "
            f"which would run code that the folder chooses{_REMEDY}"
        )


def _is_of_library(name: str) -> bool:
    """Whether a full name is that of a module class of sentence-transformers."""
    from torch import nn

    library = _check.extra("sentence_transformers.util", "a model of texts", EXTRA)
    try:
        kind = library.import_from_string(name) if name.startswith(_LIBRARY) else None
    except ImportError:
        return False
    is_module = isinstance(kind, type) and issubclass(kind, nn.Module)
    return is_module and str(kind.__module__).startswith(_LIBRARY)


def _require_harmless(folder: Path) -> None:
    """Refuse settings of loading that are not known to be data, such as weights_only."""
    for file in sorted(folder.rglob(_SETTINGS_FILES)):
        content = _read_json(file)
        sections = content if isinstance(content, dict) else {}
        for section in _SETTINGS:
            settings = sections.get(section) or {}
            is_known = isinstance(settings, dict) and set(settings) <= set(_HARMLESS)
            if not is_known or settings.get("attn_implementation") not in _ATTENTION:
                raise FileFormatError(
                    f"{file} must not change how files are loaded, its {section} has "
                    f"{', '.join(map(str, settings))[:100]}{_REMEDY}"
                )


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (*READ_ERRORS, RecursionError) as error:
        raise FileFormatError(f"{file} must be JSON: {one_line(error)[:100]}") from None


@contextmanager
def _view(folder: Path, modules: list[dict[str, str]] | None) -> Iterator[Path]:
    """A folder with links to the files that hold data, and with these modules alone."""
    with tempfile.TemporaryDirectory(prefix="rankbits-") as place:
        view = Path(place)
        for parent, _, names in os.walk(folder):
            target = view / Path(parent).relative_to(folder)
            target.mkdir(exist_ok=True)
            for name in names:
                if name.endswith(_KINDS) and name not in _LEFT_OUT:
                    (target / name).symlink_to(Path(parent, name).resolve())
        if modules is not None:
            (view / _MODULES).unlink()
            (view / _MODULES).write_text(json.dumps(modules))
        yield view
