"""All exhibits, in the order in which pages show them: a new one is an entry of a paper's list."""

from rankbits import _check
from rankbits.papers import _lwh, _mlgap, _rsh, _talr
from rankbits.papers._exhibit import Exhibit

_EXHIBITS: dict[str, Exhibit] = {
    exhibit.id: exhibit for paper in (_talr, _rsh, _lwh, _mlgap) for exhibit in paper.EXHIBITS
}


def exhibits() -> tuple[Exhibit, ...]:
    """All tables and figures.

    >>> [exhibit.id for exhibit in exhibits()][:3]
    ['talr-fig1', 'talr-fig3', 'talr-table1']
    """
    return tuple(_EXHIBITS.values())


def exhibit(name: str) -> Exhibit:
    """One of them by its id.

    Parameters
    ----------
    name : one of the ids of `exhibits`
    """
    return _EXHIBITS[_check.choice("id", name, tuple(_EXHIBITS))]
