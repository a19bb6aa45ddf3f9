"""Scripts of random changes to a collection, and the model that says what must result.

A model is a dictionary from id to code. A script has changes of every sort: those that change the
model (add, upsert, remove, and save, which puts another index in place of the whole collection) and
those that must not (seal, compact, snapshot, copy, which saves an index into a new folder, and
those that only read: check, and load, which loads the folder as an index).
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from violations import Violation

from rankbits.errors import RankbitsError
from rankbits.index import Collection, HammingIndex

N_BITS = 20
KINDS = ("add", "add", "upsert", "remove", "seal", "compact", "snapshot", "save")
WITH_CODES = ("add", "upsert", "save")
FIRST_FREE_ID = 5000  # above all ids of scripts


class Change(NamedTuple):
    kind: str
    number: int  # names the target of a snapshot or a copy
    ids: np.ndarray
    codes: np.ndarray

    def is_possible(self, model):
        """Whether a collection with that content takes the change."""
        ids = self.ids.tolist()
        if self.kind == "add":
            return not any(key in model for key in ids)
        return self.kind != "remove" or all(key in model for key in ids)

    def applied(self, model):
        """The content after the change."""
        if self.kind == "remove":
            gone = set(self.ids.tolist())
            return {key: code for key, code in model.items() if key not in gone}
        if self.kind in WITH_CODES:
            pairs = zip(self.ids.tolist(), self.codes, strict=True)
            new = {key: code.tobytes() for key, code in pairs}
            return new if self.kind == "save" else {**model, **new}
        return model

    def target(self, folder):
        """Where a snapshot or a copy goes."""
        return folder.with_name(f"{self.kind}-{self.number}")


def random_codes(rng, n):
    return np.packbits(rng.integers(0, 2, (n, N_BITS), dtype=np.uint8), axis=1)


def random_script(rng, model, n, kinds=KINDS):
    """Random changes, and the model after each of them; the first is the one before all."""
    changes, models = [], [model]
    for number in range(n):
        model = models[-1]
        changes.append(
            random_change(rng, model, str(rng.choice(kinds)) if model else "add", number)
        )
        models.append(changes[-1].applied(model))
    return changes, models


def random_change(rng, model, kind, number):
    """A change of one kind that is possible."""
    known = np.array(sorted(model), np.int64)
    ids = known[:0]
    if kind in WITH_CODES:
        ids = rng.choice(4000, int(rng.choice([1, 3, 30])), replace=False).astype(np.int64)
        ids = np.setdiff1d(ids, known) if kind == "add" else np.union1d(ids, known[:2])
    if kind == "remove":
        ids = rng.choice(known, min(len(known), int(rng.choice([1, 3, 20]))), replace=False)
    return Change(kind, number, ids, random_codes(rng, len(ids) if kind in WITH_CODES else 0))


def make_change(collection, change):
    """Make one change; the collection to go on with, which is opened anew behind a save."""
    folder, after = collection.folder, apply_change(collection, change)
    return Collection.open(folder, writable=True) if after is None else after


def apply_change(collection, change):
    """Make one change; the collection to go on with, or None where it had to be closed."""
    folder = Path(collection.folder)
    if change.kind in ("add", "upsert"):
        getattr(collection, change.kind)(change.codes, ids=change.ids)
    elif change.kind == "remove":
        collection.remove(change.ids)
    elif change.kind == "snapshot":
        collection.snapshot(change.target(folder))
    elif change.kind == "copy":
        collection.index().save(change.target(folder))
    elif change.kind == "save":
        index = HammingIndex(N_BITS)
        index.add(change.codes, change.ids)
        collection.close()
        index.save(folder)
        return None
    elif change.kind == "load":
        HammingIndex.load(folder)
    else:
        getattr(collection, change.kind)()
    return collection


def content_of(holder):
    """What a collection or an index holds, as a model."""
    ids = holder.ids
    return dict(zip(ids.tolist(), map(bytes, holder.codes(ids).packed), strict=True))


def content_at(folder):
    """What a process that opens the folder now finds there."""
    return content_of(HammingIndex.load(folder))


def check_writer(folder, model):
    """A writer sees the model, finds nothing wrong, can change it, and leaves no stray files."""
    try:
        with Collection.open(folder, writable=True) as collection:
            collection.check()
            if content_of(collection) != model:
                raise Violation("a writer sees another content than a reader before it")
            collection.add(np.zeros((1, 3), np.uint8), ids=[FIRST_FREE_ID])
            collection.remove([FIRST_FREE_ID])
            strays = check_files(folder, collection)
    except RankbitsError as error:
        raise Violation(f"it is not sound, or cannot be changed any more: {error}") from error
    if strays:
        raise Violation(f"files are left that belong to nothing: {strays}")


def check_files(folder, collection):
    """Names in the folder of segments that the collection does not know; empty if all is well."""
    names = {Path(part["file"]).name for part in collection.check()["segments"] if part.get("file")}
    return sorted(set(os.listdir(folder / "segments")) - names)
