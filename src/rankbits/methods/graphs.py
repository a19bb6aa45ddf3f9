"""Torch modules as ONNX graphs, weights included, with a free number of rows."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn


def trace_graph(module: nn.Module, sample: torch.Tensor, outputs: Sequence[str]) -> Any:
    """The ONNX model of a module in evaluation mode; its input is called `x`.

    It needs the packages onnx and onnxscript; `sample` has at least two rows.
    """
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            (sample,),
            dynamo=True,
            input_names=["x"],
            output_names=list(outputs),
            dynamic_shapes=({0: torch.export.Dim("n")},),
            external_data=False,
            verbose=False,
        )
    return program.model_proto  # type: ignore[union-attr]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's progress, warnings and log lines off the caller's streams."""
    level = logging.root.manager.disable
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(level)
