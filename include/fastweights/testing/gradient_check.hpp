#pragma once

#include <complex>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <string>

/// \file
/// Are a rule's gradients right? Compared with the complex step f'(x) = Im f(x + ih)/h, which has
/// no cancellation and is exact to rounding (Squire & Trapp 1998, SIAM Review 40(1)).

namespace fw::testing {

/// The worst relative error over all arrays, max|a − b| / max|b|, and the array it was found in.
struct GradientError {
  double worst = 0;
  std::string where;
};

namespace detail {

// Casts every leaf of a record to the complex numbers; counters stay as they are.
template <class To, class From> void to_complex(const From& from, To& to) {
  for_each_leaf(
      [](const auto& x, auto& z) {
        using Z = std::remove_cvref_t<decltype(z)>;
        if constexpr (requires { typename Z::Scalar; })
          z = x.template cast<typename Z::Scalar>();
        else
          z = Z(x);
      },
      from, to);
}

// Σ up·x over every array of a record.
template <class R, class Up> std::complex<double> weighted_sum(const R& record, const Up& up) {
  std::complex<double> sum = 0;
  for_each_leaf(
      [&](const auto& x, const auto& u) {
        if constexpr (requires { x.cwiseProduct(x); })
          sum += x.cwiseProduct(u.template cast<std::complex<double>>()).sum();
      },
      record, up);
  return sum;
}

// The gradients of one array by complex step, against those given.
template <class Array, class Gradient, class Loss>
void compare(const std::string& path, Array& array, const Gradient& given, const Loss& loss,
             GradientError& error) {
  constexpr double h = 1e-30;
  double difference = 0, largest = 0;
  for (Index j = 0; j < array.cols(); ++j)
    for (Index i = 0; i < array.rows(); ++i) {
      const auto kept = array(i, j);
      array(i, j) += std::complex<double>(0, h);
      const double exact = loss().imag() / h;
      array(i, j) = kept;
      difference = std::max(difference, std::abs(given(i, j) - exact));
      largest = std::max(largest, std::abs(exact));
    }
  const double relative = largest > 0 ? difference / largest : difference;
  if (!(relative <= error.worst)) error = {relative, path};
}

template <class R, class G, class Loss>
void compare_record(const std::string& path, R& record, const G& given, const Loss& loss,
                    GradientError& error) {
  for_each_named_leaf(
      [&](const std::string& leaf, auto& array, const auto& gradient) {
        if constexpr (requires { array.cwiseProduct(array); })
          compare(leaf, array, gradient, loss, error);
      },
      path, record, given);
}

}  // namespace detail

/// Checks the gradients of m, a memory in double, for every input, the initial state and the final
/// state's gradient over `steps` random steps from a used state. m.cast<T>() must give the rule in
/// another scalar.
template <Differentiable M>
requires std::same_as<typename M::Scalar, double> GradientError
gradient_error(const M& m, Index steps, std::uint64_t seed = 1, bool positive = false) {
  Random random(seed);
  const auto complex_rule = m.template cast<std::complex<double>>();
  using Z = std::remove_cvref_t<decltype(complex_rule)>;

  auto all = random_sequences(m, steps, random, positive);
  const auto up = random_sequences(m, steps, random, positive);
  const StateOf<M> initial = used_state(m, 3, random, positive);
  const StateOf<M> up_state = used_state(m, 5, random, positive);
  auto up_outputs = all.outputs;
  for_each_leaf([&](auto& array) { random.fill(array, 1.0); }, up_outputs);

  StateOf<M> state = initial, ds = up_state;
  auto dinputs = up.inputs;
  auto dqueries = up.queries;
  set_zero(dinputs);
  set_zero(dqueries);
  Checkpoints<M> kept;
  scan(m, state, view<WriteSequence<M>>(all.inputs), view<ReadSequence<M>>(all.queries),
       view<OutSequence<M>>(all.outputs), kept);
  backward(m, kept, view<WriteSequence<M>>(all.inputs), view<ReadSequence<M>>(all.queries),
           view<OutGradSequence<M>>(up_outputs), ds, view<WriteGradSequence<M>>(dinputs),
           view<ReadGradSequence<M>>(dqueries));

  Random unused(seed);
  auto zs = random_sequences(complex_rule, steps, unused);
  StateOf<Z> zinitial = initial_state(complex_rule);
  detail::to_complex(all.inputs, zs.inputs);
  detail::to_complex(all.queries, zs.queries);
  detail::to_complex(initial, zinitial);
  const auto loss = [&] {
    StateOf<Z> zstate = zinitial;
    scan(complex_rule, zstate, view<WriteSequence<Z>>(zs.inputs), view<ReadSequence<Z>>(zs.queries),
         view<OutSequence<Z>>(zs.outputs));
    return detail::weighted_sum(zs.outputs, up_outputs) + detail::weighted_sum(zstate, up_state);
  };

  GradientError error;
  detail::compare_record("inputs", zs.inputs, dinputs, loss, error);
  detail::compare_record("queries", zs.queries, dqueries, loss, error);
  detail::compare_record("initial state", zinitial, ds, loss, error);
  return error;
}

}  // namespace fw::testing
