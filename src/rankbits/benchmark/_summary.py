"""Many runs in few numbers: mean and spread over seeds, for each method and code length."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankbits.benchmark._published import Published

_CODE_USE = ("n_distinct", "share_of_space", "collision_rate", "entropy_bits")


def summarise(
    runs: Sequence[dict[str, Any]], published: Sequence[Published] = ()
) -> list[dict[str, Any]]:
    """A row for each method and code length, in the order in which they first come.

    `sd` is the sample standard deviation, with n - 1 below; None for a single run. `published` are
    the papers' values at that length.
    """
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in runs:
        settings = run["settings"]
        groups.setdefault((settings["method"], settings["bits"]), []).append(run)
    return [
        {
            "method": method,
            "bits": bits,
            "runs": len(group),
            "metrics": {name: _spread(group, name) for name in group[0]["metrics"]},
            "code_use": {
                name: float(np.mean([run["code_use"][name] for run in group])) for name in _CODE_USE
            },
            "seconds": {
                name: float(np.mean([run["seconds"][name] for run in group]))
                for name in group[0]["seconds"]
            },
            "published": [row for paper in published for row in paper.at(bits)],
        }
        for (method, bits), group in groups.items()
    ]


def _spread(group: Sequence[dict[str, Any]], name: str) -> dict[str, float | None]:
    values = np.array([run["metrics"][name]["mean"] for run in group])
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
    }
