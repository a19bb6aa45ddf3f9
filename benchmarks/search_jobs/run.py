"""What one run of the search benchmark was asked to do, and what it has measured so far."""

import json
from dataclasses import dataclass, field
from pathlib import Path

MILLION, TEN_MILLION = 1_000_000, 10_000_000


@dataclass
class Run:
    """The options of one run, the packages to compare with, and the records of its jobs."""

    scale: float
    rounds: int
    with_graphs: bool
    out: Path
    packages: dict[str, object]
    records: list[dict[str, object]] = field(default_factory=list)

    def size(self, n: int) -> int:
        """The number of items for a job that has n of them at full scale."""
        return max(2000, int(n * self.scale))

    def queries(self, n: int) -> int:
        """The number of queries for a job that has n of them at full scale."""
        return n if self.scale >= 0.5 else max(4, n // 10)

    def record(self, job: str, **values: object) -> None:
        self.records.append({"job": job, **values})

    def judge(self, value: float | None, target: float | None) -> str:
        """The target, and at full scale whether the value meets it."""
        if target is None:
            return "–"
        if self.scale < 1 or value is None:
            return f"≥ {target:g}"
        return f"≥ {target:g}: {'met' if value >= target else 'missed'}"

    def write(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "search.json").write_text(json.dumps(self.records, indent=2))
