"""Memories, random inputs and random states, as NumPy arrays."""

import re

import numpy as np

import fastweights

# Those with a recurrence in reference.py.
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
MEMORIES = [c.__name__ for c in fastweights.Memory.__subclasses__()]
assert set(RULES) <= set(MEMORIES)


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


# How much a memory keeps, small beside the sequences of the tests.
SMALL = {"capacity": 9, "levels": 4, "slots": 3, "window": 2, "batch": 4, "hidden": 5, "iterations": 3, "segment": 3}
SMALL |= {"functions": 6, "samples": 5, "bins": 16}


def small(name, heads=2, **settings):
    """A memory with d_k = 4, and d_v = 3 unless it has one size; in float64 if it can."""
    made = getattr(fastweights, name)
    options = re.findall(r"(\w+)=", repr(made(4)))[4:]
    settings |= {each: SMALL[each] for each in options if each in SMALL} | settings
    dtype = "float32" if name in ("Bfloat16DeltaRule", "EightBitDeltaRule") else "float64"
    try:
        return made(4, 3, heads, dtype, **settings)
    except ValueError:
        return made(4, None, heads, dtype, **settings)


STRENGTHS = ("beta", "recurrent_beta", "moment_beta", "rate", "token_rate", "forget", "erase", "write", "weights")
STRENGTHS += ("strength", "share", "threshold")
DECAYS = ("decay", "momentum", "moment_decay")


def small_inputs(memory, batch, time, seed=1):
    """Stable inputs in the order of memory.inputs."""
    rng = np.random.default_rng(seed)

    def draw(name, shape):
        if name in STRENGTHS:
            return rng.uniform(0.05, 0.9, size=shape)
        if name in DECAYS:
            return rng.uniform(0.5, 1, size=shape)
        if name == "draws":
            return rng.uniform(size=shape)
        x = rng.normal(size=shape)
        if name in ("query", "key") and "Normalised" in type(memory).__name__:
            x = np.abs(x) + 0.1
        if name == "recurrent_key":
            x = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        if name in ("key", "reflection", "replacement", "lookup", "removal"):
            x = unit(x) * (0.5 if name == "removal" else 1)
        return unit(x) if type(memory).__name__ == "GatedOjaRule" and name == "value" else x

    return [draw(name, shape).astype(memory.dtype) for name, shape in memory.input_shapes(batch, time).items()]


def used_state(memory, batch, seed=2):
    """A state after a few tokens, from weights that differ: nets of zeros learn nothing."""
    rng = np.random.default_rng(seed)
    arrays = memory.initial_state(batch).arrays()
    for name, x in arrays.items():
        if name.startswith(("slow.", "weights.")) or type(memory).__name__ == "SelfReferentialMatrix":
            arrays[name] = (x + 0.3 * rng.normal(size=x.shape) * (x == 0) + 0.1 * rng.uniform(size=x.shape)).astype(x.dtype)
    state = memory.state(arrays)
    memory.scan(state, *small_inputs(memory, batch, 3, seed=5))
    return state


def distance(a, b):
    """The largest difference, relative to the largest entry."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and np.isfinite(a).all()
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
