#include <fastweights/layers/attention/strided_conv.hpp>

#include "networks/long_term_checks.hpp"

namespace {

using namespace long_term;

TEST_CASE("long-term attention behind an affine gate", "[networks]") { check(Kind::affine_gate); }
TEST_CASE("long-term attention with a compressive memory", "[networks]") {
  check(Kind::compressive);
  check(Kind::pooling);
}

TEST_CASE("a long-term memory starts as its gate and projections do", "[networks]") {
  Builder<double> builder;
  Net network = builder.build(joined(Kind::compressive)(builder.input(d)));
  fw::Random random(3);
  fw::initialise(network, random);
  auto gate = fw::StridedConv<double>(d, 2);
  gate.initialise(random);
  CHECK(weight(network, "long_term.gate.weight") == gate.weight);
  CHECK(weight(network, "long_term.gate.bias").isZero(0));
  const Matrix<double>& key = weight(network, "long_term.key.weight");
  CHECK(key.cwiseAbs().maxCoeff() <= 0.5);  // 1/√4
  CHECK(key.cwiseAbs().maxCoeff() > 0.25);
}

TEST_CASE("long-term attention refuses windows and chunks that do not fit", "[networks]") {
  Builder<double> builder;
  const auto x = builder.input(d);
  const auto attend = [&](const LongTermWindow& when) {
    return [=] { return long_term::attend(Kind::affine_gate, x, x, "long", when); };
  };
  CHECK_THROWS_WITH(attend({0, chunk})(), "long: window is 0, expected at least 1");
  CHECK_THROWS_WITH(attend({1, 0})(), "long: chunk is 0, expected at least 1");
  CHECK_THROWS_WITH(attend({1, 3})(), ContainsSubstring("AffineGate: x has 3 columns"));
}

}  // namespace
