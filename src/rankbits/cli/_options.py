"""Options that several commands share: each name is declared here once, with one meaning.

A command annotates a parameter with a declaration, `Annotated[int, K]`; a string after it replaces
the help text for this command. Options that go together are a frozen dataclass, which a command
takes as one parameter; `Commands` spreads its fields over the signature.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer


class CodeForm(StrEnum):
    """How a file holds codes."""

    auto = "auto"
    packed = "packed"
    bits = "bits"
    logits = "logits"


class QueryKind(StrEnum):
    """What codes are searched by: bits of the query, or a real weight for each bit."""

    bits = "bits"
    weights = "weights"


class Similarity(StrEnum):
    """How float vectors are compared."""

    cosine = "cosine"
    ip = "ip"
    l2 = "l2"


class OutputFormat(StrEnum):
    """How a result is printed."""

    json = "json"
    table = "table"


def _declare(panel: str | None, *names: str, help: str, **settings: Any) -> Any:  # noqa: A002
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


_CODES, _RELEVANCE, _ADDRESS = "Codes", "Relevance", "Address"
_RUNNING, _OUTPUT = "Running", "Output"
PANELS = (None, _CODES, _RELEVANCE, _ADDRESS, _RUNNING, _OUTPUT)  # in the order of --help

QUERIES = _declare(_CODES, "--queries", help="Codes of the queries.")
DATABASE = _declare(_CODES, "--database", help="Codes of the database; repeat it for each shard.")
BITS = _declare(_CODES, "--bits", min=1, help="Code length, if the file does not say it.")
CODES = _declare(_CODES, "--codes", help="What a file holds; auto knows all but logits.")
BY = _declare(_CODES, "--by", help="Queries are bits, or weights of bits.")
SIMILARITY = _declare(_CODES, "--similarity", help="How float vectors are compared.")

QUERY_LABELS = _declare(_RELEVANCE, "--query-labels", help="Classes (1-D) or multi-hot tags (2-D).")
DATABASE_LABELS = _declare(
    _RELEVANCE, "--database-labels", "--item-labels", help="The same of the items, for each file."
)
JUDGEMENTS = _declare(
    _RELEVANCE, "--judgements", help="Instead: (query, item, level) rows, or qrels."
)
QUERY_IDS = _declare(_RELEVANCE, "--query-ids", help="Ids of the queries in the qrels file.")
DATABASE_IDS = _declare(
    _RELEVANCE, "--database-ids", "--item-ids", help="Ids of the items, for each file."
)
GRADED = _declare(_RELEVANCE, "--graded", help="The level is the number of shared tags.")
EXCLUDE_SELF = _declare(_RELEVANCE, "--exclude-self", help="Query i is item i: do not rank it.")

METRIC = _declare(None, "--metric", help="Such as AP, nDCG@10, RR@10, P@r2; repeat it for more.")
METHOD = _declare(None, "--method", help="Method; repeat it for more.")
PARAM = _declare(None, "--param", metavar="NAME=VALUE", help="A parameter; VALUE is JSON.")
DATA = _declare(None, "--data", help="Folder or file with the data.")
SEEDS = _declare(None, "--seeds", min=1, help="Number of seeds.")
SPLIT_SEED = _declare(None, "--split-seed", min=0, help="Seed of the split.")
MODEL = _declare(None, "--model", help="Folder of the model that encoded the items.")
K = _declare(None, "-k", "--k", min=1, help="Number of neighbors.")
POOL = _declare(None, "--pool", min=1, help="Items found by codes, which vectors re-rank.")
IDS = _declare(None, "--ids", help="Integer ids; default: the numbers after the largest id.")

SEED = _declare(_RUNNING, "--seed", min=0, help="Seed of the random numbers.")
THREADS = _declare(_RUNNING, "--threads", min=1, help="Number of threads; default: all.")
CLUSTER = _declare(_RUNNING, "--cluster", help="Run on a Ray cluster: auto, or HOST:PORT.")
VERIFY = _declare(_RUNNING, "--verify/--no-verify", help="Compare files with their checksums.")

OUT = _declare(_OUTPUT, "--out", help="File or folder to write.")
OVERWRITE = _declare(_OUTPUT, "--overwrite", help="Replace what an earlier run left in --out.")
FORMAT = _declare(_OUTPUT, "--format", help="How to print the result.")
QUIET = _declare(_OUTPUT, "--quiet", help="Print nothing on standard error but errors.")


@dataclass(frozen=True)
class CodeOptions:
    """Codes of queries, codes of a database in one or more shards, and how to read them."""

    queries: Annotated[str | None, QUERIES] = None
    database: Annotated[list[str] | None, DATABASE] = None
    bits: Annotated[int | None, BITS] = None
    codes: Annotated[CodeForm, CODES] = CodeForm.auto


@dataclass(frozen=True)
class RelevanceOptions:
    """Files that say what is relevant to whom: labels of both sides, or judged pairs."""

    query_labels: Annotated[str | None, QUERY_LABELS] = None
    database_labels: Annotated[list[str] | None, DATABASE_LABELS] = None
    judgements: Annotated[str | None, JUDGEMENTS] = None
    query_ids: Annotated[str | None, QUERY_IDS] = None
    database_ids: Annotated[list[str] | None, DATABASE_IDS] = None

    @property
    def are_given(self) -> bool:
        """Whether there are any."""
        return bool(self.query_labels or self.database_labels or self.judgements)


@dataclass(frozen=True)
class GradedRelevance(RelevanceOptions):
    """The same, and what the levels and the items of a query are."""

    graded: Annotated[bool, GRADED] = False


@dataclass(frozen=True)
class AddressOptions:
    """Where a server listens."""

    host: Annotated[str, _declare(_ADDRESS, "--host", help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, _declare(_ADDRESS, "--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8000
    allow_host: Annotated[
        list[str] | None,
        _declare(_ADDRESS, "--allow-host", help="A name that requests may use; repeat for more."),
    ] = None

    @property
    def hosts(self) -> list[str]:
        """Names that requests may use: of this machine, that listened on, and those given."""
        return ["localhost", self.host, *(self.allow_host or [])]
