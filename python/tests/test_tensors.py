"""Tensors of PyTorch whose entries are not in memory as they are."""

import numpy as np
import pytest
from alone import run_alone
from samples import memory_of, random_inputs

torch = pytest.importorskip("torch")
import fastweights.torch  # noqa: E402  (needs torch)

MEMORY = memory_of("DeltaRule", 4)
INPUTS = [torch.tensor(x) for x in random_inputs(MEMORY, 2, 5)]

WITHOUT_STORAGE = """
import torch, fastweights, warnings
warnings.simplefilter("ignore")  # torch's own, of FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode
memory = fastweights.DeltaRule(4, dtype="float64")
def freed(x):
    x.untyped_storage().resize_(0)
    return x
def fake():
    with FakeTensorMode():
        return torch.zeros(3, 5, 1, 4, dtype=torch.float64)
x = torch.ones(2, 5, 1, 4, dtype=torch.float64)
beta = torch.ones(2, 5, 1, dtype=torch.float64)
def run(key):
    memory.scan(memory.initial_state(2), x, key, x, beta)
for case in (
    lambda: run(torch._efficientzerotensor((2, 5, 1, 4), dtype=torch.float64)),
    lambda: run(freed(x.clone())),
    lambda: run(freed(torch.zeros(3, 5, 1, 4, dtype=torch.float64)[1:])),
    lambda: run(fake()[1:]),
    lambda: run(fake()[:2]),
    lambda: torch.func.functionalize(lambda y: run(y + 1))(x),
    lambda: memory.state({"W": torch._efficientzerotensor((2, 1, 4, 4), dtype=torch.float64)}),
):
    try:
        case()
        print("no error")
    except Exception as error:
        print(type(error).__name__, error, sep=": ")
"""


def test_tensors_without_storage():
    *keys, state = run_alone(WITHOUT_STORAGE).splitlines()
    assert len(keys) == 6
    for text in keys:
        assert text.startswith("TypeError: DeltaRule: key "), text
    assert state == "TypeError: DeltaRule: W has no memory, expected an array with its entries in memory"


def negative(x):
    """The same values, stored with the other sign."""
    y = torch._neg_view(-x)
    assert y.is_neg() and torch.equal(y, x)
    return y


def test_the_negative_bit():
    with pytest.raises(TypeError, match=r"key is a tensor whose entries are stored with the other sign.*resolve_neg\(\)"):
        MEMORY.scan(MEMORY.initial_state(2), INPUTS[0], negative(INPUTS[1]), *INPUTS[2:])
    with pytest.raises(TypeError, match="W is a tensor whose entries are stored with the other sign"):
        MEMORY.state({"W": negative(torch.ones(2, 2, 4, 4, dtype=torch.float64))})


def gradients(change, weight):
    leaves = [x.clone().requires_grad_() for x in INPUTS]
    state = torch.ones(2, 2, 4, 4, dtype=torch.float64).requires_grad_()
    outputs, final = fastweights.torch.scan(MEMORY, *map(change, leaves), initial_state={"W": change(state)})
    found = torch.autograd.grad(
        [outputs, final["W"]], [*leaves, state], [weight(outputs), weight(final["W"])], retain_graph=True
    )
    return outputs, final["W"], *found


def conjugated(x):
    """The same values as the imaginary part of a conjugate, which has gaps between its entries and the negative bit."""
    y = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert y.is_neg() and not y.is_contiguous()
    return y


@pytest.mark.parametrize("change", [negative, conjugated])
def test_scan_resolves_the_negative_bit(change):
    expected = gradients(lambda x: x, torch.ones_like)
    assert all(torch.equal(a, b) for a, b in zip(gradients(change, torch.ones_like), expected))
    weights = gradients(lambda x: x, lambda y: change(torch.ones_like(y)))
    assert all(torch.equal(a, b) for a, b in zip(weights, expected))


def check_gradients_without_storage():
    zeros = gradients(lambda x: x, lambda y: torch._efficientzerotensor(y.shape, dtype=y.dtype))
    assert all(not x.any() for x in zeros[2:])


def test_gradients_without_storage():
    run_alone("import test_tensors; test_tensors.check_gradients_without_storage()")


@pytest.mark.parametrize("change", [
    lambda x: x[:, :1].expand(x.shape),  # stride 0 over time
    lambda x: x.transpose(-1, 1).contiguous().transpose(-1, 1),  # entries or tokens apart
])
def test_scan_copies_strides_that_the_kernel_refuses(change):
    inputs = [change(x) for x in INPUTS]
    with pytest.raises(ValueError, match="pass a contiguous copy"):
        MEMORY.scan(MEMORY.initial_state(2), *inputs)
    outputs, _ = fastweights.torch.scan(MEMORY, *inputs)
    assert torch.equal(outputs, MEMORY.scan(MEMORY.initial_state(2), *(x.contiguous() for x in inputs)))


def test_sparse_tensors():
    with pytest.raises(TypeError, match=r"query is a Tensor of torch.float64 and layout torch.sparse_coo"):
        MEMORY.scan(MEMORY.initial_state(2), INPUTS[0].to_sparse(), *INPUTS[1:])


@pytest.mark.parametrize("position,value,error,message", [
    (0, None, TypeError, "query is a NoneType, expected a tensor of float64"),
    (1, np.zeros((2, 5, 2, 4)), TypeError, "key is a ndarray, expected a tensor of float64"),
    (0, torch.tensor(1.0), ValueError, r"query has shape \[\], expected \[batch, ...\]"),
    (3, torch.tensor(1.0), ValueError, r"beta has shape \[\], expected \[batch, ...\]"),
])
def test_errors_name_the_input(position, value, error, message):
    inputs = list(INPUTS)
    inputs[position] = value
    with pytest.raises(error, match=r"DeltaRule\(.*\): " + message):
        fastweights.torch.scan(MEMORY, *inputs)


@pytest.mark.parametrize("state,error,message", [
    ({"W": None}, TypeError, r"initial_state\['W'\] is a NoneType, expected a tensor of float64"),
    ({"W": torch.tensor(1.0)}, ValueError, r"initial_state\['W'\] has shape \[\]"),
    ({"W": torch.zeros(3, 2, 4, 4).double()}, ValueError, r"initial_state\['W'\] has a batch of 3, expected 2"),
    ({}, ValueError, "initial_state has nothing, expected W"),
    (MEMORY.initial_state(2), TypeError, "initial_state is a State, expected a mapping"),
    (5, TypeError, "initial_state is a int, expected a mapping"),
])
def test_errors_name_the_state(state, error, message):
    with pytest.raises(error, match=r"DeltaRule\(.*\): " + message):
        fastweights.torch.scan(MEMORY, *INPUTS, initial_state=state)


def test_missing_members_are_named():
    memory = memory_of("NormalisedDeltaRule", 4)
    arrays = {name: torch.tensor(x) for name, x in memory.initial_state(2).arrays().items()}
    del arrays["normaliser.sum"]
    with pytest.raises(ValueError, match="initial_state has .*, expected W, sum.errors, normaliser.sum"):
        fastweights.torch.scan(memory, *INPUTS, initial_state=arrays)
