"""Checkpoints belong to the memory that filled them; a state may be start and gradient at once."""

import numpy as np
import pytest
from alone import error_of
from samples import distance, memory_of, random_inputs, random_state

import fastweights

WITH_HEADS = """
import numpy as np, fastweights
one, two = (fastweights.DeltaRule(4, heads=n, dtype="float64") for n in {heads})
checkpoints = fastweights.Checkpoints()
def inputs(batch, heads):
    return [np.ones((batch, 5, heads, 4))] * 3 + [np.ones((batch, 5, heads))]
one.scan(one.initial_state({batches[0]}), *inputs({batches[0]}, one.heads), checkpoints=checkpoints)
two.backward(checkpoints, *inputs({batches[1]}, two.heads), output_gradient=inputs({batches[1]}, two.heads)[0])
"""


@pytest.mark.parametrize("heads,batches", [((1, 4), (2, 2)), ((4, 1), (2, 2)), ((2, 4), (4, 2))])
def test_other_heads_are_refused(heads, batches):
    error = error_of(WITH_HEADS.format(heads=heads, batches=batches))
    assert error.startswith("ValueError: DeltaRule: start is checkpoints of DeltaRule(")
    assert f"heads={heads[0]}" in error and f"expected checkpoints of DeltaRule(key_size=4, value_size=4, heads={heads[1]}" in error


def filled(memory, batch=2, time=5):
    checkpoints, inputs = fastweights.Checkpoints(), random_inputs(memory, batch, time)
    outputs = memory.scan(memory.initial_state(batch), *inputs, checkpoints=checkpoints)
    return checkpoints, inputs, outputs


@pytest.mark.parametrize("other", [
    fastweights.HebbianMemory(4, 4, 2, "float64", decay=0.5),
    fastweights.HebbianMemory(4, 4, 2, "float64", rate=1.0),
    fastweights.HebbianMemory(4, 5, 2, "float64"),
    fastweights.LinearAttention(4, 4, 2, "float64"),
])
def test_other_hyperparameters_are_refused(other):
    checkpoints, _, _ = filled(memory_of("HebbianMemory", 4))
    inputs = random_inputs(other, 2, 5)
    with pytest.raises(ValueError, match=r"start is checkpoints of HebbianMemory\(key_size=4, .* of " + type(other).__name__):
        other.backward(checkpoints, *inputs, output_gradient=inputs[2])


def test_other_batch_and_length_are_refused():
    memory = memory_of("DeltaRule", 4)
    checkpoints, inputs, outputs = filled(memory, 2, 5)
    with pytest.raises(ValueError, match=r"query has shape \[1, 5, 2, 4\], expected \[2, time, 2, 4\]"):
        memory.backward(checkpoints, *(x[:1] for x in inputs), output_gradient=outputs[:1])
    with pytest.raises(ValueError, match="the inputs have 3 tokens, expected the 5 of the checkpoints"):
        memory.backward(checkpoints, *(x[:, :3] for x in inputs), output_gradient=outputs[:, :3])


def test_an_equal_memory_may_use_them():
    memory = memory_of("HebbianMemory", 4)
    checkpoints, inputs, outputs = filled(memory)
    expected, _ = memory.backward(checkpoints, *inputs, output_gradient=outputs)
    found, _ = memory_of("HebbianMemory", 4).backward(checkpoints, *inputs, output_gradient=outputs)
    assert all((expected[name] == found[name]).all() for name in expected)


def test_a_scan_of_another_memory_fills_them_again():
    memory, other = memory_of("DeltaRule", 4, heads=1), memory_of("DeltaRule", 5, heads=3)
    checkpoints, inputs, _ = filled(memory)
    others = random_inputs(other, 2, 7)
    with pytest.raises(TypeError, match="beta is a NoneType"):
        other.scan(other.initial_state(2), *others[:-1], None, checkpoints=checkpoints)
    memory.backward(checkpoints, *inputs, output_gradient=inputs[2])  # a refused scan leaves them
    other.scan(other.initial_state(2), *others, checkpoints=checkpoints)
    found, _ = other.backward(checkpoints, *others, output_gradient=others[2])
    expected, _ = other.backward(other.initial_state(2), *others, output_gradient=others[2])
    assert all(distance(found[name], expected[name]) < 1e-12 for name in found)
    with pytest.raises(ValueError, match="start is checkpoints of DeltaRule"):
        memory.backward(checkpoints, *inputs, output_gradient=inputs[2])


def test_a_state_may_be_start_and_gradient():
    memory = memory_of("GatedDeltaRule", 4, 3)
    inputs, state = random_inputs(memory, 2, 5), random_state(memory, 2)
    expected, expected_state = memory.backward(
        state, *inputs, output_gradient=inputs[2], state_gradient=state.copy()
    )
    found, found_state = memory.backward(state, *inputs, output_gradient=inputs[2], state_gradient=state)
    assert all((expected[name] == found[name]).all() for name in expected)
    assert (expected_state["W"] == found_state["W"]).all()
    assert (state["W"] == random_state(memory, 2)["W"]).all()


def test_no_tokens():
    memory = memory_of("NormalisedDeltaRule", 4, 3)
    inputs, start, end = random_inputs(memory, 2, 0), random_state(memory, 2), random_state(memory, 2, seed=3)
    checkpoints = fastweights.Checkpoints()
    assert memory.scan(start.copy(), *inputs, checkpoints=checkpoints).shape == (2, 0, 2, 3)
    for begin in start, checkpoints:
        gradients, state = memory.backward(
            begin, *inputs, output_gradient=np.zeros((2, 0, 2, 3)), state_gradient=end
        )
        assert gradients["key"].shape == (2, 0, 2, 4)
        assert all((state[name] == end[name]).all() for name in memory.state_names)
