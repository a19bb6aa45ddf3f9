"""What a server is made of, in one place that every route gets."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbits.codes import BinaryCodes, Queries
from rankbits.codes.note import require_same_model
from rankbits.datasets import load_array
from rankbits.errors import InputError
from rankbits.index import SearchPlan
from rankbits.service._batching import Batcher, ScanRequest, Tables
from rankbits.service._encoders import RequestEncoder
from rankbits.service._images import Images
from rankbits.service._items import Items
from rankbits.service._json_fields import Bounds
from rankbits.service._limits import Limits
from rankbits.service._metrics import Metrics
from rankbits.service._pieces import queries_at_once
from rankbits.service._request_memory import RequestMemory
from rankbits.service._store import CollectionStore


@dataclass(eq=False)
class Parts:
    """A collection, a model and what is known about items.

    Attributes
    ----------
    store : the collection
    encoder : the model, and what stands before it
    items, images : what is known about items, None if nothing
    vectors : the rows of items, row i of item i, or None
    plan : how a search goes that does not say it
    limits : bounds of requests
    token : what a change must be authorized by, None if there are no changes
    metrics, batcher, memory : of the running server
    """

    store: CollectionStore
    encoder: RequestEncoder
    items: Items | None
    images: Images | None
    vectors: np.ndarray | None
    plan: SearchPlan
    limits: Limits
    token: str | None
    metrics: Metrics
    batcher: Batcher
    memory: RequestMemory

    @property
    def bounds(self) -> Bounds:
        """How much the fields of a body may hold."""
        encoder, limits = self.encoder, self.limits
        return Bounds(
            rows=limits.batch,
            ids=limits.allowed,
            width=encoder.row_shape[0] if encoder.takes_vectors else 0,
            n_bits=self.store.n_bits,
            characters=limits.characters,
            reads=encoder.reads,
        )

    @property
    def accepts(self) -> list[str]:
        """In which ways queries can be given."""
        ways = {
            "codes": True,
            "ids": self.store.reader.side is None or self.vectors is not None,
            "vectors": self.encoder.takes_vectors,
            "texts": self.encoder.takes_texts,
            "pictures": self.encoder.takes_pictures,
        }
        return [way for way, is_possible in ways.items() if is_possible]

    def close(self) -> None:
        """Finish what is running and let go of the files."""
        self.batcher.close()
        self.store.close()


def assemble(
    store: CollectionStore,
    encoder: RequestEncoder,
    items: Items | None,
    images: str | os.PathLike[str] | None,
    vectors: Any,
    limits: Limits,
    token: str | None,
    plan: SearchPlan | None = None,
) -> Parts:
    """The parts of a server, which must fit each other."""
    _require_model(store, encoder)
    metrics = Metrics()

    def search(by: str, rows: np.ndarray, k: int) -> Tables:
        bits = by == "bits"
        queries = Queries(BinaryCodes(rows, store.n_bits)) if bits else Queries(weights=rows)
        distances, ids = store.reader.search(queries, k, by=by)
        return distances, ids

    def most_queries(scan: ScanRequest) -> int:
        return queries_at_once(scan.kind, store.code_bytes(), scan.k)

    return Parts(
        store=store,
        encoder=encoder,
        items=items,
        images=None if items is None or not items.has_images else Images(items, images, limits),
        vectors=_opened(vectors, encoder),
        plan=_checked_plan(plan, encoder, vectors),
        limits=limits,
        token=token,
        metrics=metrics,
        batcher=Batcher(search, metrics, most_queries),
        memory=RequestMemory(limits.memory),
    )


def _require_model(store: CollectionStore, encoder: RequestEncoder) -> None:
    if encoder.hasher is None:
        return
    if encoder.hasher.n_bits_ != store.n_bits:
        raise InputError(
            f"model must give codes of {store.n_bits} bits, as the collection has, it gives "
            f"{encoder.hasher.n_bits_}"
        )
    of_collection = store.reader.model
    require_same_model(encoder.fingerprint, of_collection, "queries of the model", "the collection")


def _checked_plan(plan: SearchPlan | None, encoder: RequestEncoder, vectors: Any) -> SearchPlan:
    """The plan, or that of the kind of query that the model has."""
    if plan is None:
        kinds = ("bits",) if encoder.hasher is None else encoder.hasher.query_kinds
        return SearchPlan("bits" if "bits" in kinds else "weights")
    if plan.rerank == "vectors" and vectors is None:
        raise InputError("vectors must be given for a plan that re-ranks by vectors")
    return plan


def _opened(vectors: Any, encoder: RequestEncoder) -> np.ndarray | None:
    """The vectors of items, mapped."""
    if vectors is None:
        return None
    rows = vectors if isinstance(vectors, np.ndarray) else load_array(os.fspath(vectors))
    if rows.ndim != 2 or not encoder.takes_vectors or rows.shape[1:] != encoder.row_shape:
        raise InputError(
            f"vectors must have the shape (n, {', '.join(map(str, encoder.row_shape))}) that the "
            f"model reads, got {rows.shape}"
        )
    return rows
