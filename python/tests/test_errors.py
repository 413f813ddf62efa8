"""Every bad argument has an error that names it, and leaves the state as it was."""

import json
import struct

import numpy as np
import pytest
from samples import MEMORIES, memory_of, random_inputs, random_state

import fastweights

MEMORY = memory_of("GatedDeltaRule", 4, 3)
INPUTS = random_inputs(MEMORY, 2, 5)


def with_input(name, array):
    return [array if n == name else x for n, x in zip(MEMORY.inputs, INPUTS)]


@pytest.mark.parametrize("name,array,error,message", [
    ("key", np.zeros((2, 5, 2, 5)), ValueError,
     r"GatedDeltaRule: key has shape \[2, 5, 2, 5\], expected \[2, 5, 2, 4\]"),
    ("query", np.zeros((3, 5, 2, 4)), ValueError, r"query has shape \[3, 5, 2, 4\], expected \[2, time, 2, 4\]"),
    ("value", np.zeros((2, 6, 2, 3)), ValueError, r"value has shape \[2, 6, 2, 3\], expected \[2, 5, 2, 3\]"),
    ("value", np.zeros((2, 5, 6)), ValueError, r"value has shape \[2, 5, 6\], expected \[2, 5, 2, 3\]"),
    ("beta", np.zeros((2, 5, 2, 1)), ValueError, r"beta has shape \[2, 5, 2, 1\], expected \[2, 5, 2\]"),
    ("decay", np.zeros((2, 5, 3)), ValueError, r"decay has shape \[2, 5, 3\], expected \[2, 5, 2\]"),
    ("key", np.zeros((2, 5, 2, 4), np.float32), TypeError, "key is of float32, expected float64"),
    ("beta", np.zeros((2, 5, 2), np.int64), TypeError, "beta is of int64, expected float64"),
    ("key", [[1.0]], TypeError, "key is a list, expected an array of float64"),
    ("decay", None, TypeError, "decay is a NoneType, expected an array of float64"),
    ("key", np.zeros((2, 5, 2, 8))[..., ::2], ValueError, "key has entries of a token that are not contiguous"),
    ("key", np.broadcast_to(np.zeros((2, 1, 2, 4)), (2, 5, 2, 4)), ValueError, "key has stride 0 over time"),
    ("beta", np.zeros((2, 5, 2))[:, ::-1], ValueError, "beta has stride -2 over time"),
])
def test_inputs(name, array, error, message):
    state = random_state(MEMORY, 2)
    before = state.arrays()
    with pytest.raises(error, match=message):
        MEMORY.scan(state, *with_input(name, array))
    with pytest.raises(error, match=message):
        MEMORY.backward(state, *with_input(name, array), output_gradient=INPUTS[2])
    assert (state["W"] == before["W"]).all()


@pytest.mark.parametrize("name", [*MEMORIES, "Checkpoints", "State"])
def test_classes_are_final(name):
    with pytest.raises(TypeError, match=f"type 'fastweights._core.{name}' prohibits subclassing"):
        type("Mine", (getattr(fastweights, name),), {})


def test_step_has_no_time():
    with pytest.raises(ValueError, match=r"query has shape \[2, 5, 2, 4\], expected \[2, 2, 4\]"):
        MEMORY.step(MEMORY.initial_state(2), *INPUTS)


def test_states_of_others():
    other = memory_of("DeltaRule", 4, 3)
    with pytest.raises(ValueError, match=r"state is one of DeltaRule\(.*expected one of GatedDeltaRule\("):
        MEMORY.scan(other.initial_state(2), *INPUTS)
    with pytest.raises(ValueError, match="state is one of"):
        MEMORY.scan(memory_of("GatedDeltaRule", 4, 4).initial_state(2), *INPUTS)
    with pytest.raises(ValueError, match="state is one of"):
        MEMORY.scan(memory_of("GatedDeltaRule", 4, 3, heads=1).initial_state(2), *INPUTS)
    with pytest.raises(TypeError):
        MEMORY.scan(None, *INPUTS)


def test_starts_of_backward():
    dy = INPUTS[2]
    with pytest.raises(ValueError, match="start is not filled"):
        MEMORY.backward(fastweights.Checkpoints(), *INPUTS, output_gradient=dy)
    with pytest.raises(TypeError, match="start is neither Checkpoints nor a State"):
        MEMORY.backward(INPUTS, *INPUTS, output_gradient=dy)
    checkpoints = fastweights.Checkpoints()
    MEMORY.scan(MEMORY.initial_state(2), *INPUTS, checkpoints=checkpoints)
    shorter = [x[:, :4] for x in INPUTS]
    with pytest.raises(ValueError, match="the inputs have 4 tokens, expected the 5 of the checkpoints"):
        MEMORY.backward(checkpoints, *shorter, output_gradient=dy[:, :4])
    with pytest.raises(ValueError, match=r"output_gradient has shape \[2, 4, 2, 3\], expected \[2, 5, 2, 3\]"):
        MEMORY.backward(checkpoints, *INPUTS, output_gradient=dy[:, :4])
    with pytest.raises(ValueError, match="state_gradient has a batch of 1, expected 2"):
        MEMORY.backward(checkpoints, *INPUTS, output_gradient=dy, state_gradient=MEMORY.initial_state(1))


