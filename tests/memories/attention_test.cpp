#include <fastweights/testing/any_gradient_check.hpp>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reductions.hpp"

/// \file
/// Attention to tokens that are kept: to the last ones, and to means of several.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::outputs_of;
using laws::random_outputs;

const RowVectorXd zeros = RowVectorXd::Zero(20), ones = RowVectorXd::Ones(20);

TEST_CASE("without its gates, every attention is softmax attention", "[token_attention]") {
  const fw::MemoryOptions options{4, 5, {{"capacity", 7}}};
  const fw::MemoryOptions window{4, 5, {{"capacity", 7}, {"slide", 1}}};
  const auto all = random_outputs(make_memory<double>("KeyValueCache", window), 20, 3);
  const MatrixXd &key = all.inputs["key"], &value = all.inputs["value"];
  const auto apart = [&](const char* name, std::vector<MatrixXd> inputs) {
    return output_difference(all, make_memory<double>(name, options), std::move(inputs));
  };
  CHECK(apart("ForgettingAttention", {key, value, ones}) <= 1e-14);
  CHECK(apart("DeltaFormer", {key, value, zeros, key}) <= 1e-14);
  CHECK(apart("PathAttention", {key, value, key, zeros, ones}) <= 1e-14);
  const MatrixXd none = MatrixXd::Zero(all.queries["query"].rows(), 20);
  CHECK(largest_entry(outputs_of(make_memory<double>("Parallax", options), {key, value},
                                 {all.queries["query"], none}) -
                      all.outputs["output"]) <= 1e-14);
}

TEST_CASE("PaTH attention that reflects nothing is forgetting attention", "[path_attention]") {
  const fw::MemoryOptions options{4, 5, {{"capacity", 7}, {"scale", 1}}};
  const auto all = random_outputs(make_memory<double>("ForgettingAttention", options), 20, 3);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("PathAttention", options),
                          {in["key"], in["value"], in["key"], zeros, in["decay"]}) <= 1e-14);
}

TEST_CASE("an attention memory of no tokens answers 0", "[token_attention][key_value_cache]") {
  for (const char* const name : {"KeyValueCache", "ForgettingAttention", "PathAttention",
                                 "DeltaFormer", "StickBreakingAttention"}) {
    INFO(name);
    const auto m = make_memory<double>(name, {4, 5, {{"capacity", 7}}});
    const auto state = m.initial_state();
    VectorXd query = VectorXd::Ones(4), output = VectorXd::Ones(5);
    m.read(state, {query}, {output});
    CHECK(output.isZero(0));
  }
}

// What the newer tokens left, times the sigmoid of the score.
TEST_CASE("stick-breaking attention gives the newest tokens their share first",
          "[stick_breaking]") {
  constexpr Index d = 3, steps = 20, capacity = 7;
  const fw::MemoryOptions options{d, 2, {{"capacity", capacity}, {"scale", 0.7}}};
  for (const bool strict : {false, true}) {
    const auto m = make_memory<double>(
        strict ? "StrictStickBreakingAttention" : "StickBreakingAttention", options);
    const auto all = random_outputs(m, steps, 4);
    const MatrixXd &K = all.inputs["key"], &V = all.inputs["value"], &Q = all.queries["query"];
    for (Index t = 0; t < steps; ++t) {
      const Index last = strict ? t - 1 : t;
      VectorXd y = VectorXd::Zero(2);
      double left = 1;
      for (Index i = last; i >= 0 && i > last - capacity; --i) {
        const double share = left / (1 + std::exp(-0.7 * K.col(i).dot(Q.col(t))));
        y += share * V.col(i);
        left -= share;
      }
      CHECK(largest_entry(y - all.outputs["output"].col(t)) <= 1e-14);
    }
  }
}

// Every token takes e^-12 of the rest; a float would subtract it from 1 with an error of 1 in 200.
TEST_CASE("stick-breaking attention keeps small shares of many tokens", "[stick_breaking]") {
  constexpr int tokens = 200000;
  const auto m = make_memory<float>("StickBreakingAttention", {1, 1, {{"capacity", tokens}}});
  auto state = m.initial_state();
  float y = NAN;
  m.write(state, {-12.F, 1e5F});
  for (int t = 1; t < tokens; ++t) m.write(state, {-12.F, 0.F});
  m.read(state, {1.F}, {y});
  const double share = 1 / (1 + std::exp(12.0));
  CHECK(std::abs(y / (1e5 * share * std::pow(1 - share, tokens - 1)) - 1) <= 1e-6);
}

