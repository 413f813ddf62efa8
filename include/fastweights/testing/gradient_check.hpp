#pragma once

#include <complex>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/testing/sequences.hpp>
#include <functional>
#include <string>
#include <vector>

/// \file
/// Compares a rule's gradients with the complex step f'(x) = Im f(x + ih)/h, which has no
/// cancellation and is exact up to rounding (Squire & Trapp 1998, SIAM Review 40(1)).

namespace fw::inline FASTWEIGHTS_ABI::testing {

/// The largest relative error over all arrays, max|a − b| / max|b|, and the name of its array. A
/// gradient that is 0 up to rounding has no relative error, so max|b| counts as at least a
/// millionth of the largest gradient of all arrays.
struct GradientError {
  double worst = 0;   ///< the largest relative error
  std::string where;  ///< the array that has it
};

namespace detail {

using fw::detail::Object;
using Complex = std::complex<double>;

// Two records with the same members, one complex and one in double.
struct Pair {
  Object complex, real;
};

// A record of complex inputs, its gradient, and its name in GradientError::where.
struct CheckedRecord {
  std::string_view name;
  Pair pair;
};

void fill_normal(const Object& record, Random& random);

// Copies a real record into a complex one. Counters are integers in both.
void to_complex(const Object& real, const Object& complex);

// Divides every entry by 2, which is exact.
void halve(const Object& record);

// Σ w·x over every array x of a record, with w from `weights`.
Complex weighted_sum(const Object& record, const Object& weights);

// Compares the given gradients with the complex step. A difference that is not finite counts as
// infinite.
GradientError worst(const std::vector<CheckedRecord>& records,
                    const std::function<Complex()>& loss);

}  // namespace detail

/// Checks the gradients of m, a memory in double, with respect to every input, every query and the
/// initial state. The loss is a random linear function of the outputs and the final state, over
/// `steps` random tokens. Gradients are added up over two backward passes, so that `=` in place of
/// `+=` is an error. m.cast<T>() must return the same rule in another scalar.
template <Differentiable M>
requires std::same_as<typename M::Scalar, double> GradientError
gradient_error(const M& m, Index steps, std::uint64_t seed = 1, bool positive = false) {
  using Complex = std::complex<double>;
  static_assert(
      requires {
        requires std::same_as<typename decltype(m.template cast<Complex>())::Scalar, Complex>;
      },
      "gradient_error: the rule's `template <class T> Rule<T> cast() const` is missing");
  Random random(seed);
  const auto complex_rule = m.template cast<Complex>();
  using Z = std::remove_cvref_t<decltype(complex_rule)>;

  auto sequences = random_sequences(m, steps, random, positive);
  auto gradients = random_sequences(m, steps, random, positive);
  const StateOf<M> initial = random_state(m, 3, random, positive);
  const StateOf<M> dfinal = random_state(m, 5, random, positive);
  detail::fill_normal(fw::detail::object(gradients.outputs), random);

  StateOf<M> ds = dfinal;
  set_zero(gradients.inputs);
  set_zero(gradients.queries);
  for (int pass = 0; pass < 2; ++pass) {
    StateOf<M> state = initial;
    ds = dfinal;
    Checkpoints<M> checkpoints;
    scan(m, state, view<WriteSequence<M>>(sequences.inputs),
         view<ReadSequence<M>>(sequences.queries), view<OutSequence<M>>(sequences.outputs),
         checkpoints);
    backward(m, checkpoints, view<WriteSequence<M>>(sequences.inputs),
             view<ReadSequence<M>>(sequences.queries), view<OutGradSequence<M>>(gradients.outputs),
             ds, view<WriteGradSequence<M>>(gradients.inputs),
             view<ReadGradSequence<M>>(gradients.queries));
  }
  detail::halve(fw::detail::object(gradients.inputs));
  detail::halve(fw::detail::object(gradients.queries));

  Random unused(seed);
  auto complex = random_sequences(complex_rule, steps, unused);
  StateOf<Z> complex_initial = initial_state(complex_rule);
  using fw::detail::object;
  detail::to_complex(object(sequences.inputs), object(complex.inputs));
  detail::to_complex(object(sequences.queries), object(complex.queries));
  detail::to_complex(object(initial), object(complex_initial));
  const auto loss = [&] {
    StateOf<Z> complex_state = complex_initial;
    scan(complex_rule, complex_state, view<WriteSequence<Z>>(complex.inputs),
         view<ReadSequence<Z>>(complex.queries), view<OutSequence<Z>>(complex.outputs));
    return detail::weighted_sum(object(complex.outputs), object(gradients.outputs)) +
           detail::weighted_sum(object(complex_state), object(dfinal));
  };
  return detail::worst({{"inputs", {object(complex.inputs), object(gradients.inputs)}},
                        {"queries", {object(complex.queries), object(gradients.queries)}},
                        {"initial state", {object(complex_initial), object(ds)}}},
                       loss);
}

}  // namespace fw::testing

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/testing/implementation/gradient_check.hpp>
#endif
