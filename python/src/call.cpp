#include <optional>

#include "objects.hpp"

/// \file
/// Scan, step and backward for all rules: checks every argument, then runs the kernel without
/// Python's lock. A bad argument leaves the state as it is; a lack of memory inside the kernel does
/// not: heads that ran before have their new state.

namespace fw::python {

namespace {

// The expectation of a member of `kernel`.
Expected expect(const Kernel& kernel, const Member& member, Index batch, Index time,
                bool has_time) {
  Expected e;
  e.owner = kernel.rule;
  e.name = member.name;
  e.dtype = kernel.dtype;
  e.batch = batch;
  e.time = time;
  e.heads = kernel.heads;
  e.rows = member.rows;
  e.is_number = member.is_number;
  e.has_time = has_time;
  return e;
}

// The inputs as Python gave them and as the kernel takes them.
struct Arguments {
  std::vector<Input> arrays;
  Call call;
};

Arguments read_arguments(const Kernel& kernel, const std::vector<nb::handle>& inputs, Index batch,
                         bool has_time) {
  Arguments result;
  Index time = has_time ? -1 : 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    result.arrays.push_back(
        read_input(inputs[i], expect(kernel, kernel.inputs[i], batch, time, has_time)));
    time = result.arrays[0].time;
    result.call.inputs.push_back(result.arrays[i].view);
  }
  result.call.batch = batch;
  result.call.time = time;
  return result;
}

void check_state(const Memory& memory, const State& state, const char* argument) {
  const bool same_heads = state.kernel().heads == memory.kernel->heads;
  if (same_heads && memory.kernel->owns(*state.streams)) return;
  throw nb::value_error((std::string(memory.kernel->rule) + ": " + argument + " is one of " +
                         nb::cast<const Memory&>(state.memory).text() + ", expected one of " +
                         memory.text())
                            .c_str());
}

void run_scan(const Kernel& kernel, State& state, const Call& call, Traces* traces) {
  nb::gil_scoped_release release;
  const UsedThreads threads;
  if (traces)
    kernel.scan(*state.streams, call, *traces);
  else
    kernel.scan(*state.streams, call);
}

// The traces that a scan of `self` fills. They are invalid until it ends.
Traces* prepare(Checkpoints* checkpoints, nb::handle self, Index time) {
  if (!checkpoints) return nullptr;
  const auto& memory = nb::cast<const Memory&>(self);
  const nb::object& before = checkpoints->memory;
  if (!before.is_valid() || !same_arguments(nb::cast<const Memory&>(before), memory))
    checkpoints->traces = memory.kernel->traces();
  checkpoints->memory = nb::borrow(self);
  checkpoints->traces->batch = -1;
  checkpoints->traces->time = time;
  return checkpoints->traces.get();
}

nb::object run(nb::handle self, State& state, const std::vector<nb::handle>& inputs,
               Checkpoints* checkpoints, bool has_time) {
  const auto& memory = nb::cast<const Memory&>(self);
  const Kernel& kernel = *memory.kernel;
  check_state(memory, state, "state");
  Arguments arguments = read_arguments(kernel, inputs, state.batch(), has_time);
  Call& call = arguments.call;
  const Expected expected = expect(kernel, kernel.output, call.batch, call.time, has_time);
  const Result output = result_for(expected);
  call.output = view_of(output, expected);
  Traces* const traces = prepare(checkpoints, self, call.time);
  run_scan(kernel, state, call, traces);
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
  const std::string rule(memory.kernel->rule);
  if (!checkpoints.traces || checkpoints.traces->batch < 0)
    throw nb::value_error(
        (rule + ": start is not filled, expected checkpoints of a scan of this memory").c_str());
  const auto& filled_by = nb::cast<const Memory&>(checkpoints.memory);
  if (!same_arguments(filled_by, memory))
    throw nb::value_error((rule + ": start is checkpoints of " + filled_by.text() +
                           ", expected checkpoints of " + memory.text())
                              .c_str());
  return *checkpoints.traces;
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
        (std::string(memory.kernel->rule) + ": start is neither Checkpoints nor a State").c_str());
  }
  return result;
}

// Gradients of the inputs: their memory and the kernel's view of it.
struct InputGradients {
  std::vector<Result> results;
  std::vector<Sequences> views;
};

InputGradients input_gradients(const Kernel& kernel, const Call& call) {
  InputGradients g;
  for (const Member& member : kernel.inputs) {
    const Expected expected = expect(kernel, member, call.batch, call.time, true);
    g.results.push_back(result_for(expected));
    g.views.push_back(view_of(g.results.back(), expected));
  }
  return g;
}

void run_backward(const Kernel& kernel, const Start& start, const Call& call, State& gradient,
                  const InputGradients& inputs) {
  nb::gil_scoped_release release;
  const UsedThreads threads;
  if (start.state)
    kernel.backward(*start.state->streams, call, *gradient.streams, inputs.views);
  else
    kernel.backward(*start.checkpoints->traces, call, *gradient.streams, inputs.views);
}

}  // namespace

nb::object scan(nb::handle self, State& state, const std::vector<nb::handle>& inputs,
                Checkpoints* checkpoints) {
  const Busy::Guard guard(state.busy, "state");
  std::optional<Busy::Guard> checkpoints_guard;
  if (checkpoints) checkpoints_guard.emplace(checkpoints->busy, "checkpoints");
  return run(self, state, inputs, checkpoints, true);
}

nb::object step(nb::handle self, State& state, const std::vector<nb::handle>& inputs) {
  const Busy::Guard guard(state.busy, "state");
  return run(self, state, inputs, nullptr, false);
}

nb::object backward(nb::handle self, nb::handle from, const std::vector<nb::handle>& inputs,
                    nb::handle output_gradient, State* state_gradient) {
  const auto& memory = nb::cast<const Memory&>(self);
  const Kernel& kernel = *memory.kernel;
  const Start start = read_start(memory, from);
  const Busy::Guard guard(start.state ? start.state->busy : start.checkpoints->busy, "start");
  Arguments arguments = read_arguments(kernel, inputs, start.batch, true);
  Call& call = arguments.call;
  if (start.time >= 0 && start.time != call.time)
    throw nb::value_error((std::string(kernel.rule) + ": the inputs have " +
                           std::to_string(call.time) + " tokens, expected the " +
                           std::to_string(start.time) + " of the checkpoints")
                              .c_str());
  Member gradient_member = kernel.output;
  gradient_member.name = "output_gradient";
  const Input dy =
      read_input(output_gradient, expect(kernel, gradient_member, call.batch, call.time, true));
  call.output = dy.view;
  nb::object gradient_object = new_state(self, start.batch);
  auto& gradient = nb::cast<State&>(gradient_object);
  if (state_gradient) {
    std::optional<Busy::Guard> gradient_guard;
    if (state_gradient != start.state)
      gradient_guard.emplace(state_gradient->busy, "state_gradient");
    check_state(memory, *state_gradient, "state_gradient");
    if (state_gradient->batch() != start.batch)
      throw nb::value_error((std::string(kernel.rule) + ": state_gradient has a batch of " +
                             std::to_string(state_gradient->batch()) + ", expected " +
                             std::to_string(start.batch))
                                .c_str());
    gradient.streams = state_gradient->streams->copy();
  }
  const InputGradients gradients = input_gradients(kernel, call);
  run_backward(kernel, start, call, gradient, gradients);
  nb::dict named;
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
    named[nb::str(kernel.inputs[i].name.data())] = gradients.results[i].to_python(inputs[0]);
  return nb::make_tuple(named, gradient_object);
}

}  // namespace fw::python
