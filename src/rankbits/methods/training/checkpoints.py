"""Checkpoints: the whole state of a training in one file, replaced in one rename.

The file is safetensors: tensors by name, and the rest as JSON in its header, so a kill leaves the
old state or the new one and no pickle is ever read. A checkpoint carries the fingerprint of its
training (settings, data, labels, encoder): that of another training is refused, never continued.
"""

import hashlib
import json
import time
import warnings
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rankbits import _files
from rankbits._check import extra
from rankbits._tensors import TensorFile
from rankbits.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from rankbits.methods.training.preparation import Preparation


VERSION = 2  # 1: before the configuration of a training had one set of names
_NAME = "checkpoint.safetensors"
_BLOCK = 1 << 24


class Checkpoints:
    """Where a training saves its state, and how often; without a folder, nowhere.

    A disk that is full does not end the training: the last good checkpoint stays, a warning is
    given, and saving is tried again later. `n_failed` counts the failures.
    """

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        fingerprint: str = "",
        *,
        resume: bool = True,
        every_epochs: int | None = None,
        every_seconds: float = 10.0,
    ) -> None:
        self.path = None if folder is None else Path(folder) / _NAME
        self.resume, self.every_epochs, self.every_seconds = resume, every_epochs, every_seconds
        self.n_failed, self.fingerprint = 0, fingerprint
        self._saved = time.monotonic()
        if self.path is not None:
            _make_folder(self.path.parent)

    def sweep(self) -> None:
        """Remove what a kill left of a checkpoint that was being written."""
        if self.path is not None:
            for part in self.path.parent.glob(f".{_NAME}.{'[0-9a-f]' * 8}"):
                part.unlink(missing_ok=True)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The state to resume from; None to start at the beginning."""
        if self.path is None or not self._is_there():
            return None
        facts = _read_facts(self.path)
        if facts["fingerprint"] != self.fingerprint:
            raise InputError(
                f"checkpoint {self.path} belongs to another training: settings, data or labels "
                "differ; choose another folder, or set resume=False to replace it"
            )
        return _read_tensors(self.path), facts

    def is_due(self, epoch: int) -> bool:
        """Whether it is time to save, after the epoch of that number, from 1."""
        if self.path is None:
            return False
        by_epochs = self.every_epochs is not None and epoch % self.every_epochs == 0
        return by_epochs or time.monotonic() - self._saved >= self.every_seconds

    def save(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Replace the checkpoint."""
        if self.path is None:
            return
        self._saved = time.monotonic()
        facts = {"version": VERSION, "fingerprint": self.fingerprint, **facts}
        data = _to_bytes(tensors, facts)
        try:
            with _files.write_atomically(self.path) as file:
                file.write(data)
        except OSError as error:
            self.n_failed += 1
            message = f"checkpoint {self.path} cannot be written ({error}); training goes on"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _is_there(self) -> bool:
        return self.resume and self.path is not None and self.path.exists()


def read_seed(folder: str | PathLike[str]) -> int | None:
    """The seed of the training whose checkpoint lies in a folder; None without a checkpoint."""
    path = Path(folder) / _NAME
    return int(_read_facts(path)["seed"]) if path.exists() else None


def compute_fingerprint(facts: dict[str, Any], arrays: list[np.ndarray]) -> str:
    """A hash of settings and data, the same for the same training only."""
    state = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
    for array in arrays:
        state.update(f"{array.dtype} {array.shape}".encode())
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(flat), _BLOCK):
            state.update(flat[start : start + _BLOCK].data)
    return state.hexdigest()


def _to_bytes(tensors: dict[str, Tensor], facts: dict[str, Any]) -> bytes:
    package = extra("safetensors.torch", "a checkpoint", "train")
    plain = {
        name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()
    }
    data: bytes = package.save(plain, metadata={"rankbits": json.dumps(facts)})
    return data


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(TensorFile(path).texts["rankbits"])
    except _files.READ_ERRORS as error:
        raise FileFormatError(
            f"checkpoint {path} is damaged or no checkpoint ({_files.one_line(error)}); "
            "delete it, or set resume=False to replace it"
        ) from error
    version = facts.get("version") if isinstance(facts, dict) else None
    if version != VERSION:
        raise FileFormatError(
            f"checkpoint {path} was written by another version of rankbits (checkpoint format "
            f"{version}, this version has {VERSION}) and cannot be continued; delete it, or set "
            "resume=False to train from the beginning"
        )
    return dict(facts)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    package = extra("safetensors.torch", "a checkpoint", "train")
    tensors: dict[str, Tensor] = package.load(path.read_bytes())
    return {name: torch.clone(tensor) for name, tensor in tensors.items()}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"checkpoint must be a folder, {folder} cannot be created: {error}"
        ) from None


def stage_checkpoints(preparation: "Preparation", stage: str) -> Checkpoints:
    """Where a training before that of the bits saves its state."""
    config = preparation.config
    return Checkpoints(
        None if config.checkpoint is None else Path(config.checkpoint) / stage,
        f"{stage} of {preparation.fingerprint}",
        resume=config.resume,
        every_seconds=config.checkpoint_seconds,
    )
