"""Every memory of the library: made, scanned, stepped, differentiated, saved, pickled, refused."""

import ast
import inspect
import pathlib
import pickle

import numpy as np
import pytest
from samples import MEMORIES, distance, small, small_inputs, used_state

import fastweights

BATCH, TIME = 2, 7
# Sums keep what rounding took away; it has no derivative by differences.
ROUNDING_ERRORS = ("sum.errors", "normaliser.compensation")
WITHOUT_GRADIENTS = [name for name in MEMORIES if name.startswith(("Deferred", "Bfloat16", "EightBit"))]
IN_FLOAT_ONLY = ["Bfloat16DeltaRule", "EightBitDeltaRule"]
# Positions that reads choose are constants in its gradient; from an empty memory there are none.
FIRST_TOKEN_ONLY = ["StickyContinuousMemory"]


def rounding(memory):
    return 1e-12 if memory.dtype == "float64" else 1e-5


def numbers(state):
    return {name: x for name, x in state.arrays().items() if x.dtype.kind == "f"}


def part(memory, inputs, first, last):
    """Tokens first to last, for inputs of several vectors a token too."""
    return [
        x[:, first * n // TIME : last * n // TIME]
        for x, n in zip(inputs, (shape[1] for shape in memory.input_shapes(BATCH, TIME).values()))
    ]


def one(memory, inputs, t):
    """The token t as step takes it."""
    return [x[:, 0] if x.shape[1] == 1 else x for x in part(memory, inputs, t, t + 1)]


def outputs_a_token(memory):
    return memory.input_shapes(1, 1)["query"][1] if isinstance(memory, fastweights.Mamba3Mimo) else 1


@pytest.mark.parametrize("name", MEMORIES)
def test_is_a_value_with_documentation(name):
    memory = small(name)
    assert type(memory).__name__ == name and isinstance(memory, fastweights.Memory)
    assert pickle.loads(pickle.dumps(memory)) == memory
    assert eval(repr(memory), vars(fastweights)) == memory
    assert getattr(fastweights, name)(4).key_size == 4  # all else has defaults
    text = inspect.getdoc(type(memory))
    assert not text.startswith("The memory " + name) and "Output [..., " in text
    for member in memory.inputs:
        assert f"{member} [..." in text


@pytest.mark.parametrize("name", MEMORIES)
def test_scan_is_steps(name):
    memory = small(name)
    inputs, initial = small_inputs(memory, BATCH, TIME), used_state(memory, BATCH)
    state, stepped, parts = initial.copy(), initial.copy(), initial.copy()
    outputs = memory.scan(state, *inputs)
    each = outputs_a_token(memory)
    assert outputs.shape == (BATCH, TIME * each, memory.heads, memory.value_size) and outputs.any()
    for t in range(TIME):
        found, expected = memory.step(stepped, *one(memory, inputs, t)), outputs[:, t * each : (t + 1) * each]
        assert distance(found.reshape(expected.shape), expected) < rounding(memory)
    halves = [memory.scan(parts, *part(memory, inputs, *ends)) for ends in ((0, 3), (3, TIME))]
    assert distance(np.concatenate(halves, axis=1), outputs) < rounding(memory)
    for other in stepped, parts:
        for array, x in other.arrays().items():
            if array not in ROUNDING_ERRORS:
                assert distance(x, state[array]) < rounding(memory), array


@pytest.mark.parametrize("name", MEMORIES)
def test_inputs_by_name(name):
    memory = small(name)
    inputs, initial = small_inputs(memory, BATCH, TIME), used_state(memory, BATCH)
    named = dict(reversed(list(zip(memory.inputs, inputs))))
    assert (memory.scan(initial.copy(), **named) == memory.scan(initial, *inputs)).all()


def derivative(memory, inputs, state, directions, state_directions, loss):
    """By differences, along the directions."""
    h = 1e-6

    def at(h):
        start = {n: x + h * state_directions[n] if n in state_directions else x for n, x in state.arrays().items()}
        return loss(memory.state(start), [x + h * d for x, d in zip(inputs, directions)])

    return (at(h) - at(-h)) / (2 * h)


@pytest.mark.parametrize("name", [name for name in MEMORIES if name not in WITHOUT_GRADIENTS])
def test_gradients_are_those_of_differences(name):
    memory, first = small(name), name in FIRST_TOKEN_ONLY
    time = 1 if first else TIME
    inputs = small_inputs(memory, BATCH, time)
    state = memory.initial_state(BATCH) if first else used_state(memory, BATCH)
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(BATCH, time * outputs_a_token(memory), memory.heads, memory.value_size))
    constant = (*ROUNDING_ERRORS, "histogram")  # of positions, which are constants in the gradient
    end = {n: rng.normal(size=x.shape) for n, x in numbers(state).items() if n not in constant}

    def loss(start, inputs):
        outputs = memory.scan(start, *inputs)
        # A cache that grows has more columns at the end; those have a gradient of 0.
        return (weights * outputs).sum() + sum((w * start[n][..., : w.shape[-1]]).sum() for n, w in end.items())

    zeros = {n: np.zeros_like(x) for n, x in state.arrays().items()}
    arguments = {"output_gradient": weights, "state_gradient": memory.state({**zeros, **end})}
    checkpoints = fastweights.Checkpoints()
    memory.scan(state.copy(), *inputs, checkpoints=checkpoints)
    gradients, dstate = memory.backward(state, *inputs, **arguments)
    others, dother = memory.backward(checkpoints, *inputs, **arguments)
    for n, x in {**gradients, **numbers(dstate)}.items():
        assert distance({**others, **numbers(dother)}[n], x) < 1e-11, n

    assert list(gradients) == list(memory.inputs)
    for only in [*memory.inputs, "state"]:
        directions = [rng.normal(size=x.shape) * (n == only and n != "draws") for n, x in zip(memory.inputs, inputs)]
        along = {n: rng.normal(size=x.shape) for n, x in numbers(state).items()} if only == "state" else {}
        along = {n: x for n, x in along.items() if n != "histogram"}
        expected = derivative(memory, inputs, state, directions, along, loss)
        found = sum((g * d).sum() for g, d in zip(gradients.values(), directions))
        found += sum((dstate[n] * d).sum() for n, d in along.items())
        assert abs(found - expected) <= 2e-7 * max(1, abs(expected)), only


