"""Fast-weight memories on the CPU: linear attention, delta rules, gated and recurrent ones, and caches.

    memory = fastweights.DeltaRule(key_size=64, heads=8)
    state = memory.initial_state(batch=2)
    outputs = memory.scan(state, query, key, value, beta)

query, key [batch, time, heads, d_k], value and outputs [batch, time, heads, d_v], beta [batch, time, heads],
from NumPy, PyTorch or any other library with DLPack, without a copy. `fastweights.torch` has the same for
autograd. Every memory of the C++ library is a class here, a subclass of Memory.
"""

import os

from . import _core
from ._core import *
from ._core import __version__, set_num_threads

__all__ = _core.__all__ + ["__version__"]

# A forked process has no OpenMP threads, and waits forever for them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: set_num_threads(1))
