"""Models on disk: a folder with `model.safetensors` (arrays) and `model.json` (everything else).

Nothing is pickled, so loading a model runs no code from it. The JSON holds the checksum of the
arrays and one of itself: a model that is altered, cut or of an unknown kind is a FileFormatError.
"""

import hashlib
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankbits._check import describe_names, whole
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._folders import read_file, read_folder, write_folder_atomically
from rankbits._json import MOST_BYTES, installed_version, parse_json, seal, unseal
from rankbits.codes import MAX_BITS
from rankbits.errors import FileFormatError, InputError, RankbitsError
from rankbits.methods import stored_arrays
from rankbits.methods.json_values import from_json, to_json
from rankbits.methods.registry import class_of, name_of, names
from rankbits.methods.stored_arrays import MOST_FEATURES, read_arrays, write_arrays

FORMAT, VERSION = "rankbits model", 1
_FACTS, _ARRAYS = "model.json", stored_arrays.NAME
_FIELDS: dict[str, tuple[type, ...]] = {
    "rankbits": (str,),
    "method": (str,),
    "n_bits": (int,),
    "n_features_in": (int, type(None)),
    "feature_names_in": (list, type(None)),
    "params": (dict,),
    "facts": (dict,),
    "arrays_sha256": (str,),
}


def save(hasher: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted method to a folder; a model that is already there is replaced as a whole."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(hasher)
    arrays, facts = hasher._state()
    content = write_arrays(arrays)
    record = {
        "rankbits": installed_version(),
        "method": name_of(hasher),
        "n_bits": hasher.n_bits_,
        "n_features_in": getattr(hasher, "n_features_in_", None),
        "feature_names_in": _list_columns(getattr(hasher, "feature_names_in_", None)),
        "params": to_json("params", hasher._saved_params()),
        "facts": to_json("facts", facts),
        "arrays_sha256": hashlib.sha256(content).hexdigest(),
    }
    facts = seal(FORMAT, VERSION, record)
    with write_folder_atomically(folder, find_foreign) as place:
        for name, data in ((_ARRAYS, content), (_FACTS, facts)):
            with write_atomically(place / name) as file:
                file.write(data)


def load(folder: str | os.PathLike[str]) -> Any:
    """The fitted method that `save` wrote to a folder.

    A model of another format version, or one that is damaged or inconsistent, is refused.

    Parameters
    ----------
    folder : str or path-like
        Folder with the two files of a model, `model.json` and `model.safetensors`.

    Returns
    -------
    hasher : BaseHasher
        Fitted method of the class that was saved.
    """
    data, content = read_folder(folder, (_FACTS, _ARRAYS), _require_sizes)
    try:
        record = _parse_record(data)
        arrays = read_arrays(content, record["arrays_sha256"])
        return _rebuild(record, arrays)
    except InputError as error:
        raise FileFormatError(f"{folder} cannot be loaded: {error}") from None


def find_foreign(folder: Path) -> str | None:
    """What a folder holds beside the two files of a model of any version; None if nothing."""
    for path in sorted(folder.iterdir()):
        if path.name not in (_FACTS, _ARRAYS) or path.is_symlink() or not path.is_file():
            return f"holds something else, {path.name}"
    try:
        record = parse_json(_FACTS, read_file(folder / _FACTS, _require_sizes))
    except (OSError, FileFormatError):
        record = None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return f"holds something else: its {_FACTS} is not that of a model"
    return None


def _parse_record(data: bytes) -> dict[str, Any]:
    """The record in model.json: of a known format, unaltered, with exactly the known fields."""
    record = unseal(data, _FACTS, FORMAT, VERSION)
    fields = {"format", "version", *_FIELDS}
    if set(record) != fields:
        differing = describe_names(sorted(set(record) ^ fields))
        raise FileFormatError(f"{_FACTS} has fields that are missing or unknown: {differing}")
    for name, kinds in _FIELDS.items():
        if type(record[name]) not in kinds:
            raise FileFormatError(f"{_FACTS} has {record[name]!r:.40} as its {name}")
    whole("n_bits", record["n_bits"], 1, MAX_BITS)
    return record


def _rebuild(record: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The method of a record, with its parameters and what it has learned."""
    method = record["method"]
    if method not in names():
        raise FileFormatError(
            f"the method {method!r:.40} is unknown to this rankbits ({installed_version()}); "
            f"known: {', '.join(names())}"
        )
    method_class = class_of(method)
    params, facts = _read_dict(record, "params"), _read_dict(record, "facts")
    known = set(method_class._get_param_names()) - set(method_class._unsaved_params)
    unknown = sorted(set(params) - known)
    if unknown:
        raise FileFormatError(f"a saved {method} has no parameter {unknown[0]!r:.40}")
    hasher = method_class(**params)
    _restore_features(hasher, record)
    try:
        hasher._restore(arrays, facts)
        fits = hasher.n_bits_ == record["n_bits"]
    except RankbitsError:
        raise
    except READ_ERRORS as error:
        raise FileFormatError(
            f"its arrays and facts do not belong together: {one_line(error)[:200]}"
        ) from None
    if not fits:
        raise FileFormatError(
            f"its arrays give codes of {hasher.n_bits_} bits, but its record says "
            f"{record['n_bits']}"
        )
    return hasher


def _read_dict(record: dict[str, Any], name: str) -> dict[str, Any]:
    values = from_json(record[name])
    if not isinstance(values, dict):
        raise FileFormatError(f"the {name} in {_FACTS} must be a dict, got {values!r:.40}")
    return values


def _restore_features(hasher: Any, record: dict[str, Any]) -> None:
    n_features, columns = record["n_features_in"], record["feature_names_in"]
    if n_features is not None:
        whole("n_features_in", n_features, 1, MOST_FEATURES)
        hasher.n_features_in_ = n_features
    if columns is not None:
        if len(columns) != n_features or not all(isinstance(name, str) for name in columns):
            raise FileFormatError(f"{_FACTS} must name each of its {n_features} features")
        hasher.feature_names_in_ = np.array(columns, dtype=object)


def _require_sizes(name: str, file: IO[bytes], status: os.stat_result) -> None:
    """Refuse a file before it is read, if reading it would take more than its content is worth."""
    if name == _ARRAYS:
        stored_arrays.require_described(file, status)
    elif status.st_size > MOST_BYTES:
        raise FileFormatError(f"{name} must have at most {MOST_BYTES} bytes, got {status.st_size}")


def _list_columns(columns: Any) -> list[str] | None:
    return None if columns is None else [str(name) for name in columns]
