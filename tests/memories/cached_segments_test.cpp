#include <algorithm>
#include <array>
#include <cmath>
#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reductions.hpp"

/// \file
/// Memories that keep their state of every segment, and read all of them.

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::random_outputs;

struct Kept {
  MatrixXd W;
  VectorXd mean;
};

// What the delta rule over segments answers to token t, from all tokens up to it.
VectorXd answer(const fw::testing::AnySequences<double>& all, Index t, Index segment,
                Index capacity, bool restart) {
  const MatrixXd &K = all.inputs["key"], &V = all.inputs["value"], &B = all.inputs["beta"],
                 &P = all.inputs["pooled"];
  std::vector<Kept> kept;
  MatrixXd W = MatrixXd::Zero(V.rows(), K.rows());
  for (Index first = 0; first <= t; first += segment) {
    const Index tokens = std::min(segment, t + 1 - first);
    if (restart) W.setZero();
    for (Index i = first; i < first + tokens; ++i)
      W += B(0, i) * (V.col(i) - W * K.col(i)) * K.col(i).transpose();
    kept.push_back({W, P.middleCols(first, tokens).rowwise().mean()});
  }
  VectorXd y = VectorXd::Zero(V.rows());
  double total = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (Index(i) + capacity + 1 < Index(kept.size())) continue;  // the open one is not counted
    const double weight = std::exp(kept[i].mean.dot(all.queries["segment_query"].col(t)));
    y += weight * kept[i].W * all.queries["query"].col(t);
    total += weight;
  }
  return y / total;
}

fw::MemoryOptions options(Index dk, Index dv, double pooled, double segment, double capacity,
                          bool restart) {
  return {dk,
          dv,
          {{"pooled_size", pooled},
           {"segment", segment},
           {"capacity", capacity},
           {"restart", restart ? 1.0 : 0.0}}};
}

TEST_CASE("cached segments are read by a softmax over their means", "[cached_segments]") {
  constexpr Index steps = 25;
  for (const auto& [dk, dv, dp] : {std::array<Index, 3>{1, 3, 1}, {3, 1, 17}, {17, 3, 2}})
    for (const Index segment : {1, 3, 8, 25})
      for (const Index capacity : {1, 4, 30})
        for (const bool restart : {false, true}) {
          CAPTURE(dk, dv, dp, segment, capacity, restart);
          const auto m = make_memory<double>(
              "CachedDeltaRule",
              options(dk, dv, double(dp), double(segment), double(capacity), restart));
          const auto all = random_outputs(m, steps, 6);
          for (Index t = 0; t < steps; ++t)
            CHECK(largest_entry(answer(all, t, segment, capacity, restart) -
                                all.outputs["output"].col(t)) <= 1e-13);
        }
}

TEST_CASE("a segment that does not end is the memory itself", "[cached_segments]") {
  const auto all = random_outputs(
      make_memory<double>("CachedGatedDeltaRule", options(4, 5, 2, 20, 3, true)), 20, 3);
  const auto& in = all.inputs;
  const MatrixXd y =
      laws::outputs_of(make_memory<double>("GatedDeltaRule", {4, 5}),
                       {in["key"], in["value"], in["beta"], in["decay"]}, {all.queries["query"]});
  CHECK(largest_entry(y - all.outputs["output"]) <= 1e-14);
}

TEST_CASE("a sum over segments that are weighed alike is the sum over all tokens",
          "[cached_segments]") {
  constexpr Index steps = 17, segment = 4;
  using Sum = fw::LinearAttention<double>;
  const fw::AnyMemory<double> m =
      fw::CachedSegments(Sum({3, 2}), 2, {.segment = segment, .capacity = 9});
  auto all = random_outputs(m, steps, 3);
  all.queries["segment_query"].setZero();
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  const MatrixXd y = laws::outputs_of(Sum({3, 2}), {all.inputs["key"], all.inputs["value"]},
                                      {all.queries["query"]});
  for (Index t = 0; t < steps; ++t)
    CHECK(largest_entry(y.col(t) / double(t / segment + 1) - all.outputs["output"].col(t)) <=
          1e-14);
}

TEST_CASE("every segment starts from the first state, or from the last", "[cached_segments]") {
  for (const bool restart : {false, true}) {
    const auto m = make_memory<double>("CachedDeltaRule", options(2, 3, 1, 2, 3, restart));
    auto state = m.initial_state();
    const MatrixXd first = MatrixXd::Constant(3, 2, 0.5);
    leaf(state, "memory.W") = first;
    VectorXd y(3), key = VectorXd::Zero(2), value = VectorXd::Ones(3);
    m.read(state, {VectorXd(VectorXd::Ones(2)), 7.0}, {y});
    CHECK(y == VectorXd::Ones(3));  // before any token
    VectorXd unit = VectorXd::Unit(2, 0);
    m.write(state, {unit, value, 1.0, 0.0});
    m.write(state, {key, value, 1.0, 0.0});
    const MatrixXd last = leaf(state, "memory.W");
    CHECK(last != first);
    m.write(state, {key, value, 1.0, 0.0});  // writes nothing
    CHECK(leaf(state, "memory.W") == (restart ? first : last));
    CHECK(leaf(state, "segments").leftCols(2) == last);
  }
}

TEST_CASE("cached segments that refuse are full after one segment more than they keep",
          "[cached_segments]") {
  auto full = options(2, 2, 1, 3, 2, true);
  full.more["refuse"] = 1;
  const auto m = make_memory<float>("CachedDeltaRule", full);
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 10, random, false);
  auto state = m.initial_state();
  const auto before = state;
  CHECK_THROWS_AS(fw::testing::scan(m, state, all), std::length_error);
  CHECK(state == before);
  for (Index t = 0; t < 9; ++t) m.write(state, all.inputs.part(t, 1));
  const auto held = state;
  CHECK_THROWS_WITH(m.write(state, all.inputs.part(9, 1)),
                    "Cached DeltaRule: 9 tokens written, 1 more given, the capacity is 2 segments "
                    "of 3 and an open one");
  CHECK(state == held);
}

TEST_CASE("cached segments of a wrong size are refused", "[cached_segments]") {
  using Delta = fw::DeltaRule<double>;
  using Cached = fw::CachedSegments<Delta>;
  const Delta rule({.key_size = 4});
  const auto error = [&](Index pooled, const fw::SegmentOptions& o) {
    return error_of<std::invalid_argument>([&] { Cached(rule, pooled, o); });
  };
  CHECK(error(0, {}) == "Cached DeltaRule: the size of pooled is 0, expected at least 1");
  CHECK(error(1, {.segment = 0}) == "Cached DeltaRule: segment is 0, expected at least 1");
  CHECK(error(1, {.capacity = 0}) == "Cached DeltaRule: capacity is 0, expected at least 1");
  CHECK(error(1, {.when_full = fw::WhenFull::grow}) ==
        "Cached DeltaRule: when_full is grow, expected slide or refuse");
  CHECK(error(1, {.capacity = fw::max_count}).find("expected at most") != std::string::npos);
  const auto m = make_memory<double>("CachedDeltaRule", options(4, 3, 2, 8, 2, true));
  auto state = m.initial_state();
  const VectorXd three = VectorXd::Ones(3), four = VectorXd::Ones(4);
  CHECK_THROWS_WITH(m.write(state, {four, three, 1.0, three}),
                    "Cached DeltaRule: pooled has 3 rows, the memory expects 2");
}

}  // namespace
