"""Memories with PyTorch's autograd.

    outputs, state = fastweights.torch.scan(memory, query, key, value, beta)
    outputs.square().mean().backward()

The gradients are the library's own, exact up to rounding, of all inputs and of the initial state.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import Checkpoints, Memory, State

__all__ = ["scan"]


def _state(memory: Memory, tensors: tuple[Tensor | None, ...]) -> State | None:
    """The state with these arrays; None is zeros, and nothing but None is None."""
    given = next((x for x in tensors if x is not None), None)
    if given is None:
        return None
    arrays = memory.initial_state(given.shape[0]).arrays() if any(x is None for x in tensors) else {}
    arrays.update((n, x.detach()) for n, x in zip(memory.state_names, tensors) if x is not None)
    return memory.state(arrays)


def _tensors(state: State) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array) for array in state.arrays().values())


class _Scan(torch.autograd.Function):
    """scan(memory, inputs, arrays of the state or none) -> outputs, arrays of the state"""

    @staticmethod
    def forward(ctx: Any, memory: Memory, *tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(memory.inputs)
        inputs = [x.detach() for x in tensors[:count]]
        state = _state(memory, tensors[count:]) or memory.initial_state(inputs[0].shape[0])
        ctx.memory, ctx.has_state = memory, len(tensors) > count
        ctx.checkpoints = Checkpoints() if any(ctx.needs_input_grad) else None
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[:count])
        outputs = memory.scan(state, *inputs, checkpoints=ctx.checkpoints)
        return (outputs, *_tensors(state))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, output_gradient: Tensor | None, *state_gradient: Tensor | None) -> tuple[Any, ...]:
        memory, inputs = ctx.memory, [x.detach() for x in ctx.saved_tensors]
        if output_gradient is None:
            output_gradient = inputs[0].new_zeros(*inputs[0].shape[:3], memory.value_size)
        gradients, state = memory.backward(
            ctx.checkpoints,
            *inputs,
            output_gradient=output_gradient.detach().contiguous(),
            state_gradient=_state(memory, state_gradient),
        )
        return (None, *gradients.values(), *(_tensors(state) if ctx.has_state else ()))


@torch.compiler.disable
def scan(
    memory: Memory, *inputs: Tensor, initial_state: Mapping[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Writes and reads whole sequences, with gradients.

    `inputs` are those of memory.scan, in the order of memory.inputs: [batch, time, heads, entries], on the
    CPU and of the memory's dtype. Returns the outputs [batch, time, heads, d_v] and the arrays of the final
    state by name ("W" is [batch, heads, d_v, d_k]). `initial_state` has such arrays; zeros by default.

    Raises TypeError for another number of inputs, dtype or device, ValueError for another shape, and
    RuntimeError for a second derivative, which does not exist.
    """
    if len(inputs) != len(memory.inputs):
        raise TypeError(
            f"{memory}: {len(inputs)} inputs are given, expected {len(memory.inputs)}: {', '.join(memory.inputs)}"
        )
    names = memory.state_names
    if initial_state is not None and set(initial_state) != set(names):
        raise ValueError(f"{memory}: initial_state has {', '.join(initial_state)}, expected {', '.join(names)}")
    arrays = [] if initial_state is None else [initial_state[name] for name in names]
    outputs, *final = _Scan.apply(memory, *inputs, *arrays)
    return outputs, dict(zip(names, final))
