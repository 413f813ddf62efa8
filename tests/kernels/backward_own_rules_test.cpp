#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>

#include "kernels/gradients.hpp"

// Rules of users: scales other than 1, and several look-ups of which the first is before the decay.
namespace {

using fw::Dynamic;
using fw::Index;

/// The common part of the rules below: the state W and its sizes.
template <class S, template <int, int> class Inputs> class MatrixRule {
 public:
  using Scalar = S;
  using Signature = Inputs<Dynamic, Dynamic>;
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;

  explicit MatrixRule(fw::Sizes<> sizes) : signature_{{sizes.key_size, sizes.value_size}} {}
  Signature signature() const { return signature_; }
  State<fw::Extents> state_extents() const { return {{signature_.dv, signature_.dk}}; }

 protected:
  Signature signature_;
};

/// W ← W + β (v/2 − 0.7 W k) kᵀ, y = 0.3 W q.
template <class S> class ScaledRule : public MatrixRule<S, fw::KeyValueBeta> {
  using Base = MatrixRule<S, fw::KeyValueBeta>;

 public:
  using typename Base::OwnedState;
  static constexpr std::string_view name = "ScaledRule";
  static constexpr auto decay_kind = fw::DecayKind::none;
  static constexpr bool has_delta_term = true, kernel_backward = true;
  using Base::Base;
  template <class T> auto cast() const { return ScaledRule<T>(this->signature_.sizes()); }

  void write(OwnedState& s, const fw::WriteToken<ScaledRule>& t) const {
    const auto error = (S(0.5) * t.value - S(0.7) * (s.W * t.key)).eval();
    s.W += t.beta * error * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<ScaledRule>& t,
            fw::OutToken<ScaledRule> y) const {
    y.output = S(0.3) * (s.W * t.query);
  }
  void write_vjp(const OwnedState& s, const fw::WriteToken<ScaledRule>& t, OwnedState& ds,
                 fw::WriteGradToken<ScaledRule> dt) const {
    const auto error = (S(0.5) * t.value - S(0.7) * (s.W * t.key)).eval();
    const auto dupdate = (ds.W * t.key).eval();
    dt.beta += error.cwiseProduct(dupdate).sum();
    dt.value += S(0.5) * t.beta * dupdate;
    dt.key += t.beta * (ds.W.transpose() * error);
    const auto dlookup = (S(-0.7) * t.beta * dupdate).eval();
    dt.key += s.W.transpose() * dlookup;
    ds.W += dlookup * t.key.transpose();
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<ScaledRule>& t,
                const fw::OutGradToken<ScaledRule>& dy, OwnedState& ds,
                fw::ReadGradToken<ScaledRule> dt) const {
    dt.query += S(0.3) * (s.W.transpose() * dy.output);
    ds.W += S(0.3) * dy.output * t.query.transpose();
  }
  template <class StateLike>
  fw::TokenCoefficients<S> coefficients(StateLike&, const fw::WriteToken<ScaledRule>& t,
                                        const fw::ReadToken<ScaledRule>&) const {
    return {S(0.5), S(0.7), t.beta, S(0.3), S(1)};
  }
};

TEST_CASE("kernels: gradients of a rule with scales", "[kernels]") {
  for (const auto& [dk, dv] : {std::pair{4, 5}, {9, 17}, {57, 57}})
    for (const Index steps : {1, 7, 20}) {
      const fw::Sizes<> sizes{dk, dv};
      gradients::check(ScaledRule<double>(sizes), ScaledRule<double>(sizes), steps);
    }
}

/// Two delta rules per token. The first look-up is before the decay.
template <class S> class EarlyRule : public MatrixRule<S, fw::KeyValueBetaDecay> {
  using Base = MatrixRule<S, fw::KeyValueBetaDecay>;

 public:
  using typename Base::OwnedState;
  static constexpr std::string_view name = "EarlyRule";
  static constexpr auto decay_kind = fw::DecayKind::scalar;
  static constexpr bool has_delta_term = true, lookup_before_decay = true, kernel_backward = true;
  static constexpr Index corrections = 2;
  using Base::Base;
  template <class T> auto cast() const { return EarlyRule<T>(this->signature_.sizes()); }

  void write(OwnedState& s, const fw::WriteToken<EarlyRule>& t) const {
    for (const S decay : {t.decay, S(1)})
      fw::detail::correct<Dynamic>(s.W, t.key, t.value, t.beta, decay, t.key);
  }
  void read(const OwnedState& s, const fw::ReadToken<EarlyRule>& t,
            fw::OutToken<EarlyRule> y) const {
    y.output = s.W * t.query;
  }
  void write_vjp(const OwnedState& s, const fw::WriteToken<EarlyRule>& t, OwnedState& ds,
                 fw::WriteGradToken<EarlyRule> dt) const {
    OwnedState between = s;
    fw::detail::correct<Dynamic>(between.W, t.key, t.value, t.beta, t.decay, t.key);
    S unused(0);
    fw::detail::correct_vjp<Dynamic>(between.W, t.key, t.value, t.beta, S(1), t.key, ds.W, dt.key,
                                     dt.value, dt.beta, unused, dt.key);
    fw::detail::correct_vjp<Dynamic>(s.W, t.key, t.value, t.beta, t.decay, t.key, ds.W, dt.key,
                                     dt.value, dt.beta, dt.decay, dt.key);
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<EarlyRule>& t,
                const fw::OutGradToken<EarlyRule>& dy, OwnedState& ds,
                fw::ReadGradToken<EarlyRule> dt) const {
    dt.query += s.W.transpose() * dy.output;
    ds.W += dy.output * t.query.transpose();
  }
  template <class StateLike>
  void correction(StateLike&, const fw::WriteToken<EarlyRule>& t, const fw::ReadToken<EarlyRule>&,
                  Index j, S*, fw::Correction<S>& c) const {
    c.key = c.lookup = c.bonus_key = t.key.data();
    c.value = t.value.data();
    c.coefficients.beta = t.beta;
    if (j == 0) c.coefficients.decay = t.decay;
  }
  void correction_vjp(const OwnedState&, const fw::WriteToken<EarlyRule>&, Index,
                      const fw::detail::CorrectionGradient<S>& g, OwnedState&,
                      fw::WriteGradToken<EarlyRule>& dt) const {
    fw::detail::add_gradient(dt.key, g.key);
    fw::detail::add_gradient(dt.key, g.lookup);
    fw::detail::add_gradient(dt.value, g.value);
    fw::detail::add_strength_gradient(dt.beta, g);
  }
};

TEST_CASE("kernels: gradients of look-ups before and after a decay", "[kernels]") {
  for (const auto& [dk, dv] : {std::pair{4, 5}, {9, 16}})
    for (const Index steps : {1, 3, 20}) {
      const fw::Sizes<> sizes{dk, dv};
      gradients::check(EarlyRule<double>(sizes), EarlyRule<double>(sizes), steps);
    }
}

}  // namespace
