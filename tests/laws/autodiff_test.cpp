#include <complex>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>
#include <fastweights/testing/gradient_check.hpp>
#include <unsupported/Eigen/AutoDiff>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Memories of a scalar of the user's, Eigen's AutoDiffScalar, and with an activation of the
/// user's.

namespace {

using fw::Dynamic;
using fw::Index;
using AutoDiff = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
using Complex = std::complex<double>;

struct Cube {  // a user's own activation
  template <class S> S value(const S& x) const { return x * x * x; }
  template <class S> S derivative(const S& x) const { return S(3) * x * x; }
};
using Programmer = fw::Programmer1991<double, Dynamic, Dynamic, Cube>;

// The outputs of random tokens, of which one entry of a key is `varied`.
template <class M> auto outputs_of(const M& m, typename M::Scalar varied) {
  fw::Random random(9);
  auto all = fw::testing::random_sequences(m, 6, random);
  all.inputs.key(0, 1) = varied;
  auto state = fw::initial_state(m);
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs));
  return all.outputs.output;
}

// The generic code runs on AutoDiffScalar. Its derivative equals the complex step's.
template <class M> void takes_autodiff(const M& m) {
  const auto a = outputs_of(m.template cast<AutoDiff>(), AutoDiff(0.3, 1, 0));
  const auto z = outputs_of(m.template cast<Complex>(), Complex(0.3, 1e-30));
  const double largest = largest_entry(z.imag() / 1e-30);
  CHECK(largest > 0.1);
  for (Index i = 0; i < a.size(); ++i) {
    const double slope = a(i).derivatives().size() ? a(i).derivatives()[0] : 0;
    CHECK(std::abs(a(i).value() - z(i).real()) <= 1e-12);
    CHECK(std::abs(slope - z(i).imag() / 1e-30) <= 1e-11 * std::max(1.0, largest));
  }
}

TEST_CASE("rules take automatic differentiation", "[laws][autodiff]") {
  takes_autodiff(fw::DeltaRule<double>({4, 3}));
  takes_autodiff(Programmer({4, 3}));
}

TEST_CASE("the programmer of 1991 works with any elementwise activation", "[programmer1991]") {
  const auto error = fw::testing::gradient_error(Programmer({4, 3}), 4, 8);
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

}  // namespace
