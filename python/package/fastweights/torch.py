"""Memories with PyTorch's autograd.

    outputs, state = fastweights.torch.scan(memory, query, key, value, beta)
    outputs.square().mean().backward()

The gradients are the library's own, exact up to rounding, of all inputs and of the initial state.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import Checkpoints, Memory, State

__all__ = ["scan"]


def _resolved(x: Tensor) -> Tensor:
    """The tensor outside the graph, with its entries in memory: autograd has zeros and signs without."""
    x = x.detach().resolve_neg()
    return torch.zeros_like(x) if x._is_zerotensor() else x


def _sequence(x: Tensor) -> Tensor:
    """A resolved input; a copy where the kernel does not take the strides."""
    x = _resolved(x)
    refused = (x.dim() == 4 and x.stride(3) != 1) or (x.dim() > 1 and x.stride(1) < 1)
    return x.contiguous() if refused else x


def _state(memory: Memory, tensors: tuple[Tensor | None, ...]) -> State | None:
    """The state with these arrays; None is zeros, and nothing but None is None."""
    given = next((x for x in tensors if x is not None), None)
    if given is None:
        return None
    arrays = {}
    if any(x is None for x in tensors):
        arrays = {n: np.zeros_like(x) for n, x in memory.initial_state(given.shape[0]).arrays().items()}
    arrays.update((n, _resolved(x)) for n, x in zip(memory.state_names, tensors) if x is not None)
    return memory.state(arrays)


def _tensors(state: State) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array) for array in state.arrays().values())


class _Scan(torch.autograd.Function):
    """scan(memory, whether to store checkpoints, inputs, arrays of the state or none) -> outputs, arrays of the state"""

    @staticmethod
    def forward(ctx: Any, memory: Memory, store: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(memory.inputs)
        inputs = [_sequence(x) for x in tensors[:count]]
        state = _state(memory, tensors[count:]) or memory.initial_state(inputs[0].shape[0])
        ctx.memory, ctx.has_state = memory, len(tensors) > count
        ctx.checkpoints = Checkpoints() if store and any(ctx.needs_input_grad) else None
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[:count])
        outputs = memory.scan(state, *inputs, checkpoints=ctx.checkpoints)
        ctx.output_shape, final = outputs.shape, _tensors(state)
        ctx.mark_non_differentiable(*(x for x in final if not x.is_floating_point()))  # counters
        return (outputs, *final)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, output_gradient: Tensor | None, *state_gradient: Tensor | None) -> tuple[Any, ...]:
        memory, inputs = ctx.memory, [_sequence(x) for x in ctx.saved_tensors]
        if output_gradient is None:
            output_gradient = inputs[0].new_zeros(ctx.output_shape)
        gradients, state = memory.backward(
            ctx.checkpoints,
            *inputs,
            output_gradient=_sequence(output_gradient),
            state_gradient=_state(memory, state_gradient),
        )
        arrays = (x if x.is_floating_point() else None for x in _tensors(state))
        return (None, None, *gradients.values(), *(arrays if ctx.has_state else ()))


def _check_tensor(memory: Memory, name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{memory}: {name} is a {type(x).__name__}, expected a tensor of {memory.dtype}")
    if x.dim() == 0:
        raise ValueError(f"{memory}: {name} has shape [], expected [batch, ...]")


def _check_inputs(memory: Memory, inputs: tuple[Any, ...]) -> None:
    if len(inputs) != len(memory.inputs):
        raise TypeError(
            f"{memory}: {len(inputs)} inputs are given, expected {len(memory.inputs)}: {', '.join(memory.inputs)}"
        )
    for name, x in zip(memory.inputs, inputs):
        _check_tensor(memory, name, x)


def _check_state(memory: Memory, state: Any, batch: int) -> None:
    if not isinstance(state, Mapping):
        raise TypeError(
            f"{memory}: initial_state is a {type(state).__name__}, expected a mapping of names to tensors"
        )
    if set(state) != set(memory.state_names):
        given = ", ".join(map(str, state)) or "nothing"
        raise ValueError(f"{memory}: initial_state has {given}, expected {', '.join(memory.state_names)}")
    for name, x in state.items():
        _check_tensor(memory, f"initial_state[{name!r}]", x)
        if x.shape[0] != batch:
            raise ValueError(
                f"{memory}: initial_state[{name!r}] has a batch of {x.shape[0]}, expected {batch} as in the inputs"
            )


@torch.compiler.disable
def scan(
    memory: Memory, *inputs: Tensor, initial_state: Mapping[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Writes and reads whole sequences, with gradients.

    `inputs` are those of memory.scan, in the order of memory.inputs: [batch, time, heads, entries], on the
    CPU and of the memory's dtype. Tensors with strides that memory.scan refuses are copied. Returns the
    outputs [batch, time, heads, d_v] and the arrays of the final state by name ("W" is
    [batch, heads, d_v, d_k]). `initial_state` has such arrays; those of memory.initial_state by default.

    The graph of the results keeps the checkpoints of the scan, also after backward(): detach what you keep.

    Raises TypeError for another number of inputs, dtype or device, ValueError for another shape, and
    RuntimeError for a second derivative, which does not exist. A memory without gradients raises ValueError
    if an input requires one.
    """
    if not isinstance(memory, Memory):
        raise TypeError(f"memory is a {type(memory).__name__}, expected a Memory of fastweights")
    _check_inputs(memory, inputs)
    arrays = []
    if initial_state is not None:
        _check_state(memory, initial_state, inputs[0].shape[0])
        arrays = [initial_state[name] for name in memory.state_names]
    outputs, *final = _Scan.apply(memory, torch.is_grad_enabled(), *inputs, *arrays)
    return outputs, dict(zip(memory.state_names, final))
