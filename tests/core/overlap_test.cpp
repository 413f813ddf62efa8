// Views that share memory (core/overlap.hpp), against a comparison of every address.

#include <fastweights/algorithms/checked.hpp>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/overlap.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <set>

#include "support/catch.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using fw::detail::overlap;
using fw::detail::Region;

struct View {
  std::intptr_t begin, length, columns, stride;
  Region region() const { return {{}, {}, begin, length, columns, stride}; }
  std::set<std::intptr_t> bytes() const {
    std::set<std::intptr_t> all;
    for (std::intptr_t j = 0; j < columns; ++j)
      for (std::intptr_t i = 0; i < length; ++i) all.insert(begin + j * stride + i);
    return all;
  }
};

bool share_a_byte(const View& a, const View& b) {
  const auto x = a.bytes(), y = b.bytes();
  return std::any_of(x.begin(), x.end(), [&](std::intptr_t byte) { return y.count(byte) > 0; });
}

std::vector<View> views() {
  std::vector<View> all;
  for (const std::intptr_t begin : {0, 1, 3, 7, 10})
    for (const std::intptr_t length : {0, 1, 2, 5})
      for (const std::intptr_t columns : {0, 1, 2, 4})
        for (const std::intptr_t stride : {-5, -2, 0, 2, 5, 6, 9})
          all.push_back({begin, length, columns, stride});
  return all;
}

TEST_CASE("two views overlap if and only if they have an address in common", "[overlap]") {
  const auto all = views();
  int wrong = 0, shared = 0;
  for (const View& a : all)
    for (const View& b : all) {
      const bool expected = share_a_byte(a, b);
      shared += expected;
      wrong += overlap(a.region(), b.region()) != expected;
    }
  CHECK(wrong == 0);
  CHECK(shared > 1000);
}

TEST_CASE("stacked heads and alternating columns of one matrix have no entry in common",
          "[overlap]") {
  MatrixXd stacked(12, 10);
  const auto region = [](auto&& block) {
    return fw::detail::region_of({}, fw::SequenceView<const double, fw::Dynamic>(block));
  };
  CHECK_FALSE(overlap(region(stacked.middleRows(0, 4)), region(stacked.middleRows(4, 4))));
  CHECK(overlap(region(stacked.middleRows(0, 4)), region(stacked.middleRows(3, 4))));
  CHECK_FALSE(overlap(region(stacked.leftCols(5)), region(stacked.rightCols(5))));
  CHECK(overlap(region(stacked.leftCols(6)), region(stacked.rightCols(5))));
  using Every = Eigen::Map<MatrixXd, 0, Eigen::OuterStride<>>;
  Every even(stacked.data(), 12, 5, Eigen::OuterStride<>(24));
  Every odd(stacked.data() + 12, 12, 5, Eigen::OuterStride<>(24));
  Every third(stacked.data(), 12, 3, Eigen::OuterStride<>(36));
  CHECK_FALSE(overlap(region(even), region(odd)));
  CHECK(overlap(region(third), region(odd)));
}

// Calls that read what they overwrite, and a read that does not.
TEST_CASE("a checked call refuses a view of the state by name", "[overlap]") {
  using Catch::Matchers::ContainsSubstring;
  const fw::DeltaRule<double> m({.key_size = 3});
  const Eigen::VectorXd x = Eigen::VectorXd::Ones(3);
  Eigen::VectorXd y(3);
  auto s = fw::initial_state(m);
  s.W = MatrixXd::Identity(3, 3);
  const MatrixXd before = s.W;
  CHECK_THROWS_WITH(fw::checked_write(m, s, {s.W.col(0), x, 0.5}),
                    ContainsSubstring("DeltaRule: the state's W overlaps key in memory"));
  CHECK_THROWS_WITH(fw::checked_write(m, s, {x, x, s.W(1, 1)}),
                    ContainsSubstring("DeltaRule: the state's W overlaps beta in memory"));
  CHECK_THROWS_WITH(fw::checked_step(m, s, {x, x, 0.5}, {x}, {s.W.col(2)}),
                    ContainsSubstring("DeltaRule: output overlaps the state's W in memory"));
  CHECK(s.W == before);
  fw::read(m, s, {s.W.col(1)}, {y});
  CHECK(y == before.col(1));
}

template <class M> void merges_with_itself(const M& m, const fw::WriteToken<M>& token) {
  INFO(M::name);
  auto g = m.empty_segment();
  m.extend(g, token);
  m.extend(g, token);
  auto s = fw::initial_state(m), expected = s;
  for (int i = 0; i < 4; ++i) m.write(expected, token);
  m.merge(g, g);
  m.apply(g, s);
  fw::for_each_leaf(
      [](const auto& a, const auto& b) { CHECK((a - b).cwiseAbs().maxCoeff() <= 1e-14); }, s,
      expected);
}

TEST_CASE("a segment that is merged with itself has its writes twice", "[overlap]") {
  const Eigen::Vector3d k(0.6, -0.2, 0.7), v(1, 2, -3), decay(0.5, 0.9, 0.7);
  merges_with_itself(fw::DeltaRule<double>({.key_size = 3}), {k, v, 0.5});
  merges_with_itself(fw::LinearAttention<double>({.key_size = 3}), {k, v});
  using Normalised =
      fw::LinearAttention<double, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<double>>;
  merges_with_itself(Normalised({.key_size = 3}), {k, v});
  merges_with_itself(fw::GatedLinearAttention<double>({.key_size = 3}), {k, v, decay});
  merges_with_itself(fw::HebbianMemory<double>({.key_size = 3}, {.decay = 0.5}), {k, v});
  merges_with_itself(fw::Hgrn<double>(3), {v, decay});
}

}  // namespace
