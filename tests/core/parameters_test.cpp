#include <fastweights/layers/parameters.hpp>

#include "support/catch.hpp"

namespace {

// Parameters and a setting.
struct Norm {
  Eigen::VectorXd weight, bias;
  double epsilon = 1e-5;
  static constexpr auto names = fw::names("weight", "bias", "epsilon");

  explicit Norm(Eigen::Index d)
      : weight(Eigen::VectorXd::Ones(d)), bias(Eigen::VectorXd::Zero(d)) {}
};

TEST_CASE("parameters: visited by name, counted, added, zeroed", "[core]") {
  Norm a(3), b(3);
  b.weight << 1, 2, 3;
  b.bias << 4, 5, 6;
  CHECK(fw::parameter_count(a) == 6);
  fw::add_parameters(a, b);
  CHECK(a.weight == Eigen::Vector3d(2, 3, 4));
  CHECK(a.bias == b.bias);
  CHECK(a.epsilon == 1e-5);
  fw::for_each_parameter([](const std::string& path, auto& p,
                            const auto& q) { p = path == "bias" ? (2 * q).eval() : q; },
                         a, b);
  CHECK(a.weight == b.weight);
  CHECK(a.bias == 2 * b.bias);
  fw::set_zero_parameters(a);
  CHECK((a.weight.isZero(0) && a.bias.isZero(0)));
  CHECK_THROWS_WITH(
      fw::add_parameters(a, Norm(4)),
      Catch::Matchers::ContainsSubstring("add_parameters: the parameters of from differ"));
}

}  // namespace
