// The rule of docs/adding_a_rule.md, sections 1 to 4.
#pragma once

#include <fastweights/core/memory.hpp>
#include <fastweights/core/signatures.hpp>

/// Forgets as much as it writes: W_t = (1 − β_t) W_{t−1} + β_t v_t k_tᵀ, y = W q.
template <class S> struct GatedRule {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;
  static constexpr std::string_view name = "GatedRule";

  template <class C> struct State {
    fw::mat<C, fw::Dynamic, fw::Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;

  fw::Index dk, dv;
  Signature signature() const { return {{.dk = dk, .dv = dv}}; }
  State<fw::Extents> state_extents() const { return {{dv, dk}}; }
  template <class T> GatedRule<T> cast() const { return {dk, dv}; }

  void write(OwnedState& s, const fw::WriteToken<GatedRule>& t) const {
    s.W *= S(1) - t.beta;
    s.W.noalias() += (t.beta * t.value) * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<GatedRule>& t,
            fw::OutToken<GatedRule> y) const {
    y.output.noalias() = s.W * t.query;
  }
  void write_vjp(const OwnedState& s, const fw::WriteToken<GatedRule>& t, OwnedState& ds,
                 fw::WriteGradToken<GatedRule> d) const {
    d.value.noalias() += t.beta * (ds.W * t.key);
    d.key.noalias() += t.beta * (ds.W.transpose() * t.value);
    d.beta += ds.W.cwiseProduct(t.value * t.key.transpose() - s.W).sum();
    ds.W *= S(1) - t.beta;
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<GatedRule>& t,
                const fw::OutGradToken<GatedRule>& dy, OwnedState& ds,
                fw::ReadGradToken<GatedRule> d) const {
    ds.W.noalias() += dy.output * t.query.transpose();
    d.query.noalias() += s.W.transpose() * dy.output;
  }
};
static_assert(fw::assert_memory<GatedRule<float>>());
