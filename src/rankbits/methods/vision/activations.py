"""Activations: what the frozen part of a backbone makes of several views of every picture.

The first view is the picture as it is, the second its mirror image; further ones are moved by some
pixels and mirrored at random. They are computed once, in blocks of rows, into one mapped file of
float16, so that a training which passes over the rows many times runs the last blocks only. A file
that was left unfinished is continued at its next block.

Notation: V views, n rows, maps of shape (C, H, W).
"""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits import _files
from rankbits._mapped import unchanged
from rankbits.errors import InputError
from rankbits.methods.shallow.shared.progress import show_progress
from rankbits.methods.training import parallel
from rankbits.methods.training.checkpoints import compute_fingerprint
from rankbits.methods.training.config import TrainingConfig
from rankbits.methods.training.devices import use_mixed_precision
from rankbits.methods.training.inputs import RowViews
from rankbits.methods.vision.augmentation import move_images
from rankbits.methods.vision.frozen import name_engine, prepare_network

_BLOCK = 256
_SECONDS = 5.0  # from one note of what is done to the next
_SPARE_BYTES = 1 << 30  # that stay free on the disk
_FEWEST_VIEWS, _MOST_VIEWS = 2, 8
_SETTINGS = ("fine_tune", "image_size", "flip", "shift", "precision", "seed")


class Activations(RowViews):
    """Maps of n pictures in V views, of which the first is the pictures as they are."""

    def __init__(
        self, maps: np.ndarray, device: torch.device, rows: np.ndarray | None = None
    ) -> None:
        self.maps, self.device = maps, device  # (V, rows of the file, C, H, W) float16, mapped
        self.rows = np.arange(maps.shape[1]) if rows is None else rows

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, C, H, W)."""
        return (len(self.rows), *self.maps.shape[2:])

    def __getitem__(self, chosen: slice | Tensor) -> Tensor:
        rows = self.rows[chosen if isinstance(chosen, slice) else chosen.cpu().numpy()]
        return self._read(np.zeros(len(rows), np.int64), rows)

    def draw(self, chosen: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Maps of rows, each in a view drawn at random."""
        views = rng.integers(len(self.maps), size=len(chosen))
        return self._read(views, self.rows[chosen])

    def select_view(self, view: int) -> "Activations":
        """The rows in one of their views."""
        return Activations(self.maps[view : view + 1], self.device, self.rows)

    def take(self, chosen: np.ndarray) -> "Activations":
        """Some of the rows."""
        return Activations(self.maps, self.device, self.rows[chosen])

    def to(self, device: torch.device) -> "Activations":
        """The same rows, read to another device."""
        return Activations(self.maps, device, self.rows)

    def _read(self, views: np.ndarray, rows: np.ndarray) -> Tensor:
        with unchanged(self.maps):
            return torch.from_numpy(self.maps[views, rows]).to(self.device)


