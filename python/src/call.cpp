#include <optional>

#include "objects.hpp"

/// \file
/// Scan, step and backward of all memories: checks every argument, then runs the heads without
/// Python's lock. A bad argument leaves the state as it is; a lack of memory inside a head does
/// not: heads that ran before have their new state.

namespace fw::python {

namespace {

// The array that a member must be. A negative time may be any.
Expected expect(const Heads& heads, const Member& member, Index batch, Index time, bool has_time) {
  Expected e;
  e.owner = heads.name();
  e.name = member.name;
  e.dtype = heads.dtype;
  e.batch = batch;
  e.time = time < 0 ? time : heads.tokens_of(member, time);
  e.heads = heads.count;
  e.rows = member.rows;
  e.is_number = member.is_number;
  e.has_time = has_time || member.width > 1;
  return e;
}

// The inputs as Python gave them and as the heads take them.
struct Arguments {
  std::vector<Input> arrays;
  Call call;
};

// The tokens of the sequence, by its first input.
Index time_of(const Heads& heads, const Input& first) {
  const Member& member = heads.inputs[0];
  if (member.chunks || first.time % member.width == 0) return first.time / member.width;
  throw nb::value_error((heads.name() + ": " + member.name + " has " + std::to_string(first.time) +
                         " tokens, expected a multiple of " + std::to_string(member.width))
                            .c_str());
}

Arguments read_arguments(const Heads& heads, std::span<const nb::object> inputs, Index batch,
                         bool has_time) {
  Arguments result;
  Index time = has_time ? -1 : 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    result.arrays.push_back(
        read_input(inputs[i], expect(heads, heads.inputs[i], batch, time, has_time)));
    if (time < 0) time = time_of(heads, result.arrays[0]);
    result.call.inputs.push_back(result.arrays[i].view);
  }
  result.call.batch = batch;
  result.call.time = time;
  return result;
}

void check_state(const Memory& memory, const State& state, const char* argument) {
  const Heads &own = *memory.heads, &other = state.heads();
  if (own.name() == other.name() && own.dtype == other.dtype && own.count == other.count &&
      fw::detail::same_shapes(own.first(), other.first()))
    return;
  throw nb::value_error((own.name() + ": " + argument + " is one of " +
                         nb::cast<const Memory&>(state.memory).text() + ", expected one of " +
                         memory.text())
                            .c_str());
}

void check_differentiable(const Heads& heads) {
  if (!heads.differentiable) throw nb::value_error((heads.name() + " has no gradients").c_str());
}

// The traces that a scan of `self` fills. They are invalid until it ends.
Traces* prepare(Checkpoints* checkpoints, nb::handle self, Index time) {
  if (!checkpoints) return nullptr;
  const auto& memory = nb::cast<const Memory&>(self);
  const nb::object& before = checkpoints->memory;
  if (!before.is_valid() || !same_arguments(nb::cast<const Memory&>(before), memory))
    checkpoints->traces = memory.heads->traces();
  checkpoints->memory = nb::borrow(self);
  checkpoints->traces.batch = -1;
  checkpoints->traces.time = time;
  return &checkpoints->traces;
}

void run_scan(const Heads& heads, State& state, const Call& call, Traces* traces) {
  const nb::gil_scoped_release release;
  const UsedThreads threads;
  heads.scan(state.streams, call, traces);
}

nb::object run(nb::handle self, State& state, std::span<const nb::object> inputs,
               Checkpoints* checkpoints, bool has_time) {
  const auto& memory = nb::cast<const Memory&>(self);
  const Heads& heads = *memory.heads;
  check_state(memory, state, "state");
  if (checkpoints) check_differentiable(heads);
  Arguments arguments = read_arguments(heads, inputs, state.batch(), has_time);
  Call& call = arguments.call;
  heads.check(state.streams, call.time);
  const Expected expected = expect(heads, heads.output, call.batch, call.time, has_time);
  const Result output = result_for(expected);
  call.output = view_of(output, expected);
  Traces* const traces = prepare(checkpoints, self, call.time);
  run_scan(heads, state, call, traces);
  if (traces) traces->batch = call.batch;
  return output.to_python(inputs[0]);
}

// From where a backward pass starts.
struct Start {
  State* state = nullptr;
  Checkpoints* checkpoints = nullptr;
  Index batch = 0, time = -1;
};

// Throws unless a scan of a memory with the same arguments has filled them.
const Traces& check_filled(const Memory& memory, const Checkpoints& checkpoints) {
  const std::string& rule = memory.heads->name();
  if (checkpoints.traces.batch < 0)
    throw nb::value_error(
        (rule + ": start is not filled, expected checkpoints of a scan of this memory").c_str());
  const auto& filled_by = nb::cast<const Memory&>(checkpoints.memory);
  if (!same_arguments(filled_by, memory))
    throw nb::value_error((rule + ": start is checkpoints of " + filled_by.text() +
                           ", expected checkpoints of " + memory.text())
                              .c_str());
  return checkpoints.traces;
}

Start read_start(const Memory& memory, nb::handle start) {
  Start result;
  if (nb::try_cast(start, result.state)) {
    check_state(memory, *result.state, "start");
    result.batch = result.state->batch();
  } else if (nb::try_cast(start, result.checkpoints)) {
    const Traces& traces = check_filled(memory, *result.checkpoints);
    result.batch = traces.batch;
    result.time = traces.time;
  } else {
    throw nb::type_error(
        (memory.heads->name() + ": start is neither Checkpoints nor a State").c_str());
  }
  return result;
}

// Gradients of the inputs: their memory and the heads' view of it.
struct InputGradients {
  std::vector<Result> results;
  std::vector<Sequences> views;
};

InputGradients input_gradients(const Heads& heads, const Call& call) {
  InputGradients g;
  for (const Member& member : heads.inputs) {
    const Expected expected = expect(heads, member, call.batch, call.time, true);
    g.results.push_back(result_for(expected));
    g.views.push_back(view_of(g.results.back(), expected));
  }
  return g;
}

void run_backward(const Heads& heads, const Start& start, const Call& call, State& gradient,
                  const InputGradients& inputs) {
  nb::gil_scoped_release release;
  const UsedThreads threads;
  if (start.state)
    heads.backward(start.state->streams, call, gradient.streams, inputs.views);
  else
    heads.backward(start.checkpoints->traces, call, gradient.streams, inputs.views);
}

}  // namespace

