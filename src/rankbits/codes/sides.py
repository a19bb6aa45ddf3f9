"""Which side of a search codes are for.

A model may encode queries and items by two maps. Its query codes are compared with its item codes
and with nothing else. Codes of a model with one map, and codes of unknown origin, are for either
side: their side is None.
"""

from typing import TYPE_CHECKING, Any

from rankbits import _check
from rankbits.errors import InputError

if TYPE_CHECKING:
    from rankbits.codes.binary_codes import BinaryCodes

ITEMS, QUERIES = "items", "queries"
SIDES = (ITEMS, QUERIES)


def checked_side(side: Any) -> str | None:
    """The side that codes are for, or None for either."""
    return None if side is None else _check.choice("side", side, SIDES)


def require_same_side(first: str | None, second: str | None) -> None:
    """Refuse to join query codes with item codes."""
    if first is not None and second is not None and first != second:
        raise InputError(f"parts must be for one side, got codes of {first} and of {second}")


def require_query_side(name: str, codes: "BinaryCodes") -> None:
    """Refuse item codes of a model that has another map for queries."""
    if codes.side == ITEMS:
        raise InputError(
            f"{name} must be encoded as queries, got codes for items of a model that encodes the "
            "two differently; encode them with hasher.encode_queries(X), or with "
            "rankbits encode --as queries"
        )


def require_item_side(name: str, codes: "BinaryCodes") -> None:
    """Refuse query codes of a model that has another map for items."""
    if codes.side == QUERIES:
        raise InputError(
            f"{name} must be encoded as items, got codes for queries of a model that encodes the "
            "two differently; encode them with hasher.encode(X), or with rankbits encode"
        )


def check_sides(queries: "BinaryCodes", database: "BinaryCodes") -> None:
    """Refuse item codes as queries, and query codes as the database.

    Parameters
    ----------
    queries : BinaryCodes
        Codes of the queries. Their `side` must not be "items".
    database : BinaryCodes
        Codes of the items. Their `side` must not be "queries".
    """
    require_query_side("queries", queries)
    require_item_side("database", database)
