"""The frozen part of a backbone, asked by the fastest engine there is.

OpenVINO (extra `openvino`) runs the first blocks of EfficientNet-Lite0 faster than torch does,
which it gets as an ONNX graph. Without it, on another device, or for a module of the user's own,
whose graph nobody has checked, torch runs them.
"""

import importlib
from collections.abc import Callable
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn

from rankbits.methods.graphs import trace_graph
from rankbits.methods.training.devices import mixed_precision
from rankbits.methods.vision.backbones import FirstBlocks

TORCH = "torch"
Ask = Callable[[Tensor], np.ndarray]  # rows in, maps out, float16


def name_engine(network: nn.Module, device: torch.device) -> str:
    """The engine that asks this network on this device, with its version: results depend on it."""
    is_known = isinstance(network, FirstBlocks) and device.type == "cpu"
    engine = _find_openvino() if is_known else None
    return TORCH if engine is None else f"openvino {engine.__version__}"


def prepare_network(
    network: nn.Module, rows: Tensor, device: torch.device, *, is_mixed: bool
) -> Ask:
    """A function that asks a frozen network about rows like these, in bfloat16 if so."""
    network.eval()
    if name_engine(network, device) == TORCH:
        return _prepare_torch(network, device, is_mixed)
    return _prepare_openvino(network, rows, is_mixed)


def _find_openvino() -> ModuleType | None:
    """OpenVINO, if it is installed together with what makes graphs for it."""
    try:
        _, _, engine = map(importlib.import_module, ("onnx", "onnxscript", "openvino"))
    except ImportError:
        return None
    return engine


def _prepare_torch(network: nn.Module, device: torch.device, is_mixed: bool) -> Ask:
    def ask(rows: Tensor) -> np.ndarray:
        with torch.inference_mode(), mixed_precision(device.type == "cpu" and is_mixed):
            maps: Tensor = network(rows.to(device))
        return np.asarray(maps.to(torch.float16).cpu().contiguous().numpy())

    return ask


def _prepare_openvino(network: nn.Module, rows: Tensor, is_mixed: bool) -> Ask:
    engine = _find_openvino()
    assert engine is not None  # noqa: S101
    sample = rows[:1].float().repeat(2, *[1] * (rows.dim() - 1))
    graph = trace_graph(network, sample, ["maps"]).SerializeToString()
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16" if is_mixed else "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": 1,
    }
    core = engine.Core()
    request = core.compile_model(core.read_model(graph), "CPU", settings).create_infer_request()

    def ask(rows: Tensor) -> np.ndarray:
        request.infer({"x": np.ascontiguousarray(rows.float().numpy())})
        return np.asarray(request.get_output_tensor(0).data.astype(np.float16))

    return ask