nb::dict input_shapes(const Memory& memory, Index batch, Index time) {
  nb::dict shapes;
  for (const Member& member : memory.heads->inputs) {
    nb::list sizes;
    for (const std::size_t size : shape_of(expect(*memory.heads, member, batch, time, true)))
      sizes.append(size);
    shapes[nb::str(member.name.c_str())] = nb::tuple(sizes);
  }
  return shapes;
}

nb::object scan(nb::handle self, State& state, std::span<const nb::object> inputs,
                Checkpoints* checkpoints) {
  const Busy::Guard guard(state.busy, "state");
  std::optional<Busy::Guard> checkpoints_guard;
  if (checkpoints) checkpoints_guard.emplace(checkpoints->busy, "checkpoints");
  return run(self, state, inputs, checkpoints, true);
}

nb::object step(nb::handle self, State& state, std::span<const nb::object> inputs) {
  const Busy::Guard guard(state.busy, "state");
  return run(self, state, inputs, nullptr, false);
}

nb::object backward(nb::handle self, nb::handle from, std::span<const nb::object> inputs,
                    nb::handle output_gradient, State* state_gradient) {
  const auto& memory = nb::cast<const Memory&>(self);
  const Heads& heads = *memory.heads;
  check_differentiable(heads);
  const Start start = read_start(memory, from);
  const Busy::Guard guard(start.state ? start.state->busy : start.checkpoints->busy, "start");
  Arguments arguments = read_arguments(heads, inputs, start.batch, true);
  Call& call = arguments.call;
  if (start.time >= 0 && start.time != call.time)
    throw nb::value_error((heads.name() + ": the inputs have " + std::to_string(call.time) +
                           " tokens, expected the " + std::to_string(start.time) +
                           " of the checkpoints")
                              .c_str());
  Member gradient_member = heads.output;
  gradient_member.name = "output_gradient";
  const Input dy =
      read_input(output_gradient, expect(heads, gradient_member, call.batch, call.time, true));
  call.output = dy.view;
  nb::object gradient_object = zero_state(self, start.batch);
  auto& gradient = nb::cast<State&>(gradient_object);
  if (state_gradient) {
    std::optional<Busy::Guard> gradient_guard;
    if (state_gradient != start.state)
      gradient_guard.emplace(state_gradient->busy, "state_gradient");
    check_state(memory, *state_gradient, "state_gradient");
    if (state_gradient->batch() != start.batch)
      throw nb::value_error((heads.name() + ": state_gradient has a batch of " +
                             std::to_string(state_gradient->batch()) + ", expected " +
                             std::to_string(start.batch))
                                .c_str());
    gradient.streams = state_gradient->streams;
  }
  const InputGradients gradients = input_gradients(heads, call);
  run_backward(heads, start, call, gradient, gradients);
  nb::dict named;
  for (std::size_t i = 0; i < heads.inputs.size(); ++i)
    named[nb::str(heads.inputs[i].name.c_str())] = gradients.results[i].to_python(inputs[0]);
  return nb::make_tuple(named, gradient_object);
}

}  // namespace fw::python