class ActivationsFile:
    """A mapped file of activations, and beside it a note of how many blocks are computed.

    Its name has a fingerprint of the images and settings. Without a folder it is a temporary file
    that nobody else sees, and that is gone when its maps are no longer used.
    """

    def __init__(self, folder: Path | None, fingerprint: str) -> None:
        self.folder = Path(tempfile.gettempdir()) if folder is None else folder
        self.path = None if folder is None else folder / f"activations-{fingerprint[:16]}.npy"
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def open(self, shape: tuple[int, ...]) -> tuple[np.memmap[Any, Any], int]:
        """The maps, and how many blocks of them are computed already."""
        n_done = self._read_note(shape)
        if self.path is not None and n_done is not None:
            os.close(_files.open_own(self.path, os.O_RDWR))
            return np.load(self.path, mmap_mode="r+"), n_done
        self.remove()
        self._require_space(2 * int(np.prod(shape)))
        if self.path is not None:
            os.close(_files.open_own(self.path, os.O_RDWR))
            return np.lib.format.open_memmap(self.path, "w+", np.float16, shape), 0
        with tempfile.TemporaryFile() as file:  # the mapping outlives its name
            return np.memmap(file, np.float16, "w+", shape=shape), 0

    def note(self, maps: np.memmap[Any, Any], n_done: int) -> None:
        """Say that so many blocks are computed, once they are on the disk."""
        if self.path is not None:
            with unchanged(maps):
                maps.flush()
            with _files.write_atomically(self.path.with_suffix(".json")) as file:
                file.write(json.dumps({"n_done": n_done}).encode())

    def remove(self) -> None:
        """Remove the file and its note."""
        if self.path is not None:
            self.path.with_suffix(".json").unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)

    def _read_note(self, shape: tuple[int, ...]) -> int | None:
        if self.path is None:
            return None
        try:
            n_done = json.loads(self.path.with_suffix(".json").read_bytes())["n_done"]
            maps = np.load(self.path, mmap_mode="r")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        is_sound = isinstance(n_done, int) and maps.shape == shape and maps.dtype == np.float16
        return n_done if is_sound else None

    def _require_space(self, n_bytes: int) -> None:
        free = shutil.disk_usage(self.folder).free
        if n_bytes + _SPARE_BYTES > free:
            raise InputError(
                f"activations need {n_bytes / 1e9:.1f} GB on disk, and {self.folder} has "
                f"{free / 1e9:.1f} GB; name a checkpoint folder on another disk, or take fewer "
                "n_views, or tune fewer blocks"
            )


def compute_activations(
    first: nn.Module, images: np.ndarray, config: TrainingConfig, device: torch.device
) -> Activations:
    """What the frozen part makes of all views of the images, from where the file stopped."""
    is_mixed = use_mixed_precision(config.precision)
    ask = prepare_network(first, torch.from_numpy(images[:1]), device, is_mixed=is_mixed)
    place = find_activations(images, config, name_engine(first, device))
    n_views, maps_shape = count_views(config), ask(torch.from_numpy(images[:1])).shape[1:]
    maps, n_done = place.open((n_views, len(images), *maps_shape))
    starts = range(0, len(images), _BLOCK)
    blocks = [(view, start) for view in range(n_views) for start in starts]
    noted = time.monotonic()
    with show_progress(config.verbose, "activations", len(blocks)) as advance:
        for number, (view, start) in enumerate(blocks):
            if number >= n_done:
                x = draw_view(torch.from_numpy(images[start : start + _BLOCK]), view, start, config)
                maps[view, start : start + _BLOCK] = ask(x)
                if time.monotonic() - noted > _SECONDS or number + 1 == len(blocks):
                    place.note(maps, number + 1)
                    noted = time.monotonic()
            advance(f"view {view + 1} of {n_views}")
    return Activations(maps, device)


def find_activations(images: np.ndarray, config: TrainingConfig, engine: str) -> ActivationsFile:
    """Where an engine's activations of images lie, or will lie; processes do not share a file."""
    folder = None
    if config.checkpoint is not None and parallel.world_size() == 1:
        folder = Path(config.checkpoint) / "activations"
    settings = {name: getattr(config, name) for name in _SETTINGS}
    settings |= {"n_views": count_views(config), "engine": engine}
    return ActivationsFile(folder, compute_fingerprint(settings, [images]))


def count_views(config: TrainingConfig) -> int:
    """In how many views each picture is seen: by default half as many as there are epochs."""
    if not config.flip and not config.shift:
        return 1
    if config.n_views is not None:
        return config.n_views
    return min(max(_FEWEST_VIEWS, -(-config.epochs // 2)), _MOST_VIEWS)


def draw_view(x: Tensor, view: int, start: int, config: TrainingConfig) -> Tensor:
    """A block of images as they are, mirrored, or mirrored at random and moved."""
    if view == 0:
        return x
    if view == 1 and config.flip:
        return x.flip(2)
    rng = np.random.default_rng([config.seed, view, start])
    return move_images(x, config.flip, config.shift, rng)
