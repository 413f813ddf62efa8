#include <fastweights/memories/attention/key_value_cache.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
using fw::WhenFull;
template <int Dk, int Dv> using Cache = fw::KeyValueCache<double, Dk, Dv>;

TEST_CASE("key-value cache larger than the sequence obeys the laws", "[laws][key_value_cache]") {
  laws::at_all_sizes([](Index dk, Index dv) {
    return Cache<Dynamic, Dynamic>({dk, dv}, {200, WhenFull::refuse});
  });
}

TEST_CASE("sliding key-value cache obeys the laws", "[laws][key_value_cache]") {
  for (const Index capacity : {1, 2, 5, 11, 64}) {
    INFO("capacity " << capacity);
    const Cache<Dynamic, Dynamic> m({.key_size = 3, .value_size = 4}, {capacity, WhenFull::slide});
    laws::all(m);
    laws::gradients_are_exact(m, 1, false);
    laws::gradients_are_exact(m, 17, false);
  }
  laws::gradients_are_exact(
      Cache<Dynamic, Dynamic>({.key_size = 3, .value_size = 2}, {70, WhenFull::slide}), 150, false);
}

TEST_CASE("key-value cache in fixed sizes", "[laws][key_value_cache]") {
  laws::all(Cache<17, 3>({7}));
  laws::fixed_is_dynamic(Cache<17, 3>({9}),
                         Cache<Dynamic, Dynamic>({.key_size = 17, .value_size = 3}, {9}), false);
}

TEST_CASE("key-value cache is softmax attention", "[key_value_cache]") {
  const Cache<Dynamic, Dynamic> m({.key_size = 2}, {300, WhenFull::slide, 0.7});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 290, random);  // a read takes more than two blocks
  auto s = fw::initial_state(m);
  laws::scan(m, s, all);
  const auto& k = all.inputs.key;
  for (const Index t : {0, 1, 127, 128, 289}) {
    Eigen::VectorXd p =
        (0.7 * (k.leftCols(t + 1).transpose() * all.queries.query.col(t))).array().exp();
    const Eigen::VectorXd y = all.inputs.value.leftCols(t + 1) * p / p.sum();
    CHECK(largest_entry(y - all.outputs.output.col(t)) <= 1e-14);
  }
  Eigen::Vector2d y;
  fw::read(m, s, {all.queries.query.col(289)}, {y});
  CHECK(largest_entry(y - all.outputs.output.col(289)) <= 1e-14);
}

TEST_CASE("softmax of huge scores does not overflow", "[key_value_cache]") {
  const fw::KeyValueCache<float, 1, 1> m({4, WhenFull::slide, 1.0f});
  auto s = fw::initial_state(m);
  const Eigen::Matrix<float, 1, 1> small{-1e4f}, large{1e4f}, v{7.0f}, w{3.0f};
  Eigen::Matrix<float, 1, 1> y;
  fw::write(m, s, {small, v});
  fw::step(m, s, {large, w}, {large}, {y});
  CHECK(y[0] == 3.0f);
}

TEST_CASE("a full cache with WhenFull::refuse throws and stays unchanged", "[key_value_cache]") {
  const Cache<Dynamic, Dynamic> m({.key_size = 3, .value_size = 2}, {5, WhenFull::refuse});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 4, random);
  auto s = fw::initial_state(m);
  laws::scan(m, s, all);
  const auto before = s;
  CHECK_THROWS_AS(laws::scan(m, s, all), std::length_error);
  CHECK(laws::difference(s, before) == 0);
  try {
    laws::scan(m, s, all);
  } catch (const std::length_error& e) {
    CHECK(std::string(e.what()) == "KeyValueCache: 4 tokens held, 4 more given, the capacity is 5");
  }
  Eigen::Vector3d k = Eigen::Vector3d::Ones();
  Eigen::Vector2d v = Eigen::Vector2d::Ones(), y;
  fw::step(m, s, {k, v}, {k}, {y});
  const auto full = s;
  CHECK_THROWS_AS(fw::step(m, s, {k, v}, {k}, {y}), std::length_error);
  CHECK(laws::difference(s, full) == 0);
}

TEST_CASE("an empty cache reads zero; a capacity of 0 throws", "[key_value_cache]") {
  const Cache<2, 2> m({3});
  const auto s = fw::initial_state(m);
  Eigen::Vector2d q(1, 2), y(5, 5);
  fw::read(m, s, {q}, {y});
  CHECK(y == Eigen::Vector2d::Zero());
  CHECK_THROWS_AS((Cache<2, 2>({0})), std::invalid_argument);
}

}  // namespace