@pytest.mark.parametrize("name", WITHOUT_GRADIENTS)
def test_memories_without_gradients(name):
    memory = small(name)
    inputs, state = small_inputs(memory, BATCH, TIME), memory.initial_state(BATCH)
    outputs = np.ones((BATCH, TIME, memory.heads, memory.value_size), memory.dtype)
    with pytest.raises(ValueError, match=f"{name} has no gradients"):
        memory.scan(state, *inputs, checkpoints=fastweights.Checkpoints())
    with pytest.raises(ValueError, match=f"{name} has no gradients"):
        memory.backward(state, *inputs, output_gradient=outputs)


def test_a_cache_that_has_grown_is_saved_and_loaded(tmp_path):
    memory = fastweights.KeyValueCache(4, heads=2, capacity=2, dtype="float64")
    inputs, state = small_inputs(memory, BATCH, TIME), memory.initial_state(BATCH)
    memory.scan(state, *inputs)
    state.save(tmp_path / "state.safetensors")
    other = memory.load_state(tmp_path / "state.safetensors")
    assert all((x == other[name]).all() for name, x in state.arrays().items())
    assert (memory.scan(other, *inputs) == memory.scan(state, *inputs)).all()


@pytest.mark.parametrize("name", IN_FLOAT_ONLY)
def test_memories_in_float_only(name):
    with pytest.raises(ValueError, match=f"{name}: dtype is float64, expected float32"):
        getattr(fastweights, name)(4, dtype="float64")


