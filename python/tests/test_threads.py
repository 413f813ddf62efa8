"""Threads of the library and of Python."""

import os
import threading

import pytest
from samples import RULES, memory_of, random_inputs, random_state

import fastweights


@pytest.fixture(autouse=True)
def number_of_threads():
    before = fastweights.get_num_threads()
    yield
    fastweights.set_num_threads(before)


def run(memory, inputs):
    state = random_state(memory, 3)
    outputs = memory.scan(state, *inputs)
    gradients, ds = memory.backward(random_state(memory, 3), *inputs, output_gradient=outputs)
    return [outputs, state["W"], *gradients.values(), ds["W"]]


@pytest.mark.parametrize("rule", RULES)
def test_same_bits_for_any_number(rule):
    memory = memory_of(rule, 33, 32, heads=3)
    inputs = random_inputs(memory, 3, 64)  # enough work for threads
    fastweights.set_num_threads(1)
    expected = run(memory, inputs)
    for count in 2, 3, 8:
        fastweights.set_num_threads(count)
        assert all((a == b).all() for a, b in zip(run(memory, inputs), expected))


def test_python_threads_share_a_memory():
    memory = memory_of("GatedDeltaRule", 33, 32)
    inputs = random_inputs(memory, 3, 100)
    expected, found = run(memory, inputs), {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: run(memory, inputs)})) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for results in found.values():
        assert all((a == b).all() for a, b in zip(results, expected))


def test_one_call_at_a_time_uses_a_state():
    """An input that scans again while the call reads its arguments: no luck of two threads is needed."""
    memory = memory_of("DeltaRule", 5)
    inputs, state, errors = random_inputs(memory, 1, 3), memory.initial_state(), []

    class Scanning:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            for call in (
                lambda: memory.scan(state, *inputs),
                lambda: memory.backward(state, *inputs, output_gradient=inputs[2]),
                state.arrays,
                state.copy,
            ):
                with pytest.raises(RuntimeError, match="is in use by another call") as error:
                    call()
                errors.append(str(error.value))
            return self.array.__dlpack__(**options)

    found = memory.scan(state, Scanning(inputs[0]), *inputs[1:])
    assert len(errors) == 4 and errors[0].startswith("fastweights: state is in use")
    expected = memory.initial_state()
    assert (found == memory.scan(expected, *inputs)).all() and (state["W"] == expected["W"]).all()
    memory.scan(state, *inputs)  # usable again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_hang():
    memory = memory_of("DeltaRule", 33, 32, heads=3)
    inputs = random_inputs(memory, 3, 64)
    fastweights.set_num_threads(2)
    expected = run(memory, inputs)
    child = os.fork()
    if child == 0:
        os._exit(0 if all((a == b).all() for a, b in zip(run(memory, inputs), expected)) else 1)
    assert os.waitpid(child, 0)[1] == 0
