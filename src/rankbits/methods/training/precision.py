"""Mixed precision: convolutions and products in bfloat16, all else in float32.

A processor that multiplies bfloat16 does so twice as fast as float32; one that does not would only
emulate it. Weights, sums of gradients and encoding stay in float32, so codes do not depend on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def choose_precision() -> str:
    """The precision in which a network of pictures trains fastest on this processor."""
    is_fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "mixed" if is_fast else "single"


@contextmanager
def computing(precision: str, device: torch.device) -> Iterator[None]:
    """Run the forward pass of a block in that precision."""
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "mixed"):
        yield
