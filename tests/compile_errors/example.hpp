#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

/// Valid arguments and a valid rule, shared by the programs of these folders.

inline fw::DeltaRule<float> delta({.key_size = 3, .value_size = 4});
inline auto state = fw::initial_state(delta);
inline Eigen::VectorXf key(3), value(4), query(3), output(4);
inline float beta = 0.5f;

/// A complete rule. Derived rules make a member private to remove it.
template <class S = float> struct Rule {
  using Scalar = S;
  using Signature = fw::KeyValue<3, 4>;
  template <class C> struct State {
    fw::mat<C, 4, 3> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;
  static constexpr std::string_view name = "Rule";
  Signature signature() const { return {}; }
  State<fw::Extents> state_extents() const { return {{4, 3}}; }
  void write(OwnedState&, const fw::WriteToken<Rule>&) const {}
  void read(const OwnedState&, const fw::ReadToken<Rule>&, fw::OutToken<Rule>) const {}
};
