"""Mixed precision: a network multiplies in bfloat16, everything else stays in float32.

Weights, their gradients and moments, losses and statistics are float32. It is used only where the
processor has instructions for products of bfloat16; elsewhere they are emulated and slow.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch


def use_mixed_precision(precision: str) -> bool:
    """Whether a training with this `precision` multiplies in bfloat16 on this processor."""
    return precision == "mixed" and multiplies_bfloat16()


@cache
def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    has_instructions = any(getattr(torch.cpu, name, lambda: False)() for name in names)
    return has_instructions and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def mixed_precision(is_mixed: bool) -> AbstractContextManager[object]:
    """A block in which networks on the processor multiply in bfloat16, if so."""
    return torch.autocast("cpu", torch.bfloat16) if is_mixed else nullcontext()
