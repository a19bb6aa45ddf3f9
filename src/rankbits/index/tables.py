"""Several tables of codes searched as one: an item is as far as the table that has it nearest."""

from collections.abc import Iterator, Sequence, Sized
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from rankbits import _check
from rankbits.codes import BinaryCodes, Queries
from rankbits.errors import InputError
from rankbits.index import inputs
from rankbits.index.door import CodeRequest, Codes, Door, Moment
from rankbits.index.hamming import HammingIndex
from rankbits.index.results import Matches, combined, cut, matches_of, unique


class TablesMoment(Moment):
    """All tables as they stand."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._moments = moments
        self.codes_of = [codes_of for moment in moments for codes_of in moment.codes_of]

    def __len__(self) -> int:
        return len(self._moments[0])

    def nearest(self, request: CodeRequest) -> Matches:
        """What any table has among its nearest, each item once and at its smallest distance."""
        tables = zip(self._moments, request.tables, strict=True)
        answers = [one.nearest(request._replace(tables=[queries])) for one, queries in tables]
        ragged = [answer.ragged() for answer in answers]
        found = unique(combined(ragged, len(request.tables[0]), None))
        if request.k is not None:
            found = cut(found, request.k, request.is_complete)
        return matches_of(found, answers[0].n_places)


class TablesIndex(Door):
    """Items with a code in each of several tables; the distance is the smallest over the tables.

    The k nearest are exact for every exact kind: where (distance, id) orders item j before item i
    in the table that has i nearest, it also does so by smallest distances, since that of i is the
    same and that of j no larger. So an item among the k nearest by smallest distance is among the k
    nearest of the table that has it nearest, and the union of the tables' k nearest holds them all.

    Parameters
    ----------
    n_bits : int, 1 to 4096, of a code in each table
    n_tables : int, 1 or more
    kind, n_threads : as of `HammingIndex`

    >>> index = TablesIndex(8, n_tables=2, kind="scan")
    >>> near, far = np.array([[0], [255]], np.uint8), np.array([[15], [0]], np.uint8)
    >>> index.add([near, far])
    array([0, 1])
    >>> query = np.array([[0]], np.uint8)
    >>> distances, ids = index.search([query, query], k=2)
    >>> distances.tolist(), ids.tolist()
    ([[0, 0]], [[0, 1]])
    """

    def __init__(
        self, n_bits: int, n_tables: int, kind: str = "auto", n_threads: int | None = None
    ) -> None:
        n_tables = _check.whole("n_tables", n_tables, 1)
        self._tables = [HammingIndex(n_bits, kind, n_threads=n_threads) for _ in range(n_tables)]

    @property
    def n_bits(self) -> int:
        """Bits of a code in each table."""
        return self._tables[0].n_bits

    @property
    def has_factors(self) -> bool:
        """Tables have no factors."""
        return False

    @property
    def n_threads(self) -> int | None:
        """Threads of a search, None for as many as there are."""
        return self._tables[0].n_threads

    @property
    def n_tables(self) -> int:
        """Number of tables."""
        return len(self._tables)

    @property
    def ids(self) -> np.ndarray:
        """Ids of all items, ascending."""
        return self._tables[0].ids

    @property
    def n_bytes(self) -> int:
        """Memory of all tables."""
        return sum(one.n_bytes for one in self._tables)

    def __len__(self) -> int:
        return len(self._tables[0])

    def __contains__(self, item: object) -> bool:
        return item in self._tables[0]

    def __repr__(self) -> str:
        return (
            f"TablesIndex(n={len(self)}, n_bits={self.n_bits}, n_tables={self.n_tables}, "
            f"kind={self._tables[0].kind!r})"
        )

    def add(self, codes: Sequence[Codes], ids: Any = None) -> np.ndarray:
        """Add items by their codes in each table; see `HammingIndex.add`."""
        checked = self._checked(codes)
        first = self._tables[0].add(checked[0], ids)
        for one, its_codes in zip(self._tables[1:], checked[1:], strict=True):
            one.add(its_codes, ids)
        return first

    def upsert(self, codes: Sequence[Codes], ids: Any) -> None:
        """Add items, replacing those that are there under the same id."""
        checked = self._checked(codes)
        checked_ids = inputs.ids_of(ids, len(checked[0]))
        for one, its_codes in zip(self._tables, checked, strict=True):
            one.upsert(its_codes, checked_ids)

    def remove(self, ids: Any) -> None:
        """Remove items; an id that is not there is an error, and then nothing is removed."""
        for one in self._tables:
            one.remove(ids)

    def compact(self) -> None:
        """Bring the items of each table into one part and forget removed ones for good."""
        for one in self._tables:
            one.compact()

    def codes(self, ids: Any = None) -> list[BinaryCodes]:
        """The codes of some items in each table, in the order of ids; of all, ascending."""
        return [one.codes(ids) for one in self._tables]

    @contextmanager
    def _look(self, *sources: Any) -> Iterator["TablesMoment"]:
        with ExitStack() as stack:
            moments = [stack.enter_context(one._look(*sources)) for one in self._tables]
            yield TablesMoment(moments)

    def _tables_of(self, queries: Any) -> Sequence[Queries]:
        self._require_tables("codes", queries)
        tables = [
            its_queries
            if isinstance(its_queries, Queries)
            else Queries(inputs.codes_of(f"codes[{place}]", its_queries, self.n_bits))
            for place, its_queries in enumerate(queries)
        ]
        _common_size("queries", tables)
        return tables

    def _weighted(self, weights: Any, correction: Any) -> list[Queries]:
        self._require_tables("weights", weights)
        return [Queries(weights=its_weights) for its_weights in weights]

    def _checked(self, codes: Sequence[Codes]) -> list[BinaryCodes]:
        """Codes of the same items in each table."""
        self._require_tables("codes", codes)
        checked = [
            inputs.codes_of(f"codes[{place}]", its_codes, self.n_bits)
            for place, its_codes in enumerate(codes)
        ]
        _common_size("codes", checked)
        return checked

    def _require_tables(self, name: str, values: Sequence[Any]) -> None:
        """Refuse what is not a list with an entry for each table."""
        is_list = isinstance(values, Sequence | np.ndarray)
        if not is_list or len(values) != self.n_tables:
            raise InputError(
                f"{name} must be a list with the {name} of each of {self.n_tables} tables, got "
                f"{f'{len(values)} tables' if is_list else _check.describe(values)}"
            )


def _common_size(name: str, values: Sequence[Sized]) -> int:
    """How many rows each table has, which must be the same."""
    sizes = {len(its_values) for its_values in values}
    if len(sizes) > 1:
        raise InputError(
            f"{name} must be as many in every table, got {sorted(sizes)}; encode the same rows "
            "for all of them"
        )
    return sizes.pop()
