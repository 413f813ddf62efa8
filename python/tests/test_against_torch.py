"""Outputs, states and gradients against the naive recurrence and its autograd, in float64."""

import numpy as np
import pytest
from samples import RULES, distance, memory_of, random_inputs, random_state

import fastweights

torch = pytest.importorskip("torch")
import reference  # noqa: E402  (needs torch)

SIZES = [(1, 1), (3, 17), (17, 3), (64, 64), (65, 100), (100, 65)]
# Forward and backward differ by rounding only, relative to the largest entry.
OUTPUTS, GRADIENTS, FLOAT32 = 1e-12, 1e-10, 1e-4


def tensors(arrays):
    return [torch.tensor(x, requires_grad=True) for x in arrays]


def expected(rule, memory, inputs, initial, weights, state_weights):
    """Outputs, final state and gradients of Σ weights · outputs + Σ state_weights · state by autograd."""
    leaves, state = tensors(inputs), dict(zip(memory.state_names, tensors(initial.arrays().values())))
    outputs, final = reference.scan(rule, leaves, state)
    loss = (outputs * torch.tensor(weights)).sum()
    for name, w in state_weights.items():
        loss = loss + (final[name] * torch.tensor(w)).sum()
    arguments = [*leaves, *state.values()]
    gradients = torch.autograd.grad(loss, arguments, allow_unused=True, materialize_grads=True)
    return outputs, final, gradients[: len(leaves)], dict(zip(state, gradients[len(leaves) :]))


def check(rule, key_size, value_size, time, batch=2, heads=2, **settings):
    memory = memory_of(rule, key_size, value_size, heads, **settings)
    inputs, initial = random_inputs(memory, batch, time), random_state(memory, batch)
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(batch, time, heads, value_size))
    state_weights = {name: rng.normal(size=x.shape) for name, x in initial.arrays().items()}
    outputs, final, gradients, state_gradients = expected(rule, memory, inputs, initial, weights, state_weights)

    state, checkpoints = initial.copy(), fastweights.Checkpoints()
    assert distance(memory.scan(state, *inputs, checkpoints=checkpoints), outputs.detach()) < OUTPUTS
    for name, array in state.arrays().items():
        if name not in ("sum.errors", "normaliser.compensation"):  # of rounding only
            assert distance(array, final[name].detach()) < OUTPUTS, name
    plain = initial.copy()
    assert distance(memory.scan(plain, *inputs), outputs.detach()) < OUTPUTS

    for start in checkpoints, initial:
        ours, ours_state = memory.backward(
            start, *inputs, output_gradient=weights, state_gradient=memory.state(state_weights)
        )
        assert list(ours) == list(memory.inputs)
        for (name, ours_gradient), gradient in zip(ours.items(), gradients):
            assert distance(ours_gradient, gradient) < GRADIENTS, name
        for name, gradient in state_gradients.items():
            assert distance(ours_state[name], gradient) < GRADIENTS, name


@pytest.mark.parametrize("sizes", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("rule", RULES)
def test_sizes(rule, sizes):
    check(rule, *sizes, time=35)


@pytest.mark.parametrize("time", [1, 2, 3, 65])
@pytest.mark.parametrize("rule", RULES)
def test_lengths(rule, time):
    check(rule, 17, 16, time)


@pytest.mark.parametrize("rule", ["GatedDeltaRule", "KimiDeltaAttention", "GatedLinearAttention"])
def test_long_sequence(rule):
    check(rule, 17, 16, time=1100, batch=1, heads=1)


@pytest.mark.parametrize("rule", RULES)
def test_float32(rule):
    exact, rounded = memory_of(rule, 65, 64), memory_of(rule, 65, 64, dtype="float32")
    inputs, initial = random_inputs(exact, 2, 200), random_state(exact, 2)
    ours = rounded.state({name: x.astype("float32") for name, x in initial.arrays().items()})
    outputs = rounded.scan(ours, *(x.astype("float32") for x in inputs))
    assert outputs.dtype == np.float32
    assert distance(outputs, exact.scan(initial, *inputs)) < FLOAT32


@pytest.mark.parametrize("rule", RULES)
def test_float32_gradients(rule):
    exact, rounded = memory_of(rule, 65, 64), memory_of(rule, 65, 64, dtype="float32")
    inputs, initial, end = random_inputs(exact, 2, 200), random_state(exact, 2), random_state(exact, 2, seed=4)
    weights = np.random.default_rng(3).normal(size=(2, 200, 2, 64))

    def single(state):
        return rounded.state({name: x.astype("float32") for name, x in state.arrays().items()})

    expected, expected_state = exact.backward(initial, *inputs, output_gradient=weights, state_gradient=end)
    found, found_state = rounded.backward(
        single(initial),
        *(x.astype("float32") for x in inputs),
        output_gradient=weights.astype("float32"),
        state_gradient=single(end),
    )
    for name, gradient in expected.items():
        assert found[name].dtype == np.float32 and distance(found[name], gradient) < FLOAT32, name
    for name, gradient in expected_state.arrays().items():
        assert distance(found_state[name], gradient) < FLOAT32, name


@pytest.mark.parametrize("rule,settings", [
    ("HebbianMemory", {"decay": 0.7, "rate": 1.5}),
    ("NormalisedDeltaRule", {"epsilon": 0.1}),
    ("NormalisedLinearAttention", {"epsilon": 0.1}),
    ("Mlstm", {"epsilon": 0.1}),
])
def test_settings(rule, settings, monkeypatch):
    step = reference.STEPS[rule]
    monkeypatch.setitem(reference.STEPS, rule, lambda s, *x: step(s, *x, **settings))
    check(rule, 17, 3, time=9, **settings)
