#pragma once

#include <complex>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <span>
#include <string>
#include <vector>

/// \file
/// Are a rule's gradients right? Compared with the complex step f'(x) = Im f(x + ih)/h, which has
/// no cancellation and is exact to rounding (Squire & Trapp 1998, SIAM Review 40(1)).

namespace fw::testing {

/// The worst relative error over all arrays, max|a − b| / max|b|, and the array it was found in. An
/// array whose gradient vanishes, being below a millionth of the largest of all arrays, is compared
/// with that millionth: rounding is all there is of it.
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

// Counters have no gradient.
template <class Leaf> inline constexpr bool is_counter = std::is_integral_v<Leaf>;

// The entries of an array, or the one of a number.
template <class Leaf> auto entries(Leaf& leaf) {
  if constexpr (requires { leaf.data(); })
    return std::span(leaf.data(), static_cast<std::size_t>(leaf.size()));
  else
    return std::span(&leaf, 1);
}

// Σ up·x over every array of a record.
template <class R, class Up> std::complex<double> weighted_sum(const R& record, const Up& up) {
  std::complex<double> sum = 0;
  for_each_leaf(
      [&](const auto& x, const auto& u) {
        if constexpr (!is_counter<std::remove_cvref_t<decltype(x)>>)
          for (std::size_t i = 0; i < entries(x).size(); ++i) sum += entries(x)[i] * entries(u)[i];
      },
      record, up);
  return sum;
}

struct Comparison {
  std::string path;
  double difference = 0, largest = 0;
};

// The gradients of one array by complex step, against those given. What is not finite is infinitely
// wrong.
template <class Array, class Gradient, class Loss>
Comparison compare(const std::string& path, Array& array, const Gradient& given, const Loss& loss) {
  constexpr double h = 1e-30, infinity = std::numeric_limits<double>::infinity();
  Comparison c{path};
  for (std::size_t i = 0; i < entries(array).size(); ++i) {
    auto& entry = entries(array)[i];
    const auto kept = entry;
    entry += std::complex<double>(0, h);
    const double exact = loss().imag() / h;
    entry = kept;
    const double difference = std::abs(entries(given)[i] - exact);
    c.difference = std::max(c.difference, std::isfinite(difference) ? difference : infinity);
    if (std::isfinite(exact)) c.largest = std::max(c.largest, std::abs(exact));
  }
  return c;
}

template <class R, class G, class Loss>
void compare_record(const std::string& path, R& record, const G& given, const Loss& loss,
                    std::vector<Comparison>& all) {
  for_each_named_leaf(
      [&](const std::string& leaf, auto& array, const auto& gradient) {
        if constexpr (!is_counter<std::remove_cvref_t<decltype(array)>>)
          all.push_back(compare(leaf, array, gradient, loss));
      },
      path, record, given);
}

inline GradientError worst(const std::vector<Comparison>& all) {
  double largest = 0;
  for (const Comparison& c : all) largest = std::max(largest, c.largest);
  GradientError error;
  for (const Comparison& c : all) {
    const double scale = std::max(c.largest, 1e-6 * largest);
    const double relative = scale > 0 ? c.difference / scale : c.difference;
    if (relative > error.worst) error = {relative, c.path};
  }
  return error;
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

  std::vector<detail::Comparison> comparisons;
  detail::compare_record("inputs", zs.inputs, dinputs, loss, comparisons);
  detail::compare_record("queries", zs.queries, dqueries, loss, comparisons);
  detail::compare_record("initial state", zinitial, ds, loss, comparisons);
  return detail::worst(comparisons);
}

}  // namespace fw::testing