@pytest.mark.parametrize("arguments,message", [
    ({"key_size": 0, "value_size": 3}, "DeltaRule: d_k is 0, expected at least 1"),
    ({"key_size": 4, "value_size": -1}, "DeltaRule: d_v is -1, expected at least 1"),
    ({"key_size": 4, "heads": 0}, "DeltaRule: heads is 0, expected at least 1"),
    ({"key_size": 4, "dtype": "float16"}, "dtype is float16, expected float32 or float64"),
])
def test_constructors(arguments, message):
    with pytest.raises(ValueError, match=message):
        fastweights.DeltaRule(**arguments)


def test_settings():
    with pytest.raises(ValueError, match="HebbianMemory: decay is nan"):
        fastweights.HebbianMemory(4, decay=float("nan"))
    with pytest.raises(ValueError, match="Mlstm: epsilon is 0, expected above 0"):
        fastweights.Mlstm(4, epsilon=0)
    with pytest.raises(ValueError, match="set_num_threads: count is 0"):
        fastweights.set_num_threads(0)
    with pytest.raises(ValueError, match="batch is 0, expected at least 1"):
        MEMORY.initial_state(0)


def test_dtypes_of_other_libraries():
    for dtype in np.float32, np.dtype("float32"), "float32":
        assert fastweights.DeltaRule(4, dtype=dtype).dtype == "float32"
    torch = pytest.importorskip("torch")
    assert fastweights.DeltaRule(4, dtype=torch.float32).dtype == "float32"


def test_arrays_of_a_state():
    normalised = memory_of("NormalisedDeltaRule", 4, 3)
    arrays = normalised.initial_state(2).arrays()
    with pytest.raises(ValueError, match="state: normaliser.sum is missing"):
        normalised.state({"W": arrays["W"], "sum.errors": arrays["sum.errors"]})
    with pytest.raises(ValueError, match="5 arrays are given, expected 4"):
        normalised.state({**arrays, "extra": arrays["W"]})
    with pytest.raises(ValueError, match=r"W has shape \[2, 2, 4, 3\], expected \[2, 2, 3, 4\]"):
        normalised.state({**arrays, "W": arrays["W"].swapaxes(2, 3)})
    with pytest.raises(TypeError, match="W is of float32, expected float64"):
        normalised.state({**arrays, "W": arrays["W"].astype("float32")})
    with pytest.raises(KeyError, match="V"):
        normalised.initial_state()["V"]
    with pytest.raises(IndexError, match=r"view\(2, 0\), expected less than 2 and 2"):
        normalised.initial_state(2).view(2, 0)


def test_files(tmp_path):
    path = tmp_path / "state.safetensors"
    MEMORY.initial_state(2).save(path)
    with pytest.raises(ValueError, match="is a file of GatedDeltaRule"):
        memory_of("KimiDeltaAttention", 4, 3).load_state(path)
    with pytest.raises(RuntimeError, match="0.0.W"):
        memory_of("GatedDeltaRule", 5, 3).load_state(path)
    with pytest.raises(ValueError, match="has 4 tensors, expected a multiple of 3"):
        memory_of("GatedDeltaRule", 4, 3, heads=3).load_state(path)
    with pytest.raises(RuntimeError, match="missing.safetensors"):
        MEMORY.load_state(tmp_path / "missing.safetensors")
    with pytest.raises(TypeError, match="not int"):
        MEMORY.load_state(5)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(RuntimeError, match="state.safetensors"):
        MEMORY.load_state(path)


def small_file_of_many_sequences(path, count):
    header = {"__metadata__": {"memory": "DeltaRule"}}
    for i in range(count):
        header[f"{i}.0.W"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def test_a_small_file_allocates_no_large_state(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "state.safetensors"
    small_file_of_many_sequences(path, 10_000)  # of 4 MB each
    memory = memory_of("DeltaRule", 1024, 1024, heads=1, dtype="float32")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RuntimeError, match="0.0.W.* has 0 entries, expected 1048576"):
        memory.load_state(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_tensors():
    torch = pytest.importorskip("torch")
    state, inputs = MEMORY.initial_state(2), [torch.tensor(x) for x in INPUTS]
    assert isinstance(MEMORY.scan(state, *inputs), torch.Tensor)
    with pytest.raises(TypeError, match="key is a tensor that requires a gradient"):
        MEMORY.scan(state, inputs[0], inputs[1].clone().requires_grad_(), *inputs[2:])
    with pytest.raises(TypeError, match="key is on device meta, expected the CPU"):
        MEMORY.scan(state, inputs[0], inputs[1].to("meta"), *inputs[2:])
    with pytest.raises(TypeError, match="query is of bfloat16, expected float64"):
        MEMORY.scan(state, inputs[0].bfloat16(), *inputs[1:])
    import fastweights.torch

    with pytest.raises(TypeError, match="4 inputs are given, expected 5: query, key, value, beta, decay"):
        fastweights.torch.scan(MEMORY, *inputs[:4])
    with pytest.raises(ValueError, match="initial_state has V, expected W"):
        fastweights.torch.scan(MEMORY, *inputs, initial_state={"V": inputs[0]})
