"""What an argument's memory may be: read-only, strided; and what is refused: absent, unaligned, masked, too large."""

import sys
import types

import numpy as np
import pytest
from alone import error_of
from samples import memory_of, random_inputs, random_state

import fastweights

MEMORY = memory_of("GatedDeltaRule", 4, 3)
INPUTS = random_inputs(MEMORY, 2, 5)


def scan(inputs):
    return MEMORY.scan(random_state(MEMORY, 2), *inputs)


def test_read_only_arrays():
    inputs = [x.copy() for x in INPUTS]
    for x in inputs:
        x.flags.writeable = False
    assert (scan(inputs) == scan(INPUTS)).all()


def test_negative_strides_over_batch_and_heads():
    inputs = [x[::-1, :, ::-1].copy()[::-1, :, ::-1] for x in INPUTS]
    assert inputs[0].strides[0] < 0 and inputs[0].strides[2] < 0
    assert (scan(inputs) == scan(INPUTS)).all()


def test_one_array_for_all_heads_and_sequences():
    inputs = [np.broadcast_to(x[:1, :, :1], x.shape) for x in INPUTS]
    assert inputs[0].strides[0] == 0 and inputs[0].strides[2] == 0
    assert (scan(inputs) == scan([x.copy() for x in inputs])).all()


def test_strides_of_the_arrays_of_a_state():
    W = random_state(MEMORY, 2)["W"]
    reversed_rows = W[:, :, ::-1].copy()[:, :, ::-1]
    assert (MEMORY.state({"W": reversed_rows})["W"] == W).all()


def unaligned(x):
    y = np.frombuffer(bytearray(x.nbytes + 1), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


@pytest.mark.parametrize("change,message", [
    (unaligned, "query is not aligned to its entries"),
    (np.ma.masked_array, "query is a masked array"),
    (lambda x: x.astype(">f8"), r"query is a ndarray of >f8.*, expected an array of float64"),
    (lambda x: x.astype(object), r"query is a ndarray of object.*, expected an array of float64"),
    (lambda x: x.astype(np.longdouble), "query is .*, expected .*float64"),
])
def test_refused_arrays(change, message):
    with pytest.raises(TypeError, match="GatedDeltaRule: " + message):
        scan([change(INPUTS[0]), *INPUTS[1:]])


@pytest.mark.parametrize("torch", [None, types.ModuleType("torch")], ids=["none", "half imported"])
def test_a_torch_that_is_not_there(torch, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert scan(INPUTS).shape == (2, 5, 2, 3)


HUGE = """
import numpy as np, pickle, operator, fastweights
from numpy.lib.stride_tricks import as_strided
memory = fastweights.DeltaRule(2, heads={heads})
def pickled(batch):
    class Fake:
        def __reduce__(self):
            return operator.methodcaller("initial_state", batch), (memory,)
    return pickle.loads(pickle.dumps(Fake()))
print(memory.scan({state}, *[np.zeros((1, 1, 1, 2), np.float32)] * 3, np.zeros((1, 1, 1), np.float32)))
"""


@pytest.mark.parametrize("state,batch", [
    ("memory.initial_state(2**62)", 2**62),
    ("pickled(2**62)", 2**62),
    ("memory.state({'W': as_strided(np.zeros(1, np.float32), (2**55, 4, 2, 2), (0,) * 4)})", 2**55),
])
def test_too_many_streams(state, batch):
    error = error_of(HUGE.format(heads=4, state=state))
    assert error == (
        f"ValueError: state: batch is {batch} and heads is 4, expected a product of at most 2147483647\n"
    )


def test_too_many_heads(tmp_path):
    error = error_of(HUGE.format(heads=2**62, state="memory.initial_state(4)"))
    assert error == "ValueError: DeltaRule: heads is 4611686018427387904, expected at most 2147483647\n"
    error = error_of(HUGE.format(heads=2**30, state="memory.initial_state(4)"))
    assert "batch is 4 and heads is 1073741824" in error


def test_too_many_threads():
    before = fastweights.get_num_threads()
    with pytest.raises(ValueError, match="set_num_threads: count is 1025, expected 1 to 1024"):
        fastweights.set_num_threads(1025)
    assert fastweights.get_num_threads() == before
