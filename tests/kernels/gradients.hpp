#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/testing/sequences.hpp>
#include <functional>
#include <type_traits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

// Gradients by kernels against those of the rule's own equations in double, token by token: no
// kernel has a part in these. They round as often as the kernels do, so a limit is for the errors
// of both.
namespace gradients {

using fw::Index;

template <class M> struct Run {
  fw::testing::Sequences<M> all, gradients;
  fw::StateOf<M> state, dstate;

  Run(const M& m, Index steps) : state(fw::initial_state(m)), dstate(state) {
    fw::Random random(5);
    all = fw::testing::random_sequences(m, steps, random);
    random.fill(state.W);
    random.fill(dstate.W);
    if constexpr (requires { state.momentum; }) {
      random.fill(state.momentum);
      random.fill(dstate.momentum);
    }
    if constexpr (requires { state.slow; }) {
      fw::for_each_member([&](auto, auto& x) { random.fill(x); }, state.slow);
      dstate.slow = state.slow;
    }
  }

  // The numbers of a run of the rule in another scalar, or with other sizes at compile time.
  template <class Other> Run(const Other& o, const M& m) : state(fw::initial_state(m)) {
    const auto copy = [](auto& to, const auto& from) {
      to = from.template cast<typename M::Scalar>();
    };
    fw::for_each_member([&](auto, auto& to, const auto& from) { copy(to, from); }, all.inputs,
                        o.all.inputs);
    fw::for_each_member([&](auto, auto& to, const auto& from) { copy(to, from); }, all.queries,
                        o.all.queries);
    copy(all.outputs.output, o.all.outputs.output);
    gradients = all;
    copy(state.W, o.state.W);
    dstate = state;
    copy(dstate.W, o.dstate.W);
    if constexpr (requires { state.momentum; }) {
      copy(state.momentum, o.state.momentum);
      copy(dstate.momentum, o.dstate.momentum);
    }
    if constexpr (requires { state.slow; })
      fw::for_each_member([&](auto, auto& to, const auto& from) { copy(to, from); }, state.slow,
                          o.state.slow);
    if constexpr (requires { state.slow; }) dstate.slow = state.slow;
  }

  auto in() const { return fw::view<fw::WriteSequence<M>>(all.inputs); }
  auto queries() const { return fw::view<fw::ReadSequence<M>>(all.queries); }

  // The gradient of y is y.
  void forward_and_backward(const M& m, bool with_checkpoints) {
    const fw::StateOf<M> initial = state;
    fw::Checkpoints<M> checkpoints;
    fw::scan(m, state, in(), queries(), fw::view<fw::OutSequence<M>>(all.outputs), checkpoints);
    const auto dy = fw::view<fw::OutGradSequence<M>>(all.outputs);
    const auto dinputs = fw::view<fw::WriteGradSequence<M>>(gradients.inputs);
    const auto dqueries = fw::view<fw::ReadGradSequence<M>>(gradients.queries);
    if (with_checkpoints)
      fw::backward(m, checkpoints, in(), queries(), dy, dstate, dinputs, dqueries);
    else
      fw::backward(m, initial, in(), queries(), dy, dstate, dinputs, dqueries);
  }

  // The same by the rule's write, read and their gradients.
  void token_by_token(const M& m) {
    const Index steps = all.outputs.output.cols() / m.signature().out().output.width;
    fw::Checkpoints<M> checkpoints;
    checkpoints.interval = std::max<Index>(1, steps);
    checkpoints.states = {state};
    for (Index t = 0; t < steps; ++t) {
      const auto read = [&] {
        m.read(state, fw::detail::token_at<fw::ReadToken<M>>(queries(), m.signature().read(), t),
               fw::detail::token_at<fw::OutToken<M>>(fw::view<fw::OutSequence<M>>(all.outputs),
                                                     m.signature().out(), t));
      };
      if constexpr (fw::reads_first<M>()) read();
      m.write(state, fw::detail::token_at<fw::WriteToken<M>>(in(), m.signature().write(), t));
      if constexpr (!fw::reads_first<M>()) read();
    }
    fw::detail::segment_backward(m, checkpoints, 0, steps, in(), queries(),
                                 fw::view<fw::OutGradSequence<M>>(all.outputs), dstate,
                                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }
};

// A run with the same numbers.
template <class Exact, class M> Run<Exact> same_run(const Run<M>& run, const Exact& exact) {
  if constexpr (std::is_same_v<M, Exact>)
    return run;
  else
    return Run<Exact>(run, exact);
}

template <class A, class B> double difference(const A& a, const B& b) {
  if (b.size() == 0) return 0;
  const double error = largest_entry(a.template cast<double>() - b);
  if (error == 0) return 0;  // all gradients before a decay of 0 are 0
  const double worst = error / b.cwiseAbs().maxCoeff();
  return std::isnan(worst) ? 1e300 : worst;
}

// Of any type, so that `check` compiles once for a rule.
template <class M> using Change = std::function<void(fw::testing::Sequences<M>&)>;

// `exact` is the rule in double. `change` may modify the sequence. The error limit is multiplied by
// `looser`.
template <class M, class Exact>
void check(
    const M& m, const Exact& exact, Index steps,
    const std::type_identity_t<Change<M>>& change = [](auto&) {}, double looser = 1) {
  for (const bool with_checkpoints : {true, false}) {
    Run<M> ours(m, steps);
    change(ours.all);
    // A read before the write has the token's key and value too.
    if constexpr (requires { ours.all.queries.value; }) {
      ours.all.queries.key = ours.all.inputs.key;
      ours.all.queries.value = ours.all.inputs.value;
    }
    ours.gradients = ours.all;  // nonzero, because gradients accumulate
    Run<Exact> truth = same_run(ours, exact);
    ours.forward_and_backward(m, with_checkpoints);
    truth.token_by_token(exact);
    INFO(M::name << " d_v " << ours.state.W.rows() << " d_k " << ours.state.W.cols() << " T "
                 << steps);
    const double limit = looser * 1e-14 * static_cast<double>(4 + steps / 8);
    fw::for_each_member(
        [&](auto, const auto& a, const auto& b) { CHECK(difference(a, b) <= limit); },
        ours.gradients.inputs, truth.gradients.inputs);
    fw::for_each_member(
        [&](auto, const auto& a, const auto& b) { CHECK(difference(a, b) <= limit); },
        ours.gradients.queries, truth.gradients.queries);
    CHECK(difference(ours.dstate.W, truth.dstate.W) <= limit);
    if constexpr (requires { ours.dstate.momentum; })
      CHECK(difference(ours.dstate.momentum, truth.dstate.momentum) <= limit);
    if constexpr (requires { ours.dstate.slow; })
      fw::for_each_member(
          [&](auto, const auto& a, const auto& b) { CHECK(difference(a, b) <= limit); },
          ours.dstate.slow, truth.dstate.slow);
  }
}

// Rules that are checked alike. A source has few of them, so that it compiles in little memory.
template <template <class> class... M> struct Rules {
  template <class F>
  static void check(fw::Sizes<> sizes, Index steps, const F& change, double looser = 1) {
    (gradients::check(M<double>(sizes), M<double>(sizes), steps, change, looser), ...);
  }
  static void check(fw::Sizes<> sizes, Index steps) {
    check(sizes, steps, [](auto&) {});
  }
};

// A plain rule by chunks in every size, also where pairs are faster.
template <class M> struct ByChunks : M {
  static constexpr bool plain_coefficients = false;
  using M::M;
};

}  // namespace gradients
