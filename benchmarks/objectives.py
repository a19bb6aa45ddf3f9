"""Speed of one training step of the ranking objective, forward and backward, against torch.

Contenders take turns in one process, one thread each, and the best of several rounds counts. The
`dense` way builds all pairs by all bins, `scatter` adds each pair to its two bins with scatter_add;
both let autograd find the gradient. `gemms` is the step's three matrix products alone, in torch.
Levels are bool, except where a name says int8 or int64.

    python benchmarks/objectives.py [--rounds 5] [--sizes 256 1024 4096] [--json out/steps.json]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before torch reads them

import torch

from rankbits import objectives

N_BITS = 64
DENSE_LIMIT = 1024  # beyond it the dense way takes tens of gigabytes
TARGETS = {256: "<= 1.5", 1024: "<= 1.0", 4096: "<= 0.8"}


def simplified(counts: torch.Tensor) -> torch.Tensor:
    """AP of soft counts (M, bins, 2) in the papers' released form: cheap, so kind to torch."""
    c, p = counts.sum(2), counts[:, :, 1]
    N, P = c.cumsum(1) - c, p.cumsum(1) - p
    return (p * (2 * P + p + 1) / (2 * N + c + 1)).sum(1) / p.sum(1)


def dense_way(phi: torch.Tensor, relevant: torch.Tensor) -> torch.Tensor:
    z = (N_BITS - phi @ phi.T) / 2
    weights = (1 - (z[:, :, None] - torch.arange(N_BITS + 1.0)).abs()).clamp(min=0)
    others = 1 - torch.eye(len(phi))
    masks = torch.stack([~relevant * others, relevant * others], dim=1)
    return simplified((masks @ weights).transpose(1, 2))


def scatter_way(phi: torch.Tensor, relevant: torch.Tensor) -> torch.Tensor:
    z = ((N_BITS - phi @ phi.T) / 2).clamp(0, N_BITS)
    low = z.detach().floor().clamp(max=N_BITS - 1)
    part = (z - low) * (1 - torch.eye(len(phi)))
    rest = (1 + low - z) * (1 - torch.eye(len(phi)))
    cell = 2 * low.long() + relevant
    counts = torch.zeros(len(phi), 2 * (N_BITS + 1))
    counts = counts.scatter_add(1, cell, rest).scatter_add(1, cell + 2, part)
    return simplified(counts.view(len(phi), N_BITS + 1, 2))


def step(objective: Callable[..., torch.Tensor], phi: torch.Tensor, relevant: torch.Tensor) -> None:
    phi = phi.detach().requires_grad_()
    objective(phi, relevant).sum().backward()


def draw(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    phi = torch.tanh(torch.randn(n, N_BITS, generator=generator))
    labels = torch.randint(0, 10, (n,), generator=generator)
    return phi, labels[:, None] == labels


def contenders(n: int) -> dict[str, Callable[[], None]]:
    phi, relevant = draw(n)
    int8, int64 = relevant.to(torch.int8), relevant.to(torch.int64)
    gradient = torch.randn(n, n)

    def gemms() -> None:
        phi @ phi.T, gradient @ phi, gradient.T @ phi

    ways = {
        "gemms": gemms,
        "rankbits exact": lambda: step(objectives.relaxed_ap, phi, relevant),
        "rankbits simplified": lambda: step(
            lambda *a: objectives.relaxed_ap(*a, relaxation="simplified"), phi, relevant
        ),
        "rankbits ndcg": lambda: step(objectives.relaxed_ndcg, phi, relevant),
        "rankbits int8": lambda: step(objectives.relaxed_ap, phi, int8),
        "rankbits int64": lambda: step(objectives.relaxed_ap, phi, int64),
        "scatter": lambda: step(scatter_way, phi, relevant),
    }
    if n <= DENSE_LIMIT:
        ways["dense"] = lambda: step(dense_way, phi, relevant)
    return ways


def best_times(
    ways: dict[str, Callable[[], None]], rounds: int, seconds: float
) -> dict[str, float]:
    """Best milliseconds of each way; they take turns, each for its share of a round."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            until = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                way()
                end = time.perf_counter()
                best[name] = min(best[name], 1e3 * (end - start))
                if end > until:
                    break
    return best


def peak_megabytes(n: int) -> float:
    """Extra memory of a step at size n, in a process of its own."""
    code = f"import objectives as o; o.print_memory({n})"
    here = Path(__file__).parent
    out = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, check=True)
    return float(out.stdout)


def print_memory(n: int) -> None:
    torch.set_num_threads(1)
    step(objectives.relaxed_ap, *draw(64))  # what the first call brings in
    batch = draw(n)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is held now
    before = peak_kilobytes()
    step(objectives.relaxed_ap, *batch)
    print((peak_kilobytes() - before) / 1024)


def peak_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    print(
        f"one step, forward and backward, {N_BITS} bits, one thread; milliseconds, best of rounds"
    )
    for n in arguments.sizes:
        times = best_times(contenders(n), arguments.rounds, 0.3)
        ours = times["rankbits exact"]
        print(f"M = {n}: " + ", ".join(f"{name} {ms:.2f}" for name, ms in times.items()))
        ratios = {name: times[name] / ours for name in ("dense", "scatter") if name in times}
        print(
            f"    exact: {ours / times['gemms']:.2f} of its GEMMs (target {TARGETS.get(n, '-')}), "
            + ", ".join(f"{ratio:.1f} times as fast as {name}" for name, ratio in ratios.items())
        )
        wide = times["rankbits int64"] / times["rankbits int8"]
        print(
            f"    exact: int64 levels take {wide:.3f} of the time of int8 levels (target <= 1.10)"
        )
        results.append({"M": n, "bits": N_BITS, "milliseconds": times})
    memory = peak_megabytes(4096)
    print(f"extra memory of a step at M = 4096: {memory:.0f} MB (target <= 64)")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"steps": results, "extra_mb": memory}, indent=2))


if __name__ == "__main__":
    main()
