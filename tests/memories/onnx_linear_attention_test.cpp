#include <fastweights/math/random.hpp>
#include <fastweights/onnx/linear_attention.hpp>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

// The published cases are in tests/onnx; here are other shapes, against the equations in loops.
namespace {

using fw::Index;
namespace onnx = fw::onnx;

struct Shape {
  Index batch, steps, hq, hkv, dk, dv;
  Index decay_rows = 1;  // per head: 1 or dk
  bool shared_beta = false, has_past = true;
};

struct Call {
  onnx::LinearAttention op;
  std::vector<double> query, key, value, decay, beta, past, output, present;
  onnx::LinearAttentionTensors<double> tensors;

  Call(const Shape& s, std::string_view rule) {
    op = {.q_num_heads = s.hq, .kv_num_heads = s.hkv, .scale = 0.3, .update_rule = rule};
    fw::Random random(3);
    const auto fill = [&](std::vector<double>& x, Index size) {
      x.resize(static_cast<std::size_t>(size) + 1);  // data() of an empty vector may be null
      for (double& each : x) each = 0.5 * random.normal();
      return x.data();
    };
    const Index b = s.batch, t = s.steps, tokens = b * t;
    tensors.query = {fill(query, tokens * s.hq * s.dk), {b, t, s.hq * s.dk}};
    tensors.key = {fill(key, tokens * s.hkv * s.dk), {b, t, s.hkv * s.dk}};
    tensors.value = {fill(value, tokens * s.hkv * s.dv), {b, t, s.hkv * s.dv}};
    const std::array<Index, 4> state{b, s.hkv, s.dk, s.dv};
    if (s.has_past) tensors.past_state = {fill(past, b * s.hkv * s.dk * s.dv), state};
    if (rule.starts_with("gated")) {
      const Index rows = s.hkv * s.decay_rows;
      tensors.decay = {fill(decay, tokens * rows), {b, t, rows}};
      for (double& each : decay) each = -std::abs(each);
    }
    if (rule.ends_with("delta")) {
      const Index rows = s.shared_beta ? 1 : s.hkv;
      tensors.beta = {fill(beta, tokens * rows), {b, t, rows}};
    }
    output.assign(static_cast<std::size_t>(tokens * s.hq * s.dv) + 1, NAN);
    present.assign(static_cast<std::size_t>(b * s.hkv * s.dk * s.dv) + 1, NAN);
    tensors.output = {output.data(), {b, t, s.hq * s.dv}};
    tensors.present_state = {present.data(), state};
  }
  void run(bool parallel = false) { onnx::linear_attention(op, tensors, parallel); }
};

// The operator in loops over all entries.
void run_plainly(const Shape& s, Call& c) {
  const auto at = [](auto& x, Index i) -> auto& { return x[static_cast<std::size_t>(i)]; };
  const Index size = s.dk * s.dv;
  for (Index b = 0; b < s.batch; ++b)
    for (Index h = 0; h < s.hkv; ++h) {
      std::vector<double> S(static_cast<std::size_t>(size), 0);
      const Index place = (b * s.hkv + h) * size;
      for (Index i = 0; i < size && s.has_past; ++i) at(S, i) = at(c.past, place + i);
      for (Index t = b * s.steps; t < (b + 1) * s.steps; ++t) {
        const auto entry = [&](Index i, Index j) -> double& { return at(S, i * s.dv + j); };
        for (Index i = 0; i < s.dk && !c.decay.empty(); ++i)
          for (Index j = 0; j < s.dv; ++j)
            entry(i, j) *=
                std::exp(at(c.decay, (t * s.hkv + h) * s.decay_rows + (s.decay_rows == 1 ? 0 : i)));
        for (Index j = 0; j < s.dv; ++j) {
          double update = at(c.value, (t * s.hkv + h) * s.dv + j);
          if (!c.beta.empty()) {
            for (Index i = 0; i < s.dk; ++i)
              update -= entry(i, j) * at(c.key, (t * s.hkv + h) * s.dk + i);
            update *= at(c.beta, s.shared_beta ? t : t * s.hkv + h);
          }
          for (Index i = 0; i < s.dk; ++i)
            entry(i, j) += at(c.key, (t * s.hkv + h) * s.dk + i) * update;
        }
        const Index group = s.hq / s.hkv;
        for (Index q = h * group; q < (h + 1) * group; ++q)
          for (Index j = 0; j < s.dv; ++j) {
            double& y = at(c.output, (t * s.hq + q) * s.dv + j);
            y = 0;
            for (Index i = 0; i < s.dk; ++i)
              y += 0.3 * entry(i, j) * at(c.query, (t * s.hq + q) * s.dk + i);
          }
      }
      for (Index i = 0; i < size; ++i) at(c.present, place + i) = at(S, i);
    }
}

// The entry behind the last is still NaN.
void check_equal(const std::vector<double>& given, const std::vector<double>& expected) {
  REQUIRE(given.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i + 1 < given.size(); ++i) {
    const double error = std::abs(given[i] - expected[i]) / (1 + std::abs(expected[i]));
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  }
  CHECK(worst <= 1e-12);
  CHECK(std::isnan(given.back()));
}

constexpr std::string_view rules[] = {"linear", "gated", "delta", "gated_delta"};

TEST_CASE("ONNX LinearAttention: rules, groups, sizes", "[onnx]") {
  const Shape shapes[] = {
      {1, 1, 1, 1, 1, 1},
      {2, 5, 6, 2, 3, 17, 3},
      {3, 9, 4, 4, 17, 3, 1, true},
      {1, 7, 2, 1, 64, 65, 64},
      {2, 4, 3, 1, 8, 8, 8, true, false},
      {2, 0, 2, 2, 4, 5},
      {0, 3, 2, 2, 4, 5},
  };
  for (const Shape& s : shapes)
    for (const std::string_view rule : rules) {
      INFO(rule << " B " << s.batch << " T " << s.steps << " d_k " << s.dk << " d_v " << s.dv);
      Call given(s, rule), parallel(s, rule), expected(s, rule);
      given.run();
      parallel.run(true);
      run_plainly(s, expected);
      check_equal(given.output, expected.output);
      check_equal(given.present, expected.present);
      check_equal(parallel.output, expected.output);
    }
}

TEST_CASE("ONNX LinearAttention: the new state may replace the old one", "[onnx]") {
  const Shape s{2, 3, 4, 2, 5, 6};
  Call apart(s, "gated_delta"), in_place(s, "gated_delta");
  in_place.tensors.present_state.data = in_place.past.data();
  apart.run();
  in_place.run();
  apart.present.pop_back();
  in_place.past.pop_back();
  CHECK(apart.present == in_place.past);
}

// Runs a call with one change, which must fail with the message and leave the outputs.
template <class F> void check_error(std::string_view rule, const F& change, const char* message) {
  Call c({2, 3, 4, 2, 5, 6}, rule);
  change(c);
  CHECK_THROWS_WITH(c.run(), message);
  CHECK(std::isnan(c.output[0]));
  CHECK(std::isnan(c.present[0]));
}

TEST_CASE("ONNX LinearAttention: errors name the tensor or attribute", "[onnx]") {
  const auto check = [](const auto& change, const char* message) {
    check_error("gated_delta", change, message);
  };
  check([](Call& c) { c.op.update_rule = "rwkv"; },
        "onnx::LinearAttention: update_rule is rwkv, expected linear, gated, delta or gated_delta");
  check([](Call& c) { c.op.q_num_heads = 3; },
        "onnx::LinearAttention: q_num_heads is 3, expected a multiple of 2");
  check([](Call& c) { c.op.kv_num_heads = 0; },
        "onnx::LinearAttention: kv_num_heads is 0, expected at least 1");
  check([](Call& c) { c.tensors.key.shape[2] = 9; },
        "onnx::LinearAttention: key has shape [2, 3, 9], expected [2, 3, 10]");
  check([](Call& c) { c.tensors.decay.shape[2] = 3; },
        "onnx::LinearAttention: decay has shape [2, 3, 3], expected [2, 3, 2] or [2, 3, 10]");
  check([](Call& c) { c.tensors.beta = {}; },
        "onnx::LinearAttention: update_rule gated_delta needs beta");
  check([](Call& c) { c.tensors.past_state.shape[2] = 6; },
        "onnx::LinearAttention: past_state has shape [2, 2, 6, 6], expected [2, 2, 5, 6]");
  check([](Call& c) { c.tensors.beta.data = nullptr; }, "onnx::LinearAttention: beta is absent");
  check([](Call& c) { c.tensors.output.data = nullptr; },
        "onnx::LinearAttention: output is absent");
  check_error(
      "linear", [](Call& c) { c.tensors.beta = c.tensors.query; },
      "onnx::LinearAttention: update_rule linear takes no beta");
}

TEST_CASE("ONNX LinearAttention: sizes that no index holds are refused", "[onnx]") {
  constexpr Index most = std::numeric_limits<Index>::max(), big = Index(1) << 40;
  double number = 1;
  const auto refused = [&](Index batch, Index steps, Index hq, Index hkv, Index dk, Index dv,
                           const std::string& message) {
    onnx::LinearAttention op{.q_num_heads = hq, .kv_num_heads = hkv, .update_rule = "linear"};
    const onnx::LinearAttentionTensors<double> x{.query = {&number, {batch, steps, hq * dk}},
                                                 .key = {&number, {batch, steps, hkv * dk}},
                                                 .value = {&number, {batch, steps, hkv * dv}},
                                                 .output = {&number, {batch, steps, 0}}};
    CHECK_THROWS_WITH(onnx::linear_attention(op, x),
                      Catch::Matchers::ContainsSubstring("onnx::LinearAttention: " + message));
    CHECK(number == 1);
  };
  refused(big, big, 2, 1, 4, 4, "query has shape [1099511627776, 1099511627776, 8], more bytes");
  refused(1, Index(1) << 60, 2, 2, 4, 4, "query has shape [1, 1152921504606846976, 8], more bytes");
  refused(1, 1, 2, 1, 4, most / 8 + 1, "value has shape [1, 1, 1152921504606846976], more bytes");
  refused(0, 0, 4, 1, 4, Index(1) << 62, "d_v is 4611686018427387904, expected at most ");
}

TEST_CASE("ONNX LinearAttention: no tokens and no states are no work", "[onnx]") {
  for (const Index batch : {Index(0), Index(1) << 40, Index(1) << 62}) {
    onnx::LinearAttention op{.q_num_heads = 4, .kv_num_heads = 2, .update_rule = "linear"};
    const onnx::LinearAttentionTensors<double> x{.query = {nullptr, {batch, 0, 16}},
                                                 .key = {nullptr, {batch, 0, 8}},
                                                 .value = {nullptr, {batch, 0, 8}},
                                                 .output = {nullptr, {batch, 0, 16}}};
    CHECK_NOTHROW(onnx::linear_attention(op, x));
  }
  const Shape s{2, 0, 2, 2, 3, 4};  // a state is handed on, without tokens too
  Call call(s, "linear");
  call.run();
  for (std::size_t i = 0; i < 2 * 2 * 3 * 4; ++i) CHECK(call.present[i] == call.past[i]);
}

}  // namespace
