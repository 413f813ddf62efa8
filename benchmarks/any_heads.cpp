#include "any_heads.hpp"

#include <fastweights/any_memory/table.hpp>

#include "rules.hpp"

namespace measure {

template <class S>
AnyHeads<S>::AnyHeads(const fw::AnyMemory<S>& m, Index steps, Index count)
    : memory_(m),
      steps_(steps),
      tokens_(m, steps, count),
      states_(static_cast<std::size_t>(count), m.initial_state()),
      passes_(states_.size()) {}

template <class S> void AnyHeads<S>::fill() {
  Tokens<S> used(memory_, length, 1);
  auto& [inputs, queries, outputs] = used.all;
  fw::AnyState<S> state = memory_.initial_state();
  memory_.scan(state, inputs, queries, outputs);
  for (fw::AnyState<S>& each : states_) each = state;
}

template <class S> void AnyHeads<S>::step() {
  auto& [inputs, queries, outputs] = tokens_.all;
  memory_.step(std::span(states_), inputs, queries, outputs);
}

template <class S> void AnyHeads<S>::scan(Index head) {
  auto& [inputs, queries, outputs] = tokens_.of(head);
  clear(head);
  memory_.scan(state(head), inputs, queries, outputs);
}

template <class S> void AnyHeads<S>::chunked_scan(Index head) {
  auto& [inputs, queries, outputs] = tokens_.of(head);
  clear(head);
  memory_.chunked_scan(state(head), inputs, queries, outputs);
}

// The gradients add up over passes.
template <class S> void AnyHeads<S>::prepare_backward(Index head) {
  auto& [inputs, queries, outputs] = tokens_.of(head);
  BackwardPass& pass = passes_[static_cast<std::size_t>(head)];
  if (gradients_.inputs.matrices.empty()) gradients_ = tokens_.sequences;
  clear(head);
  memory_.scan(state(head), inputs, queries, outputs, pass.checkpoints);
  pass.inputs = gradients_.inputs.template part<S>(head * steps_, steps_);
  pass.queries = gradients_.queries.template part<S>(head * steps_, steps_);
  pass.outputs = tokens_.sequences.outputs.part(head * steps_, steps_);
}

template <class S> void AnyHeads<S>::backward(Index head) {
  auto& [inputs, queries, outputs] = tokens_.of(head);
  BackwardPass& pass = passes_[static_cast<std::size_t>(head)];
  clear(head);  // the gradient of the final state
  memory_.backward(pass.checkpoints, inputs, queries, pass.outputs, state(head), pass.inputs,
                   pass.queries);
}

template class AnyHeads<float>;
template class AnyHeads<double>;

MakeHeads dynamic_heads(const char* memory, bool is_double) {
  return [=](Index d, Index steps, Index count) -> HeadsPointer {
    fw::MemoryOptions options{.key_size = d};
    if (std::string_view(memory) == "KeyValueCache") options.more["slide"] = 1;  // a full one
    if (is_double)
      return std::make_unique<AnyHeads<double>>(fw::make_memory<double>(memory, options), steps,
                                                count);
    return std::make_unique<AnyHeads<float>>(fw::make_memory<float>(memory, options), steps, count);
  };
}

}  // namespace measure
