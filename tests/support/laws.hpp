#pragma once

#include <fastweights/testing/gradient_check.hpp>
#include <unsupported/Eigen/AutoDiff>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/run_of.hpp"
#include "support/sizes.hpp"

/// \file
/// The laws that every memory obeys. Every rule has a test file that checks them.

namespace laws {

template <class M> void gradients_are_exact(const M& m, Index steps, bool positive) {
  const auto error = fw::testing::gradient_error(m, steps, 8, positive);
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

/// The generic code path runs on Eigen's AutoDiffScalar. Its derivative equals the complex step's.
template <class M> void takes_autodiff(const M& m, bool positive) {
  using A = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
  using Z = std::complex<double>;
  const auto with_autodiff = m.template cast<A>();
  const auto with_complex = m.template cast<Z>();
  const auto direction = [](auto one) {
    using T = decltype(one);
    if constexpr (std::is_same_v<T, A>)
      return A(0.3, 1, 0);
    else
      return T(0.3, 1e-30);
  };
  const auto run = [&](const auto& rule, auto kind) {
    using R = std::remove_cvref_t<decltype(rule)>;
    fw::Random random(9);
    auto all = fw::testing::random_sequences(rule, 6, random, positive);
    std::get<0>(fw::members(all.inputs))(0, 1) = direction(kind);
    auto state = fw::initial_state(rule);
    scan(rule, state, all);
    (void)sizeof(R);
    return std::get<0>(fw::members(all.outputs)).eval();
  };
  const auto a = run(with_autodiff, A());
  const auto z = run(with_complex, Z());
  double largest = 0;
  for (Index i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(z(i).imag() / 1e-30));
  for (Index i = 0; i < a.size(); ++i) {
    const double slope = a(i).derivatives().size() ? a(i).derivatives()[0] : 0;
    CHECK(std::abs(a(i).value() - z(i).real()) <= 1e-12);
    CHECK(std::abs(slope - z(i).imag() / 1e-30) <= 1e-11 * std::max(1.0, largest));
  }
}

/// The results in float equal those in double up to rounding.
template <class M> void float_follows_double(const M& m, bool positive) {
  const auto single = m.template cast<float>();
  using F = std::remove_cvref_t<decltype(single)>;
  fw::Random random(10), again(10);
  auto exact = fw::testing::random_sequences(m, 50, random, positive);
  auto rounded = fw::testing::random_sequences(single, 50, again, positive);
  auto state = fw::initial_state(m);
  fw::StateOf<F> float_state = fw::initial_state(single);
  scan(m, state, exact);
  scan(single, float_state, rounded);
  CHECK(difference(rounded.outputs, exact.outputs) <= 2e-5);
}

/// The gradients of a random sequence's inputs, queries and initial state.
template <class M> auto random_gradients(const M& m, Index steps, bool positive) {
  fw::Random random(12);
  auto all = fw::testing::random_sequences(m, steps, random, positive);
  auto gradients = fw::testing::random_sequences(m, steps, random, positive);
  fw::for_each_leaf([&](auto& array) { random.fill(array, 1.0); }, gradients.outputs);
  auto state = fw::initial_state(m), dstate = fw::testing::random_state(m, 5, random, positive);
  fw::Checkpoints<M> checkpoints;
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs),
           checkpoints);
  fw::backward(m, checkpoints, fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries),
               fw::view<fw::OutGradSequence<M>>(gradients.outputs), dstate,
               fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
               fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  return std::tuple(gradients.inputs, gradients.queries, dstate);
}

/// Fixed and dynamic sizes give equal outputs and states, step by step and over a sequence, and
/// equal gradients. (`all` checks the other forms in fixed sizes on one rule of each type.)
template <class Fixed, class Dyn>
void fixed_is_dynamic(const Fixed& fixed, const Dyn& dynamic, bool positive) {
  fw::Random random(12), again(12);
  auto a = fw::testing::random_sequences(fixed, 20, random, positive);
  auto b = fw::testing::random_sequences(dynamic, 20, again, positive);
  auto s = fw::initial_state(fixed);
  auto d = fw::initial_state(dynamic);
  auto stepped = a;
  auto stepped_state = s;
  scan(fixed, s, a);
  scan(dynamic, d, b);
  CHECK(difference(a.outputs, b.outputs) <= 1e-13);
  CHECK(difference(s, d) <= 1e-13);
  for (Index t = 0; t < 20; ++t) {
    const auto [input, query, output] = tokens(fixed, stepped, t);
    fw::step(fixed, stepped_state, input, query, output);
  }
  CHECK(difference(stepped.outputs, b.outputs) <= 1e-13);
  CHECK(difference(stepped_state, d) <= 1e-13);
  if constexpr (fw::Differentiable<Fixed>) {
    const auto [inputs, queries, state] = random_gradients(fixed, 20, positive);
    const auto [dynamic_inputs, dynamic_queries, dynamic_state] =
        random_gradients(dynamic, 20, positive);
    CHECK(difference(inputs, dynamic_inputs) <= 1e-12);
    CHECK(difference(queries, dynamic_queries) <= 1e-12);
    CHECK(difference(state, dynamic_state) <= 1e-12);
  }
}

/// Automatic differentiation, float and fixed sizes.
template <class Fixed, class Dyn>
void other_forms(const Fixed& fixed, const Dyn& dynamic, bool positive = false) {
  takes_autodiff(dynamic, positive);
  float_follows_double(dynamic, positive);
  fixed_is_dynamic(fixed, dynamic, positive);
}

/// The largest difference between the outputs of `all`, from another memory, and those of m for
/// `inputs` and the same queries.
template <class All, class M>
double output_difference(const All& all, const M& m, fw::WriteSequence<M> inputs) {
  Eigen::MatrixXd y = all.outputs.output;
  const Eigen::MatrixXd expected = y;
  auto state = fw::initial_state(m);
  y.setConstant(std::nan(""));
  fw::scan(m, state, inputs, {all.queries.query}, {y});
  return largest_entry(y - expected);
}

/// The laws of every memory in double, with the generic forms.
template <class M> void every_memory(const M& m, bool positive = false) {
  static_assert(fw::assert_memory<M>());
  const MakeRun make = runs_of(m, positive);
  step_is_write_and_read(make);
  scan_is_steps(make);
  state_is_a_value(make);
  wrong_sizes_are_refused(make);
}

/// All laws of a single memory in double, except gradients, automatic differentiation and fixed
/// sizes.
template <class M> void all(const M& m, bool positive = false) {
  every_memory(m, positive);
  const MakeRun make = runs_of(m, positive);
  chunked_is_recurrent(make);
  merged_is_recurrent(make);
  float_follows_double(m, positive);
}

/// The sizes at which every rule is tried.
inline const auto sizes = ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65});

/// All laws at many sizes, for the rule that `make(d_k, d_v)` returns.
template <class Make> void at_all_sizes(const Make& make, bool positive = false) {
  for (const Index d : sizes) {
    INFO("d = " << d);
    all(make(d, d), positive);
  }
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    all(make(dk, dv), positive);
    gradients_are_exact(make(dk, dv), 6, positive);
  }
  for (const Index d : {1, 3, 9}) {
    INFO("d = " << d);
    gradients_are_exact(make(d, d), 1, positive);
    gradients_are_exact(make(d, d), 17, positive);
  }
  takes_autodiff(make(4, 3), positive);
}

}  // namespace laws
