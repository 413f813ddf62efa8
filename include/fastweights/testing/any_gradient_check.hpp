#pragma once

#include <fastweights/testing/any_sequences.hpp>
#include <fastweights/testing/gradient_check.hpp>

namespace fw::inline FASTWEIGHTS_ABI::testing {

/// As gradient_error of a memory whose type is known, of a memory and the same memory in complex
/// numbers. `first` is the state before the tokens that lead to the initial state.
inline GradientError gradient_error(const AnyMemory<double>& m,
                                    const AnyMemory<std::complex<double>>& complex_memory,
                                    const AnyState<double>& first, Index steps,
                                    std::uint64_t seed = 1, bool positive = false) {
  using Complex = std::complex<double>;
  Random random(seed);
  const auto state_after = [&](Index count) {
    AnyState<double> state = first;
    auto sequences = random_sequences(m, count, random, positive);
    scan(m, state, sequences);
    return state;
  };
  auto sequences = random_sequences(m, steps, random, positive), gradients = sequences;
  const AnyState<double> initial = state_after(3), dfinal = state_after(5);
  using fw::detail::object;
  detail::fill_normal(object(gradients.outputs), random);

  AnyState<double> ds;
  for (auto* record : {&gradients.inputs, &gradients.queries})
    for (auto& matrix : record->matrices) matrix.setZero();
  for (int pass = 0; pass < 2; ++pass) {
    AnyState<double> state = initial;
    ds = dfinal;
    AnyCheckpoints<double> checkpoints;
    m.scan(state, sequences.inputs.views(), sequences.queries.views(),
           sequences.outputs.views<double>(), checkpoints);
    m.backward(checkpoints, sequences.inputs.views(), sequences.queries.views(),
               gradients.outputs.views(), ds, gradients.inputs.views<double>(),
               gradients.queries.views<double>());
  }
  detail::halve(object(gradients.inputs));
  detail::halve(object(gradients.queries));

  auto complex = sequences.cast<Complex>();
  const AnyState<Complex> complex_initial = complex_memory.state_from(initial);
  const auto loss = [&] {
    AnyState<Complex> state = complex_initial;
    scan(complex_memory, state, complex);
    return detail::weighted_sum(object(complex.outputs), object(gradients.outputs)) +
           detail::weighted_sum(state.object(), dfinal.object());
  };
  return detail::worst({{"inputs", {object(complex.inputs), object(gradients.inputs)}},
                        {"queries", {object(complex.queries), object(gradients.queries)}},
                        {"initial state", {complex_initial.object(), ds.object()}}},
                       loss);
}

}  // namespace fw::testing
