"""Models on disk: a folder with `model.safetensors` (arrays) and `model.json` (everything else).

Nothing is pickled, so loading a model runs no code from it. The JSON holds the checksum of the
arrays and one of itself: a model that is altered, cut or of an unknown kind is a FileFormatError.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from rankbits._check import extra
from rankbits._files import READ_ERRORS, one_line, write_atomically
from rankbits._folders import read_folder, write_folder_atomically
from rankbits._json import installed_version, seal, unseal
from rankbits.errors import FileFormatError, RankbitsError
from rankbits.methods.json_values import from_json, to_json
from rankbits.methods.registry import class_of, name_of, names

FORMAT, VERSION = "rankbits model", 1
_FACTS, _ARRAYS = "model.json", "model.safetensors"
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
    tensors = extra("safetensors.numpy", "saving a model", "files")
    arrays, facts = hasher._state()
    content = tensors.save({name: as_stored(array) for name, array in arrays.items()})
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
    data, content = read_folder(folder, (_FACTS, _ARRAYS))
    try:
        record = _parse_record(data)
        arrays = _read_arrays(content, record["arrays_sha256"])
        return _rebuild(record, arrays)
    except FileFormatError as error:
        raise FileFormatError(f"{folder} cannot be loaded: {error}") from None


def find_foreign(folder: Path) -> str | None:
    """What a folder holds beside the two files of a model of any version; None if nothing."""
    for path in sorted(folder.iterdir()):
        if path.name not in (_FACTS, _ARRAYS) or path.is_symlink() or not path.is_file():
            return f"holds something else, {path.name}"
    try:
        record = json.loads((folder / _FACTS).read_bytes())
    except (*READ_ERRORS, RecursionError):
        record = None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return f"holds something else: its {_FACTS} is not that of a model"
    return None


def _parse_record(data: bytes) -> dict[str, Any]:
    """The record in model.json: of a known format, unaltered, with exactly the known fields."""
    record = unseal(data, _FACTS, FORMAT, VERSION)
    fields = {"format", "version", *_FIELDS}
    if set(record) != fields:
        differing = ", ".join(sorted(set(record) ^ fields))
        raise FileFormatError(f"{_FACTS} has fields that are missing or unknown: {differing}")
    for name, kinds in _FIELDS.items():
        if type(record[name]) not in kinds:
            raise FileFormatError(f"{_FACTS} has {record[name]!r:.40} as its {name}")
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
    params, facts, arrays = (
        _rename(values, method_class._former_names)
        for values in (_read_dict(record, "params"), _read_dict(record, "facts"), arrays)
    )
    unknown = sorted(set(params) - set(method_class._get_param_names()))
    if unknown:
        raise FileFormatError(f"{method} has no parameter {unknown[0]!r:.40}")
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


def _rename(values: dict[str, Any], former_names: dict[str, str]) -> dict[str, Any]:
    """The same values, those with a former name under the one of today."""
    return {former_names.get(name, name): value for name, value in values.items()}


def _restore_features(hasher: Any, record: dict[str, Any]) -> None:
    n_features, columns = record["n_features_in"], record["feature_names_in"]
    if n_features is not None:
        if n_features < 1:
            raise FileFormatError(f"{_FACTS} has {n_features} as its n_features_in")
        hasher.n_features_in_ = n_features
    if columns is not None:
        if len(columns) != n_features or not all(isinstance(name, str) for name in columns):
            raise FileFormatError(f"{_FACTS} must name each of its {n_features} features")
        hasher.feature_names_in_ = np.array(columns, dtype=object)


def _read_arrays(content: bytes, sha256: str) -> dict[str, np.ndarray]:
    """The arrays of model.safetensors by name; a file with another checksum is refused."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise FileFormatError(f"{_ARRAYS} is damaged: its checksum does not match")
    tensors = extra("safetensors.numpy", "loading a model", "files")
    from safetensors import SafetensorError

    try:
        return {name: np.array(array) for name, array in tensors.load(content).items()}
    except (SafetensorError, *READ_ERRORS) as error:
        raise FileFormatError(f"{_ARRAYS} cannot be read: {one_line(error)[:100]}") from None


def as_stored(array: np.ndarray) -> np.ndarray:
    """Contiguous and little-endian: safetensors writes other arrays as they lie in memory."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _list_columns(columns: Any) -> list[str] | None:
    return None if columns is None else [str(name) for name in columns]