TEST_CASE("stick-breaking attention with huge scores is finite", "[stick_breaking]") {
  const auto m = make_memory<float>("StickBreakingAttention", {1, 1, {{"capacity", 3}}});
  auto state = m.initial_state();
  float y = NAN, dkey = 0, dvalue = 0, dquery = 0;
  m.write(state, {1e30F, 5.F});
  m.write(state, {1e30F, 7.F});
  m.read(state, {1e8F}, {y});
  CHECK(y == 7);
  m.read(state, {-1e8F}, {y});
  CHECK(std::abs(y) <= 1e-30F);
  auto ds = m.zero_gradient();
  m.backward(state, {1e30F, 3.F}, {1e8F}, {1.F}, ds, {dkey, dvalue}, {dquery});
  CHECK((std::isfinite(dkey) && dvalue == 1 && std::isfinite(dquery)));
  CHECK((leaf(ds, "history.keys").allFinite() && leaf(ds, "history.values").isZero(1e-30F)));
}

TEST_CASE("key-value cache is softmax attention", "[key_value_cache]") {
  const auto m = make_memory<double>("KeyValueCache", {2, 2, {{"capacity", 300}, {"scale", 0.7}}});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 290, random);  // a read takes more than two blocks
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  const MatrixXd &K = all.inputs["key"], &V = all.inputs["value"], &Q = all.queries["query"];
  for (const Index t : {0, 1, 127, 128, 289}) {
    const VectorXd p = (0.7 * (K.leftCols(t + 1).transpose() * Q.col(t))).array().exp();
    const VectorXd y = V.leftCols(t + 1) * p / p.sum();
    CHECK(largest_entry(y - all.outputs["output"].col(t)) <= 1e-14);
  }
  VectorXd y(2);
  m.read(state, {Q.col(289)}, {y});
  CHECK(largest_entry(y - all.outputs["output"].col(289)) <= 1e-14);
}

TEST_CASE("gradients of a key-value cache are exact over more tokens than it holds",
          "[laws][gradients][key_value_cache]") {
  for (const double slide : {0, 1}) {
    const fw::MemoryOptions options{3, 2, {{"capacity", 70}, {"slide", slide}}};
    const auto m = make_memory<double>("KeyValueCache", options);
    const auto error = fw::testing::gradient_error(
        m, make_memory<std::complex<double>>("KeyValueCache", options), m.initial_state(), 150, 8);
    INFO("worst in " << error.where << ", slide " << slide);
    CHECK(error.worst <= 1e-10);
  }
}

fw::AnyMemory<double> cache_of(double capacity) {
  return make_memory<double>("KeyValueCache", {4, 3, {{"capacity", capacity}}});
}

// Scans, chunks and steps, all from the state after five tokens.
TEST_CASE("a cache that grows gives what one with room gives", "[key_value_cache]") {
  const auto roomy = cache_of(200);
  const auto first = random_outputs(roomy, 5, 1), all = random_outputs(roomy, 150, 2);
  const auto run = [&](const fw::AnyMemory<double>& m, const auto& call) {
    auto some = first, rest = all;
    auto state = m.initial_state();
    fw::testing::scan(m, state, some);
    call(m, state, rest);
    return std::pair(rest.outputs["output"], state);
  };
  const auto scan = [](auto& m, auto& state, auto& rest) { fw::testing::scan(m, state, rest); };
  const auto chunks = [](auto& m, auto& state, auto& rest) {
    m.chunked_scan(state, rest.inputs.views(), rest.queries.views(),
                   rest.outputs.template views<double>(), 64);
  };
  const auto steps = [](auto& m, auto& state, auto& rest) {
    for (Index t = 0; t < 150; ++t)
      m.step(state, rest.inputs.part(t, 1), rest.queries.part(t, 1),
             rest.outputs.template part<double>(t, 1));
  };
  const auto expected = run(roomy, scan);
  for (const double capacity : {1, 3, 64, 154}) {
    INFO("first room " << capacity);
    const auto m = cache_of(capacity);
    const auto scanned = run(m, scan);
    CHECK(scanned.first == expected.first);
    CHECK(run(m, steps) == scanned);
    const auto chunked = run(m, chunks);
    CHECK(chunked.second == scanned.second);
    CHECK(largest_entry(chunked.first - expected.first) <= 1e-14);
    const auto length = leaf(scanned.second, "keys").cols();
    CHECK((length >= 155 && length < 2 * 155));
  }
}

TEST_CASE("a copy of a state stays when the state grows", "[key_value_cache]") {
  const auto m = cache_of(2);
  auto state = m.initial_state();
  auto first = random_outputs(m, 2, 1), next = random_outputs(m, 9, 2), again = next;
  fw::testing::scan(m, state, first);
  const auto before = state;
  fw::testing::scan(m, state, next);
  CHECK(leaf(before, "keys").cols() == 2);
  state = before;
  fw::testing::scan(m, state, again);
  CHECK(again.outputs["output"] == next.outputs["output"]);
  // In another scalar with its room, too.
  const auto in_complex =
      make_memory<std::complex<double>>("KeyValueCache", {4, 3, {{"capacity", 2}}});
  const auto other = in_complex.state_from(state);
  CHECK(leaf(m.state_from(state), "keys").cols() == 16);
  CHECK_NOTHROW(in_complex.check_state(other));
}

