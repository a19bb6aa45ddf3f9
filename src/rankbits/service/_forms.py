"""Requests and answers: what their fields are called and mean.

The classes are what JSON is checked by, and what the OpenAPI description is made of. A binary body
has the same fields: those that are arrays as arrays, all others as JSON texts of its header.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_ID = 2**63 - 2
RENAMED = {"query": "by", "rescore": "rerank", "metric": "similarity"}  # fields of a search
Id = Annotated[int, Field(ge=0, le=MAX_ID)]
Hex = Annotated[str, Field(pattern="^([0-9a-fA-F]{2})+$")]


class Form(BaseModel):
    """A request: unknown fields are refused, and nothing is converted in silence."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RowsForm(Form):
    """Rows to encode: exactly one of the three."""

    vectors: list[list[float]] | None = Field(None, description="Rows of numbers.")
    texts: list[str] | None = Field(None, description="Texts, where the model takes them.")
    pictures: list[str] | None = Field(
        None, description="Pictures as base64 (PNG, JPEG, WebP, BMP), where the model takes them."
    )


class SearchRequest(RowsForm):
    """Queries, given in exactly one way, and what to find for them."""

    codes: list[Hex] | None = Field(
        None, description="Codes in hexadecimal digits, most significant bit first."
    )
    ids: list[Id] | None = Field(None, description="Items of the collection as queries.")
    k: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many items to return; 10 if there is no radius either."
    )
    radius: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="Return items within this distance only; all of them if there is no k.",
    )
    ties: Literal["id", "complete"] = Field(
        "id", description="Of items as far as the k-th: those of lowest id, or all."
    )
    by: Literal["bits", "weights"] | None = Field(
        None,
        description="Compare bits, or weights of real-valued queries; without it, as the plan of "
        "the server says.",
    )
    allowed: list[Id] | None = Field(None, description="Ids that may be returned.")
    labels: list[str] | None = Field(None, description="Labels of items that may be returned.")
    rerank: Literal["none", "weights", "weighted_bits", "vectors"] | None = Field(
        None,
        description="A finer distance, by which the nearest items are put in order again; without "
        "it, as the plan of the server says.",
    )
    weights: list[float] | None = Field(None, description="Weights of bits for weighted_bits.")
    similarity: Literal["cosine", "ip", "l2"] | None = Field(
        None, description="How rerank=vectors compares vectors; without it, as the plan says."
    )
    pool: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How many of the nearest items are compared again."
    )
    include: list[Literal["codes", "fields", "histogram"]] = Field(
        [],
        description="What the answer has beside ids: codes of queries and items, fields of items, "
        "the number of items at each distance of each query.",
    )


class SearchAnswer(BaseModel):
    """Items of each query, nearest first; smaller distances are nearer, whatever was compared."""

    ids: list[list[int]]
    distances: list[list[float | None]]
    query_codes: list[str] | None = None
    codes: list[list[str]] | None = None
    fields: list[list[dict[str, Any]]] | None = None
    histogram: list[list[int]] | None = None
    milliseconds: float


class EncodeRequest(RowsForm):
    """Rows, and what they are encoded as."""

    side: Literal["items", "queries", "weights"] = Field(
        "items",
        alias="as",
        description="Codes of items, codes of queries, or real-valued queries.",
    )


class EncodeAnswer(BaseModel):
    """Codes in hexadecimal digits, or weights."""

    codes: list[str] | None = None
    weights: list[list[float]] | None = None
    bits: int
    model: str | None
    side: str | None


class ItemBody(Form):
    """A new item: its vector, which the model encodes, or its code."""

    vector: list[float] | None = None
    code: Hex | None = None


class UpsertRequest(RowsForm):
    """Items by id: their codes, or rows that the model encodes."""

    ids: list[Id]
    codes: list[Hex] | None = None


class UpsertAnswer(BaseModel):
    """How many items are new, and how many replaced others; all of them are on the disk."""

    created: int
    replaced: int


class Item(BaseModel):
    """An item, its code, and what the table of items has about it."""

    id: int
    code: str
    fields: dict[str, Any]
    image: str | None


class ItemList(BaseModel):
    """Items in ascending order of id; `next` continues after the last, None at the end."""

    items: list[Item]
    next: int | None


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] | None = None
