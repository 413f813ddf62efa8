"""Memories, random inputs and random states of every rule, as NumPy arrays."""

import numpy as np

import fastweights

RULES = [
    "LinearAttention",
    "NormalisedLinearAttention",
    "DeltaRule",
    "NormalisedDeltaRule",
    "GatedLinearAttention",
    "SimpleGatedLinearAttention",
    "GatedDeltaRule",
    "KimiDeltaAttention",
    "HebbianMemory",
    "LowRankRule",
    "Mlstm",
]
# A class that is bound is tested.
assert sorted(RULES) == sorted(c.__name__ for c in fastweights.Memory.__subclasses__())


def memory_of(rule, key_size, value_size=None, heads=2, dtype="float64", **settings):
    return getattr(fastweights, rule)(key_size, value_size, heads, dtype, **settings)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def random_inputs(memory, batch, time, seed=1):
    """Stable inputs in the order of memory.inputs."""
    rng = np.random.default_rng(seed)
    tokens, keys = (batch, time, memory.heads), (batch, time, memory.heads, memory.key_size)
    positive = type(memory).__name__.startswith("Normalised")
    vector_decay = type(memory).__name__ in ("GatedLinearAttention", "KimiDeltaAttention", "LowRankRule")
    key = rng.normal(size=keys)
    key = unit(np.abs(key) + 0.1 if positive else key)
    query = rng.normal(size=keys)
    found = {
        "query": np.abs(query) + 0.1 if positive else query,
        "key": key,
        "value": rng.normal(size=(*tokens, memory.value_size)),
        "beta": rng.uniform(0.05, 1, size=tokens),
        "decay": rng.uniform(0.5, 1, size=keys if vector_decay else tokens),
        "removal": -0.5 * key,
        "replacement": unit(rng.normal(size=keys)),
        "input_gate": rng.normal(size=tokens),
        "forget_gate": 2 + rng.normal(size=tokens),
    }
    return [np.ascontiguousarray(found[name], dtype=memory.dtype) for name in memory.inputs]


def random_state(memory, batch, seed=2):
    """A state as it is after a few tokens; errors of sums are of the size of a rounding."""
    rng = np.random.default_rng(seed)
    arrays = memory.initial_state(batch).arrays()
    sizes = {"sum.errors": 1e-17, "normaliser.compensation": 1e-17}
    return memory.state(
        {
            name: (sizes.get(name, 1.0) * np.abs(rng.normal(size=array.shape))).astype(array.dtype)
            for name, array in arrays.items()
        }
    )


def distance(a, b):
    """The largest difference, relative to the largest entry."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and np.isfinite(a).all()
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
