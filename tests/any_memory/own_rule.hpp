#pragma once

#include <fastweights/algorithms/step.hpp>

/// A user's own rule, as docs/adding_a_rule.md has it: W ← (1 − β) W + β v kᵀ. It is in no table.
template <class S> struct OwnRule {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;
  static constexpr std::string_view name = "OwnRule";
  template <class C> struct State {
    fw::mat<C, fw::Dynamic, fw::Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;

  fw::Index dk = 3, dv = 2;
  Signature signature() const { return {{.dk = dk, .dv = dv}}; }
  State<fw::Extents> state_extents() const { return {{dv, dk}}; }
  template <class T> OwnRule<T> cast() const { return {dk, dv}; }

  void write(OwnedState& s, const fw::WriteToken<OwnRule>& t) const {
    s.W *= S(1) - t.beta;
    s.W.noalias() += (t.beta * t.value) * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<OwnRule>& t, fw::OutToken<OwnRule> y) const {
    y.output.noalias() = s.W * t.query;
  }
};
