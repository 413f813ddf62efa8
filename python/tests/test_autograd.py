"""fastweights.torch: gradients by differences, and what autograd asks of a function."""

import pytest
from samples import RULES, distance, memory_of, random_inputs, random_state

torch = pytest.importorskip("torch")
import fastweights.torch  # noqa: E402  (needs torch)
import reference  # noqa: E402


ROUNDING = ("sum.errors", "normaliser.compensation")


def leaves(memory, batch, time):
    inputs = [torch.tensor(x, requires_grad=True) for x in random_inputs(memory, batch, time)]
    arrays = random_state(memory, batch).arrays()
    return inputs, {name: torch.tensor(x, requires_grad=True) for name, x in arrays.items()}


@pytest.mark.parametrize("rule", RULES)
def test_gradcheck(rule):
    memory = memory_of(rule, 3, 2)
    inputs, state = leaves(memory, 2, 5)

    def run(*tensors):
        start = dict(zip(state, tensors[len(inputs) :]))
        outputs, final = fastweights.torch.scan(memory, *tensors[: len(inputs)], initial_state=start)
        # Errors of sums are of rounding only: they have no derivative by differences.
        return outputs, *(x for name, x in final.items() if name not in ROUNDING)

    assert torch.autograd.gradcheck(run, (*inputs, *state.values()))


def test_second_derivatives_are_refused():
    memory = memory_of("DeltaRule", 3)
    inputs, _ = leaves(memory, 1, 4)
    outputs, _ = fastweights.torch.scan(memory, *inputs)
    (gradient,) = torch.autograd.grad(outputs.square().sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("rule", RULES)
def test_graph_can_be_used_twice(rule):
    memory = memory_of(rule, 17, 16)
    inputs, state = leaves(memory, 2, 35)
    outputs, _ = fastweights.torch.scan(memory, *inputs, initial_state=state)
    first = torch.autograd.grad(outputs.sum(), [*inputs, *state.values()], retain_graph=True)
    second = torch.autograd.grad(outputs.sum(), [*inputs, *state.values()])
    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize("rule", RULES)
def test_gradients_go_through_the_state(rule):
    memory = memory_of(rule, 5, 3)
    inputs, state = leaves(memory, 2, 20)
    arguments = [*inputs, *state.values()]
    whole, _ = fastweights.torch.scan(memory, *inputs, initial_state=state)
    first, middle = fastweights.torch.scan(memory, *(x[:, :7] for x in inputs), initial_state=state)
    last, _ = fastweights.torch.scan(memory, *(x[:, 7:] for x in inputs), initial_state=middle)
    weights = torch.linspace(-1, 1, whole.numel(), dtype=whole.dtype).reshape(whole.shape)
    expected = torch.autograd.grad((weights * whole).sum(), arguments)
    found = torch.autograd.grad((weights * torch.cat([first, last], 1)).sum(), arguments)
    for a, b in zip(found, expected):
        assert distance(a, b) < 1e-10


def test_loss_of_the_state_alone():
    memory = memory_of("NormalisedDeltaRule", 5, 3)
    inputs, state = leaves(memory, 2, 8)
    _, final = fastweights.torch.scan(memory, *inputs, initial_state=state)
    arguments = [*inputs[1:], *state.values()]
    found = torch.autograd.grad(final["W"].square().sum(), arguments)

    def steps(*tensors):
        named = dict(zip(state, (x.clone() for x in tensors[3:])))
        return reference.scan("NormalisedDeltaRule", [inputs[0], *tensors[:3]], named)[1]["W"].square().sum()

    for a, b in zip(found, torch.autograd.grad(steps(*arguments), arguments)):
        assert distance(a, b) < 1e-10


def test_no_checkpoints_without_gradients(monkeypatch):
    memory = memory_of("GatedDeltaRule", 5, 3)
    inputs, _ = leaves(memory, 2, 8)
    made = []

    def counted():
        made.append(fastweights.Checkpoints())
        return made[-1]

    monkeypatch.setattr(fastweights.torch, "Checkpoints", counted)
    for without in torch.no_grad, torch.inference_mode:
        with without():
            outputs, _ = fastweights.torch.scan(memory, *inputs)
        assert not outputs.requires_grad and made == []
    fastweights.torch.scan(memory, *(x.detach() for x in inputs))
    assert made == []
    outputs, _ = fastweights.torch.scan(memory, *inputs)
    assert outputs.requires_grad and len(made) == 1
    assert torch.equal(outputs, fastweights.torch.scan(memory, *inputs)[0].detach())


def test_only_some_inputs_need_gradients():
    memory = memory_of("DeltaRule", 5, 3)
    inputs, _ = leaves(memory, 2, 8)
    fastweights.torch.scan(memory, inputs[0].detach(), *inputs[1:])[0].sum().backward()
    assert inputs[0].grad is None and inputs[1].grad is not None


def test_a_changed_input_is_noticed():
    memory = memory_of("DeltaRule", 5, 3)
    inputs, _ = leaves(memory, 1, 8)
    key = inputs[1].clone()
    outputs, _ = fastweights.torch.scan(memory, inputs[0], key, *inputs[2:])
    key.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()


def test_training_reduces_a_loss():
    torch.manual_seed(0)
    memory = fastweights.DeltaRule(8, heads=2)
    layer = torch.nn.Linear(8, 2 * 24)
    x = torch.randn(2, 30, 8)
    optimiser = torch.optim.Adam(layer.parameters(), lr=1e-2)
    losses = []
    for _ in range(100):
        q, k, v = layer(x).unflatten(-1, (2, 24)).split(8, dim=-1)  # views with strides
        k = torch.nn.functional.normalize(k, dim=-1)
        y, _ = fastweights.torch.scan(memory, q, k, v, torch.full((2, 30, 2), 0.5))
        loss = (y.sum(2) - x).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
