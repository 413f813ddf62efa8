#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

// The whole range of float: finite inputs with finite answers by steps have finite answers by every
// form. Outputs are proportional to values, and gradients to values and dy, so that the results for
// numbers times a power of two are known.
namespace {

using Eigen::MatrixXf;
using fw::Dynamic;
using fw::Index;
using OneDecay = fw::GatedLinearAttention<float, Dynamic, Dynamic, fw::KeyValueDecay>;
using PerKey = fw::GatedDeltaRule<float, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;

constexpr Index d = 24, steps = 300;
constexpr Index large = 64, large_per_key = 72;  // backward goes by chunks

template <class M, class Decay> auto sequences(const M& m, const Decay& decay) {
  fw::Random random(3);
  auto all = fw::testing::random_sequences(m, steps, random);
  if constexpr (requires { all.inputs.decay; })
    std::generate_n(all.inputs.decay.data(), all.inputs.decay.size(), decay);
  return all;
}

using Outputs = std::vector<std::pair<std::string, MatrixXf>>;

// The outputs of the steps and of every other form.
template <class M>
Outputs outputs(const M& m, fw::testing::Sequences<M> all, float scale, float of_queries = 1) {
  Outputs result;
  all.inputs.value *= scale;
  all.queries.query *= of_queries;
  const auto in = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  const auto run = [&](const char* form, const auto& memory, const auto& f) {
    auto state = fw::initial_state(memory);
    auto& y = result.emplace_back(form, MatrixXf::Constant(d, steps, NAN)).second;
    f(memory, state, fw::OutSequence<M>{y});
  };
  const auto step_all = [&](const auto& memory, auto& s, const fw::OutSequence<M>& out) {
    for (Index t = 0; t < steps; ++t)
      fw::step(memory, s, fw::detail::token_at<fw::WriteToken<M>>(in, m.signature().write(), t),
               fw::detail::token_at<fw::ReadToken<M>>(queries, m.signature().read(), t),
               fw::detail::token_at<fw::OutToken<M>>(out, m.signature().out(), t));
  };
  run("steps", m, step_all);
  run("scan", m, [&](auto&, auto& s, const auto& y) { fw::scan(m, s, in, queries, y); });
  run("parallel_scan", m,
      [&](auto&, auto& s, const auto& y) { fw::parallel_scan(m, s, in, queries, y, 5); });
  if constexpr (!std::is_same_v<M, PerKey>)
    run("chunked_scan", m,
        [&](auto&, auto& s, const auto& y) { fw::chunked_scan(m, s, in, queries, y); });
  run("deferred", fw::Deferred(m), step_all);
  return result;
}

// The largest error of a token, relative to the largest entry of this token, or to `least`.
template <class Expected>
double difference(const MatrixXf& y, const Expected& expected, double least = 1e-36) {
  double worst = 0;
  for (Index t = 0; t < y.cols(); ++t) {
    const auto exact = expected.col(t).template cast<double>();
    keep_worst(worst, largest_entry(y.col(t).cast<double>() - exact) /
                          std::max(least, largest_entry(exact)));
  }
  return worst;
}

template <class M> void check_values(const M& m, float decay) {
  const auto all = sequences(m, [=] { return decay; });
  const Outputs plain = outputs(m, all, 1);
  for (const int exponent : {-115, -105, 60, 100, 113, 120, 125}) {
    const Outputs scaled = outputs(m, all, std::ldexp(1.0f, exponent));
    for (std::size_t i = 0; i < plain.size(); ++i) {
      INFO(M::name << " " << plain[i].first << ", decay " << decay << ", values of 2^" << exponent);
      CHECK(
          difference(scaled[i].second, plain[i].second.cast<double>() * std::ldexp(1, exponent)) <=
          (exponent == -115 ? 1e-4 : 1e-6));
    }
  }
}

TEST_CASE("kernels: values near the largest and the smallest float", "[kernels]") {
  for (const float decay : {0.99f, 0.9f, 0.5f, 0.1f, -0.5f}) {
    check_values(fw::GatedDeltaRule<float>({.key_size = d}), decay);
    check_values(PerKey({.key_size = d}), decay);
    check_values(OneDecay({.key_size = d}), decay);
    check_values(fw::HebbianMemory<float>({.key_size = d}, {decay, 0.25f}), decay);
  }
}

template <class M> void check_queries(const M& m, float decay) {
  const auto all = sequences(m, [=] { return decay; });
  const Outputs plain = outputs(m, all, 1);
  for (const int exponent : {-60, 100, 115, 120, 124}) {
    const Outputs scaled = outputs(m, all, std::ldexp(1.0f, -20), std::ldexp(1.0f, exponent));
    for (std::size_t i = 0; i < plain.size(); ++i) {
      INFO(M::name << " " << plain[i].first << ", decay " << decay << ", queries of 2^"
                   << exponent);
      CHECK(difference(scaled[i].second,
                       plain[i].second.cast<double>() * std::ldexp(1, exponent - 20)) <= 1e-6);
    }
  }
}

TEST_CASE("kernels: queries near the largest float", "[kernels]") {
  for (const float decay : {0.99f, 0.9f, 0.5f, 0.1f, -0.5f}) {
    check_queries(fw::GatedDeltaRule<float>({.key_size = d}), decay);
    check_queries(PerKey({.key_size = d}), decay);
    check_queries(OneDecay({.key_size = d}), decay);
    check_queries(fw::HebbianMemory<float>({.key_size = d}, {decay, 0.25f}), decay);
  }
}

// Against the equations in long double, which has the range for products of such decays; no rule is
// compiled in it. Decays near 0 leave outputs of which the steps lose digits, too.
template <class M, class Decay> void check_decays(const Decay& decay) {
  using Matrix = Eigen::Matrix<long double, Dynamic, Dynamic>;
  const M m({.key_size = d});
  const auto all = sequences(m, decay);
  for (const float scale : {1e-30f, 1.0f, 1e36f}) {
    Matrix W = Matrix::Zero(d, d), y(d, steps);
    for (Index t = 0; t < steps; ++t) {
      const Matrix k = all.inputs.key.col(t).template cast<long double>();
      if constexpr (M::one_decay)
        W *= all.inputs.decay(0, t);
      else
        W *= all.inputs.decay.col(t).template cast<long double>().asDiagonal();
      const Matrix e = (scale * all.inputs.value.col(t)).template cast<long double>() - W * k;
      W += all.inputs.beta(0, t) * e * k.transpose();
      y.col(t) = W * all.queries.query.col(t).template cast<long double>();
    }
    const Outputs ours = outputs(m, all, scale);
    const double of_steps = difference(ours[0].second, y);
    CHECK(of_steps <= 1e-2);
    for (const auto& [form, output] : ours) {
      INFO(form << ", values of " << scale);
      CHECK(difference(output, y) <= 4e-6 + 8 * of_steps);
    }
  }
}

template <class M> void check_extreme_decays() {
  std::uint32_t seed = 1;
  const auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 16; };
  check_decays<M>([] { return 0.0f; });
  check_decays<M>([&] { return next() % 2 == 0 ? 0.0f : 1.0f; });
  check_decays<M>([&] { return next() % 3 == 0 ? 1e-30f : 1.0f; });
  check_decays<M>([&] { return next() % 3 == 0 ? 1e-45f : 0.5f; });
  check_decays<M>([&] { return next() % 2 == 0 ? -1.0f : 1.0f; });
  // The columns do not grow together if each has its own decays.
  const float growth = M::one_decay ? 1.5f : 1.1f;
  check_decays<M>([&] { return next() % 2 == 0 ? growth : 0.5f; });
}