@pytest.mark.parametrize("name", MEMORIES)
def test_copies_continue_bit_for_bit(name, tmp_path):
    memory = small(name)
    inputs, state = small_inputs(memory, BATCH, TIME), used_state(memory, BATCH)
    state.save(tmp_path / "state.safetensors")
    copies = [
        memory.load_state(tmp_path / "state.safetensors"),
        pickle.loads(pickle.dumps(state)),
        memory.state(state.arrays()),
    ]
    before = state.arrays()
    assert (memory.scan(state, *inputs) != 0).any()
    for other in copies:
        assert all((x == before[array]).all() for array, x in other.arrays().items())  # independent
        memory.scan(other, *inputs)
        assert all((x == other[array]).all() for array, x in state.arrays().items())
    if name == "KeyValueCache":  # its arrays move when it grows
        with pytest.raises(ValueError, match="view of keys, which moves when the cache grows"):
            state.view(1, 0)
        return
    view = state.view(1, 0)
    assert all((x[1, 0] == view[array]).all() for array, x in state.arrays().items())


@pytest.mark.parametrize("name", MEMORIES)
def test_other_shapes_are_refused(name):
    memory = small(name)
    inputs, state = small_inputs(memory, BATCH, TIME), used_state(memory, BATCH)
    before = state.arrays()
    for i, member in enumerate(memory.inputs):
        longer = np.concatenate([inputs[i], inputs[i]], axis=-1)
        with pytest.raises(ValueError, match=f"{name}: {member} has shape"):
            memory.scan(state, *inputs[:i], longer, *inputs[i + 1 :])
    assert all((x == before[array]).all() for array, x in state.arrays().items())


def test_an_input_that_is_read_with_and_written_is_given_once():
    assert fastweights.Rwkv6(4).inputs == ("query", "key", "value", "decay")
    assert fastweights.DeltaFormer(4).inputs == ("query", "key", "value", "beta")


def test_several_vectors_a_token():
    memory = fastweights.GatedDeltaProduct(4, 3, heads=2)
    assert memory.input_shapes(5, 7) == {
        "query": (5, 7, 2, 4),
        "key": (5, 14, 2, 4),
        "value": (5, 14, 2, 3),
        "beta": (5, 14, 2),
        "decay": (5, 7, 2),
    }
    assert fastweights.Mamba3Mimo(4, 3, heads=2, ranks=3).input_shapes(5, 7) == {
        "query": (5, 21, 2, 4),
        "value": (5, 21, 2, 3),
        "gate": (5, 21, 2, 3),
        "key": (5, 21, 2, 4),
        "decay": (5, 7, 2),
        "step": (5, 7, 2),
        "share": (5, 7, 2),
        "angles": (5, 7, 2, 2),
    }
    memory = small("DeltaLstm")
    inputs = small_inputs(memory, BATCH, TIME)
    with pytest.raises(ValueError, match="DeltaLstm: key has 20 tokens, expected a multiple of 3"):
        memory.scan(memory.initial_state(BATCH), inputs[0][:, :20], *inputs[1:])


def test_chunks():
    memory = small("ContinuousMemory", chunk=3)
    inputs, state = small_inputs(memory, BATCH, TIME), memory.initial_state(BATCH)
    other = state.copy()
    outputs = memory.scan(state, *inputs)
    parts = [memory.scan(other, *(x[:, a:b] for x in inputs)) for a, b in ((0, 3), (3, 6), (6, 7))]
    assert distance(np.concatenate(parts, axis=1), outputs) < 1e-12
    assert small("StickyContinuousMemory", chunk=3, samples=5).input_shapes(1, 7)["draws"] == (1, 15, 2)


