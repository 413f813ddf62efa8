#include <fastweights/core/finite.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/affine_map.hpp"
#include "support/catch.hpp"

using fw::Index;

namespace {

template <class S> struct Holder {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> matrix;
  S number = S(0);
  Index count = 0;
  bool flag = false;
  static constexpr auto names = fw::names("matrix", "number", "count", "flag");
};

template <class S> Holder<S> holder(Index rows, Index cols) {
  Holder<S> h;
  h.matrix.setConstant(rows, cols, S(-0.0f));
  return h;
}

}  // namespace

TEMPLATE_TEST_CASE("all_finite: every entry and every number counts", "[finite]", float, double,
                   Eigen::half, Eigen::bfloat16, std::complex<double>) {
  using S = TestType;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Index n : {1, 3, 17, 63, 65}) {
    auto h = holder<S>(n, 3);
    CHECK(fw::all_finite(h));
    for (const float bad : {infinity, -infinity, std::nanf(""), -std::nanf("")})
      for (const Index at : {Index(0), n, 3 * n - 1}) {
        h.matrix(at) = S(bad);
        CHECK_FALSE(fw::all_finite(h));
        CHECK_FALSE(fw::all_finite(h.matrix));
        h.matrix(at) = S(1);
      }
    CHECK(fw::all_finite(h));
    h.number = S(infinity);
    CHECK_FALSE(fw::all_finite(h));
  }
}

TEST_CASE("all_finite: the largest and smallest numbers are finite; an imaginary NaN is not",
          "[finite]") {
  auto h = holder<float>(2, 2);
  h.matrix << std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
      std::numeric_limits<float>::denorm_min(), -0.0f;
  CHECK(fw::all_finite(h));
  auto z = holder<std::complex<double>>(3, 3);
  z.matrix(2, 1) = {0, std::numeric_limits<double>::quiet_NaN()};
  CHECK_FALSE(fw::all_finite(z));
}

TEST_CASE("all_finite: states, lists of states and models", "[finite]") {
  using Memory =
      fw::LinearAttention<float, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<float>>;
  const Memory memory({.key_size = 3});
  std::vector states(3, fw::initial_state(memory));
  CHECK(fw::all_finite(states[0]));
  CHECK(fw::all_finite(states));
  states[2].normaliser.compensation[1] = std::nanf("");
  CHECK_FALSE(fw::all_finite(states[2]));
  CHECK_FALSE(fw::all_finite(states));
  AffineMap<double> layer(3, 2);
  CHECK(fw::all_finite(layer));
  layer.bias[1] = std::numeric_limits<double>::infinity();
  CHECK_FALSE(fw::all_finite(layer));
}

TEST_CASE("first_outside: the position of the first number outside a range", "[finite]") {
  Eigen::MatrixXf m = Eigen::MatrixXf::Constant(5, 4, 0.5f);
  const auto found = [&](double low, double high) {
    return fw::detail::first_outside({m.data(), 3, 4, 5, fw::detail::ScalarKind::float32},
                                     {low, high});
  };
  m.row(3).setConstant(std::nanf(""));  // between the columns that are looked at
  CHECK(found(0, 1) == -1);
  CHECK(found(0.5, 0.5) == -1);
  m(2, 1) = -0.0f;
  CHECK(found(0, 1) == -1);
  m(1, 2) = 1.0000001f;
  CHECK(found(0, 1) == 1 + 2 * 3);
  m(0, 2) = -1e-45f;
  CHECK(found(0, 1) == 0 + 2 * 3);
  CHECK(found(-1e300, 1e300) == -1);
  m(2, 0) = std::nanf("");
  CHECK(found(-1e300, 1e300) == 2);
}
