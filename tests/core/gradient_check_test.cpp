#include <cmath>
#include <fastweights/math/activations.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <limits>

#include "support/catch.hpp"

namespace {

using fw::Dynamic;
using fw::Index;

// A rule with a matrix and a number in its state: W += v kᵀ, gain += β, y = gain · W q. `Mistake`
// is the error in its gradients.
enum class Mistake { none, factor, gain, not_a_number, overflow, assigned };

template <class S, Mistake mistake> struct Gained {
  using Scalar = S;
  using Signature = fw::KeyValueBeta<Dynamic, Dynamic>;
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    fw::num<C> gain;
    static constexpr auto names = fw::names("W", "gain");
  };
  using OwnedState = State<fw::Owned<S>>;
  static constexpr std::string_view name = "Gained";

  Signature signature() const { return {{.dk = 2, .dv = 3}}; }
  State<fw::Extents> state_extents() const { return {{3, 2}, {1, 1}}; }
  template <class T> auto cast() const { return Gained<T, mistake>(); }

  void write(OwnedState& s, const fw::WriteToken<Gained>& t) const {
    s.W.noalias() += t.value * t.key.transpose();
    s.gain += t.beta;
    if (mistake == Mistake::overflow) s.W *= S(1e200);
  }
  void read(const OwnedState& s, const fw::ReadToken<Gained>& t, fw::OutToken<Gained> y) const {
    y.output.noalias() = s.gain * (s.W * t.query);
  }
  void write_vjp(const OwnedState&, const fw::WriteToken<Gained>& t, OwnedState& ds,
                 fw::WriteGradToken<Gained> dt) const {
    const S factor = mistake == Mistake::factor         ? S(1.0000001)
                     : mistake == Mistake::not_a_number ? S(std::nan(""))
                                                        : S(1);
    dt.value.noalias() += factor * (ds.W * t.key);
    dt.key.noalias() += ds.W.transpose() * t.value;
    dt.beta = (mistake == Mistake::assigned ? S(0) : dt.beta) + ds.gain;
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<Gained>& t,
                const fw::OutGradToken<Gained>& dy, OwnedState& ds,
                fw::ReadGradToken<Gained> dt) const {
    ds.W.noalias() += s.gain * dy.output * t.query.transpose();
    dt.query.noalias() += s.gain * (s.W.transpose() * dy.output);
    if (mistake != Mistake::gain) ds.gain += dy.output.cwiseProduct(s.W * t.query).sum();
  }
};

template <Mistake mistake> fw::testing::GradientError error() {
  return fw::testing::gradient_error(Gained<double, mistake>(), 5);
}

TEST_CASE("the gradient check covers all members of a state, including numbers",
          "[gradient_check]") {
  CHECK(error<Mistake::none>().worst < 1e-14);
  CHECK(error<Mistake::gain>().worst > 0.01);
}

TEST_CASE("the gradient check detects errors and names the member", "[gradient_check]") {
  CHECK(error<Mistake::factor>().worst > 1e-8);
  CHECK(error<Mistake::factor>().where == "inputs.value");
  CHECK(error<Mistake::assigned>().worst > 0.4);
  CHECK(error<Mistake::assigned>().where == "inputs.beta");
  CHECK(error<Mistake::not_a_number>().worst == std::numeric_limits<double>::infinity());
  CHECK(error<Mistake::overflow>().worst == std::numeric_limits<double>::infinity());
}

TEST_CASE("NaN stays NaN through every activation", "[activations]") {
  const double nan = std::nan("");
  CHECK(std::isnan(fw::Identity().value(nan)));
  CHECK(std::isnan(fw::Tanh().value(nan)));
  CHECK(std::isnan(fw::Sigmoid().value(nan)));
  CHECK(std::isnan(fw::Relu().value(nan)));
}

}  // namespace
