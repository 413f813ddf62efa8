#include <optional>

#include "objects.hpp"

/// \file
/// Scan, step and backward for all rules: checks every argument, then runs the kernel without
/// Python's lock. An error leaves the state as it is.

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

nb::object run(const Memory& memory, State& state, const std::vector<nb::handle>& inputs,
               Traces* traces, bool has_time) {
  const Kernel& kernel = *memory.kernel;
  check_state(memory, state, "state");
  Arguments arguments = read_arguments(kernel, inputs, state.batch(), has_time);
  Call& call = arguments.call;
  const Expected expected = expect(kernel, kernel.output, call.batch, call.time, has_time);
  const Result output = result_for(expected);
  call.output = view_of(output, expected);
  if (traces) {
    traces->batch = -1;  // marks them as invalid in case the scan throws
    traces->time = call.time;
  }
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

Start read_start(const Memory& memory, nb::handle start) {
  Start result;
  if (nb::try_cast(start, result.state)) {
    check_state(memory, *result.state, "start");
    result.batch = result.state->batch();
  } else if (nb::try_cast(start, result.checkpoints)) {
    const Traces* traces = result.checkpoints->traces.get();
    if (!traces || traces->batch < 0 || !memory.kernel->owns(*traces))
      throw nb::value_error((std::string(memory.kernel->rule) +
                             ": start is not filled, expected checkpoints of a scan of this memory")
                                .c_str());
    result.batch = traces->batch;
    result.time = traces->time;
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
  const auto& memory = nb::cast<const Memory&>(self);
  const Busy::Guard guard(state.busy, "state");
  if (!checkpoints) return run(memory, state, inputs, nullptr, true);
  const Busy::Guard checkpoints_guard(checkpoints->busy, "checkpoints");
  if (!checkpoints->traces || !memory.kernel->owns(*checkpoints->traces))
    checkpoints->traces = memory.kernel->traces();
  return run(memory, state, inputs, checkpoints->traces.get(), true);
}

nb::object step(nb::handle self, State& state, const std::vector<nb::handle>& inputs) {
  const Busy::Guard guard(state.busy, "state");
  return run(nb::cast<const Memory&>(self), state, inputs, nullptr, false);
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
    const Busy::Guard gradient_guard(state_gradient->busy, "state_gradient");
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
