"""Fast-weight memories on the CPU: linear attention, delta rules, gated and recurrent ones.

    memory = fastweights.DeltaRule(key_size=64, heads=8)
    state = memory.initial_state(batch=2)
    outputs = memory.scan(state, query, key, value, beta)

query, key [batch, time, heads, d_k], value and outputs [batch, time, heads, d_v], beta [batch, time, heads],
from NumPy, PyTorch or any other library with DLPack, without a copy. `fastweights.torch` has the same for
autograd.
"""

import os

from ._core import (
    Checkpoints,
    DeltaRule,
    GatedDeltaRule,
    GatedLinearAttention,
    HebbianMemory,
    KimiDeltaAttention,
    LinearAttention,
    LowRankRule,
    Memory,
    Mlstm,
    NormalisedDeltaRule,
    NormalisedLinearAttention,
    SimpleGatedLinearAttention,
    State,
    __version__,
    get_num_threads,
    set_num_threads,
)

__all__ = [
    "Checkpoints",
    "DeltaRule",
    "GatedDeltaRule",
    "GatedLinearAttention",
    "HebbianMemory",
    "KimiDeltaAttention",
    "LinearAttention",
    "LowRankRule",
    "Memory",
    "Mlstm",
    "NormalisedDeltaRule",
    "NormalisedLinearAttention",
    "SimpleGatedLinearAttention",
    "State",
    "__version__",
    "get_num_threads",
    "set_num_threads",
]

# A forked process has no OpenMP threads, and waits forever for them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: set_num_threads(1))
