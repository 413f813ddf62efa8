#include <fastweights/algorithms/scan.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/testing/gradient_check.hpp>

#include "kernels/compare.hpp"

/// \file
/// The rule of docs/adding_a_rule.md with the kernels, as that page's section 6 says.

namespace {

template <class S> struct GatedRule {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;
  static constexpr std::string_view name = "GatedRule";
  static constexpr auto decay_kind = fw::DecayKind::scalar;
  static constexpr bool has_delta_term = false;

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

  template <class AnyState>
  fw::TokenCoefficients<S> coefficients(AnyState&, const fw::WriteToken<GatedRule>& t,
                                        const fw::ReadToken<GatedRule>&) const {
    return {.beta = t.beta, .decay = S(1) - t.beta};
  }
  void step(OwnedState& s, const fw::WriteToken<GatedRule>& t,
            const fw::ReadToken<GatedRule>& query,
            fw::OutToken<GatedRule> out) const requires fw::KernelScalar<S> {
    fw::step_by_kernel(*this, s, t, query, out);
  }
  void scan(OwnedState& s, const fw::WriteSequence<GatedRule>& inputs,
            const fw::ReadSequence<GatedRule>& queries,
            fw::OutSequence<GatedRule> out) const requires fw::KernelScalar<S> {
    fw::scan_by_kernel(*this, s, inputs, queries, out);
  }
};

TEST_CASE("kernels: a rule of one's own", "[kernels]") {
  static_assert(fw::assert_memory<GatedRule<float>>() && fw::CustomScan<GatedRule<float>>);
  for (const Index d : {1, 3, 17, 64, 65}) check(GatedRule<double>{d, d}, 9);
  check(fw::Deferred(GatedRule<double>{.dk = 5, .dv = 17}), 20);
  CHECK(fw::testing::gradient_error(GatedRule<double>{.dk = 4, .dv = 5}, 20).worst <= 1e-12);
}

}  // namespace
