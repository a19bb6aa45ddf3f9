"""Several processes, one batch: each encodes its part, the loss sees all of it.

Every process computes the loss of the whole batch, so its value is that of one process. The
gradient with respect to the gathered logits is the same everywhere; each process keeps the slice of
its own rows, carries it back through its part, and the sum over processes is the gradient of one.

A group is used if the caller has started one (`torch.distributed.init_process_group`); without it
every function here is the identity.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

_alone = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Work that every process does in full, by itself."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def world_size() -> int:
    """Number of processes that train together; 1 without a group."""
    if _alone.get():
        return 1
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def rank() -> int:
    """Number of this process, from 0; process 0 writes the files."""
    return distributed.get_rank() if world_size() > 1 else 0


def own_share(n: int) -> slice:
    """The positions of a batch of n rows that this process encodes: contiguous, nearly equal."""
    bounds = _bounds(n)
    return slice(bounds[rank()], bounds[rank() + 1])


def gather(part: Tensor, n: int) -> Tensor:
    """All n rows, in the order of the batch, from each process's share of them."""
    if world_size() == 1:
        return part
    gathered: Tensor = _Gather.apply(part, n)  # type: ignore[no-untyped-call]
    return gathered


def summed(part: Tensor) -> Tensor:
    """The sum over processes, with the gradient of every process's use of it."""
    if world_size() == 1:
        return part
    result: Tensor = _Sum.apply(part)  # type: ignore[no-untyped-call]
    return result


def total(value: Tensor) -> Tensor:
    """The sum over processes of a number that needs no gradient."""
    if world_size() > 1:
        distributed.all_reduce(value)
    return value


def sum_gradients(module: nn.Module) -> None:
    """Add up the gradients of what each process did with its own rows."""
    if world_size() == 1:
        return
    for parameter in module.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            distributed.all_reduce(parameter.grad)


def agree(number: float) -> float:
    """Process 0's number, everywhere: decisions must not depend on the process."""
    if world_size() == 1:
        return number
    value = torch.tensor(number, dtype=torch.float64)
    distributed.broadcast(value, 0)
    return float(value)


def copy_from_first(module: nn.Module) -> None:
    """Give every process the weights and buffers of process 0."""
    if world_size() > 1:
        for tensor in module.state_dict().values():
            distributed.broadcast(tensor, 0)


def wait_for_all() -> None:
    """Let no process pass before the last one is here."""
    if world_size() > 1:
        distributed.barrier()


def _bounds(n: int) -> list[int]:
    sizes = [len(part) for part in np.array_split(np.empty(n), world_size())]
    return [0, *np.cumsum(sizes).tolist()]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, n: int) -> Tensor:
        bounds = _bounds(n)
        sizes = np.diff(bounds)
        padded = part.new_zeros(int(sizes.max()), *part.shape[1:])
        padded[: len(part)] = part
        received = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(received, padded)
        ctx.own_part = own_share(n)
        return torch.cat([rows[:size] for rows, size in zip(received, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0][ctx.own_part].contiguous(), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        result = part.clone()
        distributed.all_reduce(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        result = gradients[0].clone()
        distributed.all_reduce(result)
        return result