def test_settings():
    assert repr(fastweights.KeyValueCache(4, capacity=3, refuse=True)) == (
        "KeyValueCache(key_size=4, value_size=4, heads=1, dtype='float32', capacity=3, refuse=True, slide=False, scale=0.0)"
    )
    assert "hidden=12" in repr(fastweights.DeltaMlp(3)) and "hidden=5" in repr(fastweights.DeltaMlp(3, hidden=5))
    assert "inner_heads=2" in repr(fastweights.CompressiveMemory(4, inner_heads=2))
    with pytest.raises(TypeError, match="KeyValueCache: capacity is 3.5, expected a whole number"):
        fastweights.KeyValueCache(4, capacity=3.5)
    with pytest.raises(TypeError, match=r"KeyValueCache.__init__\(\) got an unexpected keyword argument 'size'"):
        fastweights.KeyValueCache(4, size=3)
    with pytest.raises(ValueError, match="DeltaMlp: value_size is 3, expected key_size, 4"):
        fastweights.DeltaMlp(4, 3)


def test_a_full_cache_refuses():
    memory = fastweights.KeyValueCache(4, capacity=3, refuse=True, dtype="float64")
    inputs, state = small_inputs(memory, BATCH, 4), memory.initial_state(BATCH)
    with pytest.raises(ValueError, match="KeyValueCache: "):
        memory.scan(state, *inputs)
    assert (state["length"] == 0).all()


def test_a_full_cache_grows():
    little, roomy = (fastweights.KeyValueCache(4, capacity=n, heads=2, dtype="float64") for n in (3, 64))
    inputs, state = small_inputs(little, BATCH, 20), little.initial_state(BATCH)
    outputs = little.scan(state, *inputs)
    assert (outputs == roomy.scan(roomy.initial_state(BATCH), *inputs)).all()
    assert state["keys"].shape == (BATCH, 2, 4, 24)
    again = little.state(state.arrays())
    assert (little.scan(again, *inputs) == little.scan(state, *inputs)).all()
    window = fastweights.KeyValueCache(4, capacity=3, slide=True, heads=2, dtype="float64")
    assert window.initial_state(BATCH).view(1, 0)["keys"].shape == (4, 3)
    with pytest.raises(ValueError, match="keys has shape"):
        window.state(state.arrays())


def test_states_that_no_writes_reach_are_refused():
    memory = small("KeyValueCache")
    arrays = memory.initial_state(BATCH).arrays()
    arrays["length"][1, 1] = -1
    with pytest.raises(ValueError, match="KeyValueCache: "):
        memory.scan(memory.state(arrays), *small_inputs(memory, BATCH, TIME))


def test_states_start_at_their_own_values():
    assert (fastweights.MesaMemory(4).initial_state()["slow.ridge"] == 1).all()


def test_arguments_are_named_in_errors():
    memory = small("DeltaRule")
    inputs, state = small_inputs(memory, BATCH, TIME), memory.initial_state(BATCH)
    for arguments, named, message in [
        (inputs[:3], {}, r"DeltaRule.scan\(\) is missing the argument 'beta'"),
        ([*inputs, 1], {}, r"takes 5 positional arguments but 6 were given"),
        (inputs, {"beta": 1}, "got multiple values for argument 'beta'"),
        (inputs, {"gamma": 1}, "got an unexpected keyword argument 'gamma'"),
    ]:
        with pytest.raises(TypeError, match=message):
            memory.scan(state, *arguments, **named)


def test_stubs_have_all_classes():
    stubs = pathlib.Path(fastweights.__file__).parent / "_core.pyi"
    classes = {each.name: each for each in ast.parse(stubs.read_text()).body if isinstance(each, ast.ClassDef)}
    for name in MEMORIES:
        methods = {each.name: each for each in classes[name].body if isinstance(each, ast.FunctionDef)}
        for method in "scan", "step", "backward":
            arguments = [each.arg for each in methods[method].args.args]
            assert tuple(arguments[2:]) == getattr(fastweights, name)(4).inputs
        assert [each.arg for each in methods["__init__"].args.args][:3] == ["self", "key_size", "value_size"]
