"""Steps and parts of a sequence against the whole; layouts of arrays; states in files and pickles."""

import copy
import os
import pickle

import numpy as np
import pytest
from samples import RULES, distance, memory_of, random_inputs, random_state

ROUNDING = 1e-12


def part(inputs, first, last):
    return [x[:, first:last] for x in inputs]


@pytest.mark.parametrize("size", [1, 3, 17, 64, 65, 100])
@pytest.mark.parametrize("rule", RULES)
def test_scan_is_steps(rule, size):
    memory = memory_of(rule, size)
    inputs, initial = random_inputs(memory, 2, 23), random_state(memory, 2)
    state, stepped = initial.copy(), initial.copy()
    outputs = memory.scan(state, *inputs)
    for t in range(23):
        assert distance(memory.step(stepped, *(x[:, t] for x in inputs)), outputs[:, t]) < ROUNDING
    assert distance(stepped["W"], state["W"]) < ROUNDING


@pytest.mark.parametrize("cuts", [(1,), (4, 20), (0, 0, 7)])
@pytest.mark.parametrize("rule", RULES)
def test_split_scans(rule, cuts):
    memory = memory_of(rule, 17, 65)
    inputs, initial = random_inputs(memory, 3, 41), random_state(memory, 3)
    whole, parts = initial.copy(), initial.copy()
    outputs = memory.scan(whole, *inputs)
    bounds = [0, *cuts, 41]
    found = [memory.scan(parts, *part(inputs, a, b)) for a, b in zip(bounds, bounds[1:])]
    assert distance(np.concatenate(found, axis=1), outputs) < ROUNDING
    assert distance(parts["W"], whole["W"]) < ROUNDING


def strided(x):
    """The same entries as a part of a larger array, of heads before time."""
    larger = np.zeros((x.shape[0], x.shape[2], x.shape[1] + 1, *(n + 3 for n in x.shape[3:])), x.dtype)
    view = larger[:, :, 1:][..., 2:-1] if x.ndim == 4 else larger[:, :, 1:]
    view = np.swapaxes(view, 1, 2)
    view[...] = x
    assert not view.flags.c_contiguous
    return view


@pytest.mark.parametrize("rule", RULES)
def test_strides_are_followed(rule):
    memory = memory_of(rule, 17, 16, heads=3, dtype="float32")
    inputs, a, b = random_inputs(memory, 2, 9), random_state(memory, 2), random_state(memory, 2)
    outputs = memory.scan(a, *inputs)
    assert (memory.scan(b, *map(strided, inputs)) == outputs).all()
    assert (a["W"] == b["W"]).all()
    gradients, ds = memory.backward(random_state(memory, 2), *inputs, output_gradient=outputs)
    others, dt = memory.backward(
        random_state(memory, 2), *map(strided, inputs), output_gradient=strided(outputs)
    )
    assert all((gradients[name] == others[name]).all() for name in gradients)
    assert (ds["W"] == dt["W"]).all()


def saved_and_loaded(memory, state, folder):
    state.save(folder / "state.safetensors")
    return memory.load_state(folder / "state.safetensors")


COPIES = {
    "file": saved_and_loaded,
    "pickle": lambda memory, state, folder: pickle.loads(pickle.dumps(state)),
    "copy": lambda memory, state, folder: copy.copy(state),
    "deepcopy": lambda memory, state, folder: copy.deepcopy(state),
    "arrays": lambda memory, state, folder: memory.state(state.arrays()),
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", RULES)
def test_copies_continue_bit_for_bit(rule, dtype, kind, tmp_path):
    memory = memory_of(rule, 5, 3, heads=3, dtype=dtype)
    inputs, state = random_inputs(memory, 2, 12), random_state(memory, 2)
    memory.scan(state, *part(inputs, 0, 5))
    other = COPIES[kind](memory, state, tmp_path)
    before = other.arrays()
    outputs = memory.scan(state, *part(inputs, 5, 12))
    assert all((x == before[name]).all() for name, x in other.arrays().items())  # independent
    assert (memory.scan(other, *part(inputs, 5, 12)) == outputs).all()
    assert all((x == other[name]).all() for name, x in state.arrays().items())


@pytest.mark.parametrize("name", ["plain", "täglich", b"bytes", b"not utf-8: \xff", "surrogate: \udcff"])
def test_names_of_files(name, tmp_path):
    memory = memory_of("DeltaRule", 5, 3)
    state, path = random_state(memory, 2), os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    path = path if isinstance(name, bytes) else os.fsdecode(path)
    state.save(path)
    assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(name)]
    assert (memory.load_state(path)["W"] == state["W"]).all()
    with pytest.raises(ValueError, match="is a file of DeltaRule") as error:
        memory_of("LinearAttention", 5, 3).load_state(path)
    assert os.fsdecode(path) in str(error.value)
    os.remove(path)
    with pytest.raises(RuntimeError) as error:
        memory.load_state(path)
    assert os.fsdecode(path) in str(error.value)


@pytest.mark.parametrize("name", ["a\0b", b"a\0b"])
def test_null_bytes_in_names_of_files(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = memory_of("DeltaRule", 5, 3)
    with pytest.raises(ValueError, match=r"path is b?'a\\x00b', expected one without a null byte"):
        memory.initial_state().save(name)
    with pytest.raises(ValueError, match="expected one without a null byte"):
        memory.load_state(name)
    assert os.listdir() == []


def test_views_are_the_state():
    memory = memory_of("NormalisedDeltaRule", 4, 3, heads=2)
    state = random_state(memory, 2)
    view = state.view(1, 0)
    assert set(view) == set(memory.state_names)
    assert view["W"].shape == (3, 4) and (view["W"] == state["W"][1, 0]).all()
    view["W"][2, 3] = 7
    assert state["W"][1, 0, 2, 3] == 7
    del state
    assert view["W"][2, 3] == 7


def test_files_of_another_dtype_are_converted(tmp_path):
    double, single = memory_of("DeltaRule", 4, 3), memory_of("DeltaRule", 4, 3, dtype="float32")
    state = random_state(double, 2)
    state.save(tmp_path / "state.safetensors")
    loaded = single.load_state(tmp_path / "state.safetensors")["W"]
    assert loaded.dtype == np.float32 and (loaded == state["W"].astype(np.float32)).all()


def test_memories_are_values():
    memory = memory_of("HebbianMemory", 4, 3)
    assert pickle.loads(pickle.dumps(memory)) == memory == copy.deepcopy(memory)
    assert memory != memory_of("HebbianMemory", 4, 3, dtype="float32")
    assert len({memory, memory_of("HebbianMemory", 4, 3), memory_of("HebbianMemory", 4, 4)}) == 2
    assert repr(memory) == (
        "HebbianMemory(key_size=4, value_size=3, heads=2, dtype='float64', decay=0.95, rate=0.5)"
    )


def test_files_are_those_of_safetensors(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    memory = memory_of("DeltaRule", 4, 3)
    state = random_state(memory, 2)
    state.save(tmp_path / "state.safetensors")
    tensors = numpy_files.load_file(tmp_path / "state.safetensors")
    assert set(tensors) == {"0.0.W", "0.1.W", "1.0.W", "1.1.W"}
    assert (tensors["1.0.W"] == state["W"][1, 0]).all()
