"""What the parts of a backbone cost by torch, onnxruntime and OpenVINO: milliseconds a picture.

EfficientNet-Lite0 is cut as `fine_tune="last:N"` cuts it, and both parts are asked about a block of
pictures by every engine in turn, round after round; the best round counts. Beside each figure
stands how many times as fast as torch in single precision that is.

    python benchmarks/frozen_part.py [--last 11] [--image-size 224] [--block 64] [--rounds 5]
        [--threads 1]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankbits._memory import all_memory_kept
from rankbits.methods.graphs import trace_graph
from rankbits.methods.vision.backbones import load_backbone, split_backbone

Engine = Callable[[], Any]


def by_torch(part: nn.Module, rows: Tensor, *, is_mixed: bool) -> Engine:
    def ask() -> Tensor:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            out: Tensor = part(rows)
        return out

    return ask


def by_onnxruntime(graph: bytes, rows: Tensor, n_threads: int) -> Engine:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    session, values = onnxruntime.InferenceSession(graph, options), rows.numpy()
    return lambda: session.run(None, {"x": values})


def by_openvino(graph: bytes, rows: Tensor, n_threads: int, precision: str) -> Engine:
    import openvino

    core, values = openvino.Core(), rows.numpy()
    settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": n_threads}
    model = core.compile_model(core.read_model(graph), "CPU", {**settings, "NUM_STREAMS": 1})
    request = model.create_infer_request()
    return lambda: request.infer({"x": values})


def contenders(part: nn.Module, rows: Tensor, n_threads: int) -> dict[str, Engine]:
    graph = trace_graph(part, rows[:2], ["maps"]).SerializeToString()
    return {
        "torch, float32": by_torch(part, rows, is_mixed=False),
        "torch, bfloat16": by_torch(part, rows, is_mixed=True),
        "onnxruntime, float32": by_onnxruntime(graph, rows, n_threads),
        "OpenVINO, float32": by_openvino(graph, rows, n_threads, "f32"),
        "OpenVINO, bfloat16": by_openvino(graph, rows, n_threads, "bf16"),
    }


def measure(engines: dict[str, Engine], n_rows: int, n_rounds: int) -> dict[str, float]:
    """Milliseconds a picture by every engine."""
    best = dict.fromkeys(engines, float("inf"))
    for number in range(n_rounds + 1):
        for name, ask in engines.items():
            started = time.perf_counter()
            ask()
            seconds = time.perf_counter() - started
            if number:  # the first round warms up
                best[name] = min(best[name], seconds / n_rows * 1e3)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--last", type=int, default=11)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parts = split_backbone(load_backbone("efficientnet-lite0", options.image_size), options.last)
    first, last = (part.eval() for part in parts)
    pictures = np.random.default_rng(0).integers(0, 256, (options.block, 32, 32, 3))
    rows = torch.from_numpy(pictures.astype(np.float32))
    with all_memory_kept():
        with torch.no_grad():
            maps = first(rows).contiguous()
        costs = [
            measure(contenders(part, x, options.threads), options.block, options.rounds)
            for part, x in ((first, rows), (last, maps))
        ]
    print(f"{options.image_size} pixels, {options.threads} threads, ms a picture")
    print(f"| | first blocks | last {options.last} |\n|---|---|---|")
    for name in costs[0]:
        cells = [f"{cost[name]:.2f} ({cost['torch, float32'] / cost[name]:.1f}x)" for cost in costs]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
