"""What the benchmarks of classes share: scores, a store of cells, tables.

A cell is one fit and its scores. Each finished cell is written to a JSON file at once, so that a
benchmark that was stopped continues where it was.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

_DECIMALS = 5  # scores that differ by less are ties


def score_queries(
    weights: np.ndarray, item_bits: np.ndarray, query_y: np.ndarray, item_y: np.ndarray
) -> float:
    """Mean tie-aware AP of the rankings by ⟨weights, ±1 code⟩, same class being relevant."""
    items = np.where(item_bits, np.float32(1), np.float32(-1))
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, len(items) + 1))])
    values = []
    for weight, label in zip(weights.astype(np.float32), query_y, strict=True):
        scores = np.round(items @ weight, _DECIMALS)
        values.append(_average_precision(scores, item_y == label, harmonic))
    return float(np.nanmean(values))


def _average_precision(scores: np.ndarray, relevant: np.ndarray, harmonic: np.ndarray) -> float:
    """AP in expectation over the orders of equal scores, equation (AP) of docs/math.md."""
    order = np.argsort(-scores, kind="stable")
    edges = np.flatnonzero(np.diff(scores[order])) + 1
    before = np.concatenate([[0], edges])
    after = np.concatenate([edges, [len(scores)]])
    hits = np.concatenate([[0], np.cumsum(relevant[order])])
    n, m, n_hits = after - before, hits[after] - hits[before], hits[before]
    span = harmonic[after] - harmonic[before]
    slope = (m - 1) / np.maximum(n - 1, 1)
    added = m / n * ((n_hits + 1) * span + slope * (n - (before + 1) * span))
    return float(added.sum() / hits[-1]) if hits[-1] else float("nan")


def hash_split(*parts: np.ndarray) -> str:
    """A short hash of the rows of a split, in their order."""
    state = hashlib.blake2b(digest_size=6)
    for part in parts:
        state.update(np.ascontiguousarray(part, dtype=np.int64).tobytes())
        state.update(b"|")
    return state.hexdigest()


class CellStore:
    """Finished cells in a JSON file, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells: dict[str, dict] = json.loads(path.read_text()) if path.exists() else {}

    def compute(self, name: str, cell: Callable[[], Mapping[str, float]]) -> dict:
        """The cell of that name: from the file, or computed and written there."""
        if name not in self.cells:
            self.cells[name] = dict(cell())
            self.path.write_text(json.dumps(self.cells, indent=1))
            print(name, self.cells[name], flush=True)
        return self.cells[name]


def print_leads(cells: Mapping[tuple, list[dict]], methods: Sequence[str]) -> None:
    """How far the first method leads each other one, seed by seed.

    `cells` are the scores of the seeds by (method, kind of maps, bits). A method is taken at the
    kind of maps and of query with its best mean. A seed draws the rows, which moves all methods
    together, so that differences on the same rows vary less than scores do.
    """
    lengths = sorted({n_bits for _, _, n_bits in cells})
    first, *others = methods
    print(f"\n| `{first}` leads by | " + " | ".join(f"{n} bits" for n in lengths) + " |")
    print("|---|" + "---|" * len(lengths))
    for other in others:
        leads = []
        for n_bits in lengths:
            ours, theirs = (_find_best_scores(cells, name, n_bits) for name in (first, other))
            leads.append(_format_differences(np.subtract(ours, theirs)))
        print(f"| `{other}` | " + " | ".join(leads) + " |")


def _find_best_scores(cells: Mapping[tuple, list[dict]], method: str, n_bits: int) -> list[float]:
    """Scores of the seeds by the kind of maps and of query that is best in the mean."""
    ways = [
        [cell[asked_by] for cell in seeds]
        for (name, _, length), seeds in cells.items()
        if (name, length) == (method, n_bits)
        for asked_by in ("bits", "real")
    ]
    return max(ways, key=np.mean)


def _format_differences(differences: np.ndarray) -> str:
    each = ", ".join(f"{value:+.4f}" for value in differences)
    return f"{differences.mean():+.4f} ± {differences.std():.4f} ({each})".replace("0.", ".")


def format_mean(values: list[float]) -> str:
    """Mean and standard deviation over seeds, as the tables of the documentation have them."""
    spread = f" ± {np.std(values):.3f}".replace("0.", ".") if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}".replace("0.", ".", 1)