TEST_CASE("a cache does not slide and refuse", "[key_value_cache]") {
  CHECK_THROWS_WITH(make_memory<double>("KeyValueCache", {4, 3, {{"slide", 1}, {"refuse", 1}}}),
                    "KeyValueCache: refuse and slide are 1, expected at most one of them");
}

TEST_CASE("softmax of huge scores does not overflow", "[key_value_cache]") {
  const auto m = make_memory<float>("KeyValueCache", {1, 1, {{"capacity", 4}, {"scale", 1}}});
  auto state = m.initial_state();
  float y = NAN;
  m.write(state, {-1e4f, 7.0f});
  m.step(state, {1e4f, 3.0f}, {1e4f}, {y});
  CHECK(y == 3.0f);
}

TEST_CASE("a full cache that refuses throws and stays unchanged", "[key_value_cache]") {
  const auto m = make_memory<double>("KeyValueCache", {3, 2, {{"capacity", 5}, {"refuse", 1}}});
  auto all = random_outputs(m, 4, 1);
  auto state = m.initial_state();
  fw::testing::scan(m, state, all);
  const auto before = state;
  CHECK(error_of<std::length_error>([&] { fw::testing::scan(m, state, all); }) ==
        "KeyValueCache: 4 tokens held, 4 more given, the capacity is 5");
  CHECK(state == before);
  const VectorXd k = VectorXd::Ones(3), v = VectorXd::Ones(2);
  VectorXd y(2);
  m.step(state, {k, v}, {k}, {y});
  const auto full = state;
  CHECK_THROWS_AS(m.step(state, {k, v}, {k}, {y}), std::length_error);
  CHECK(state == full);
}

fw::AnyMemory<double> compressive(Index d, double heads, double capacity, double rate) {
  return make_memory<double>("CompressiveMemory",
                             {d, d, {{"heads", heads}, {"capacity", capacity}, {"rate", rate}}});
}

TEST_CASE("a slot is the mean of its tokens, and reads attend to the last slots", "[compressive]") {
  constexpr Index d = 4, heads = 2, capacity = 3, rate = 2, tokens = 11;
  const auto m = compressive(d, heads, capacity, rate);
  fw::Random random(1);
  MatrixXd x(d, tokens), q(d, 1), y(d, 1);
  random.fill(x);
  random.fill(q);
  auto state = m.initial_state();
  for (Index t = 0; t < tokens; ++t) {
    m.write(state, {x.col(t)});
    m.read(state, {q}, {y});
    const Index written = (t + 1) / rate, first = std::max<Index>(0, written - capacity);
    MatrixXd expected = MatrixXd::Zero(d, 1);
    for (Index h = 0; h < d; h += d / heads) {
      double total = 0;
      for (Index i = first; i < written; ++i) {
        const VectorXd slot = x.middleCols(i * rate, rate).rowwise().mean().segment(h, d / heads);
        const double p = std::exp(slot.dot(q.col(0).segment(h, d / heads)) / std::sqrt(2.0));
        expected.col(0).segment(h, d / heads) += p * slot;
        total += p;
      }
      if (total > 0) expected.col(0).segment(h, d / heads) /= total;
    }
    INFO("token " << t);
    CHECK(largest_entry(y - expected) <= 1e-14);
  }
}

TEST_CASE("slots do not depend on how tokens are split into chunks", "[compressive]") {
  const auto m = compressive(3, 1, 4, 3);
  fw::Random random(2);
  MatrixXd x(3, 40);
  random.fill(x);
  auto whole = m.initial_state();
  m.write(whole, {x});
  CHECK(laws::counter(whole.object(), "tokens") == 40);
  for (const Index piece : {1, 2, 3, 5, 7, 39}) {
    auto state = m.initial_state();
    for (Index t = 0; t < 40; t += piece)
      m.write(state, {x.middleCols(t, std::min(piece, 40 - t))});
    INFO("pieces of " << piece);
    CHECK(state == whole);
  }
}

TEST_CASE("an empty compressive memory returns 0 and has no gradient", "[compressive]") {
  const auto m = compressive(2, 1, 3, 4);
  fw::Random random(3);
  MatrixXd q(2, 3), y = MatrixXd::Constant(2, 3, NAN), dq = MatrixXd::Zero(2, 3), dx = dq;
  random.fill(q);
  auto state = m.initial_state(), ds = m.zero_gradient();
  m.backward(state, {q}, {q}, {q}, ds, {dx}, {dq});
  m.write(state, {q});  // does not fill a slot
  m.read(state, {q}, {y});
  CHECK(y.isZero(0));
  CHECK(dq.isZero(0));
  CHECK(dx.isZero(0));
  CHECK(ds == m.zero_gradient());
}

TEST_CASE("compressive memory: d must be a multiple of heads", "[compressive]") {
  CHECK_THROWS_WITH(compressive(4, 3, 1, 1),
                    "CompressiveMemory: d is 4, expected a multiple of heads, 3");
}

}  // namespace
