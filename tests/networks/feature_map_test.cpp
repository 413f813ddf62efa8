#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/normalise.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

// For 1, 3 and 17 rows a head.
template <class Map> void check(const Map& map) {
  INFO(Map::name);
  for (const Index d : {1, 3, 17})
    for (const Index heads : {1, 3})
      check_operation(heads * d, [&](const auto& x) { return feature_map(x, map, heads); });
}

TEST_CASE("feature maps: gradients and streaming", "[networks]") {
  check(fw::EluPlusOne());
  check(fw::Dpfp<1>());
  check(fw::L2Normalise());
  for (const Index d : {1, 3, 17}) {
    const fw::FavorPlus<double> map(d, 4, 1);
    check_operation(
        2 * d, [&](const auto& x) { return feature_map(x, map.cast<ScalarOf<decltype(x)>>(), 2); });
  }
}

TEST_CASE("a feature map of heads is that of each head", "[networks]") {
  fw::Random random(4);
  const Matrix<double> x = random_matrix(6, 5, random);
  const fw::Dpfp<2> map;
  const Matrix<double> y = value_of([&](const auto& v) { return feature_map(v, map, 2); }, x);
  for (Index h = 0; h < 2; ++h) {
    Matrix<double> expected(12, 5);
    fw::apply(map, x.middleRows(3 * h, 3), expected);
    CHECK(y.middleRows(12 * h, 12) == expected);
  }
}

TEST_CASE("feature maps of sizes that do not fit are refused", "[networks]") {
  const auto refused = [](Index rows, Index heads) {
    CHECK_THROWS_AS(
        network_of(rows, [&](const auto& x) { return feature_map(x, fw::Dpfp<2>(), heads); }),
        std::invalid_argument);
  };
  refused(6, 0);
  refused(6, 4);
  refused(6, 6);  // Dpfp<2> takes 2 rows or more
}

TEST_CASE("a delta rule whose keys nothing bounds is refused in a network", "[networks]") {
  Builder<double> builder;
  const X x = builder.input(4);
  const fw::DeltaRule<double> rule({.key_size = 4});
  CHECK_THROWS_WITH(module("mixer", x,
                           [&](const auto& v) {
                             check_stable_keys(v, rule, fw::EluPlusOne(), 4);
                             return v;
                           }),
                    ContainsSubstring("mixer: DeltaRule is unstable with keys of EluPlusOne"));
  check_stable_keys(x, rule, fw::L2Normalise(), 4);
}

}  // namespace