TEST_CASE("kernels: decays of 0, near 0, negative and alternating", "[kernels]") {
  check_extreme_decays<fw::GatedDeltaRule<float>>();
  check_extreme_decays<PerKey>();
}

template <class M> auto gradients(const M& m, fw::testing::Sequences<M> all, int value, int dy) {
  fw::Checkpoints<M> checkpoints;
  auto state = fw::initial_state(m), dstate = fw::zero_gradient(m);
  auto result = all;
  fw::for_each_member([](auto, auto& x) { x.setZero(); }, result.inputs);
  result.queries.query.setZero();
  const MatrixXf doutput = std::ldexp(1.0f, dy) * all.inputs.value;
  all.inputs.value *= std::ldexp(1.0f, value);
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(result.outputs),
           checkpoints);
  fw::backward(m, checkpoints, fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries), {doutput}, dstate,
               fw::view<fw::WriteGradSequence<M>>(result.inputs),
               fw::view<fw::ReadGradSequence<M>>(result.queries));
  return result;
}

template <class M> void check_gradients(const M& m, float decay) {
  const auto all = sequences(m, [=] { return decay; });
  const auto plain = gradients(m, all, 0, 0);
  for (const auto& [value, dy] : {std::pair{118, -10}, {-10, 118}, {-100, 0}, {0, -100}}) {
    const auto scaled = gradients(m, all, value, dy);
    INFO(M::name << ", decay " << decay << ", values of 2^" << value << ", dy of 2^" << dy);
    const auto compare = [exponent = value + dy](auto member, const auto& a, const auto& b) {
      INFO(member);
      const auto expected = (std::ldexp(1, exponent) * b.template cast<double>()).eval();
      CHECK(largest_entry(a.template cast<double>() - expected) / largest_entry(expected) <= 1e-6);
    };
    fw::for_each_member(
        [&](auto member, const auto& a, const auto& b) {
          if (member != "value") compare(member, a, b);
        },
        scaled.inputs, plain.inputs);
    compare("query", scaled.queries.query, plain.queries.query);
    compare("value", scaled.inputs.value, (std::ldexp(1.0f, -value) * plain.inputs.value).eval());
  }
}

TEST_CASE("kernels: gradients of large values, and large gradients", "[kernels]") {
  for (const float decay : {0.9f, 0.5f, 0.1f})
    for (const Index size : {d, large}) {
      check_gradients(fw::HebbianMemory<float>({.key_size = size}, {decay, 0.5f}), decay);
      check_gradients(OneDecay({.key_size = size}), decay);
      check_gradients(fw::GatedDeltaRule<float>({.key_size = size}), decay);
      check_gradients(PerKey({.key_size = size == large ? large_per_key : size}), decay);
    }
}

}  // namespace
