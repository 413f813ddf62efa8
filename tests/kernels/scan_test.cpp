#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/compare.hpp"

namespace {

template <class S> void check_rules(Index dk, Index dv, Index steps) {
  using Normaliser = fw::AttentionNormaliser<S>;
  check(fw::LinearAttention<S>({dk, dv}), steps);
  check(fw::LinearAttention<S, fw::Dynamic, fw::Dynamic, Normaliser>({dk, dv}), steps);
  check(fw::DeltaRule<S>({dk, dv}), steps);
  check(fw::DeltaRule<S, fw::Dynamic, fw::Dynamic, Normaliser>({dk, dv}), steps);
  check(fw::DeltaRule<S, fw::Dynamic, fw::Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>(
            {dk, dv}),
        steps);
  using fw::Dynamic;
  check(fw::GatedLinearAttention<S>({dk, dv}), steps);
  check(fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>({dk, dv}), steps);
  check(fw::GatedDeltaRule<S>({dk, dv}), steps);
  check(fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>({dk, dv}), steps);
  for (const S decay : {S(0.97), S(0.5), S(1e-8), S(0), S(-0.3), S(1.5)})
    check(fw::HebbianMemory<S>({dk, dv}, {decay, S(0.7)}), steps);
}

std::vector<Index> sizes() {
  std::vector<Index> all{100, 127, 128, 129, 200, 256};
  for (Index d = 1; d <= 70; ++d) all.push_back(d);
  return all;
}

TEST_CASE("kernels: square memories of every size", "[kernels]") {
  for (const Index d : sizes()) check_rules<double>(d, d, 7);
}

TEST_CASE("kernels: d_v differs from d_k", "[kernels]") {
  for (const Index dv : {1, 7, 8, 17, 33, 65})
    for (const Index dk : {1, 2, 3, 16, 129}) check_rules<double>(dk, dv, 5);
}

TEST_CASE("kernels: sequences of every length", "[kernels]") {
  for (const Index steps : {1, 2, 3, 4, 63, 64, 65, 66, 127, 128, 129, 200})
    check_rules<double>(19, 6, steps);
}

TEST_CASE("kernels: sizes fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<double, 64, 64>(), 9);
  check(fw::DeltaRule<double, 3, 17>(), 9);
  check(fw::DeltaRule<double, 5, 1>(), 9);
  check(fw::LinearAttention<double, 1, 5>(), 9);
}

// A user's own signatures, equal to KeyValueBeta and KeyValueDecay.
template <int Dk, int Dv> struct OwnBeta : fw::KeyValueBeta<Dk, Dv> {};
template <int Dk, int Dv> struct OwnDecay : fw::KeyValueDecay<Dk, Dv> {};

TEST_CASE("kernels: depend on the members of tokens, not on the signature's type", "[kernels]") {
  using fw::Dynamic;
  check(fw::DeltaRule<double, Dynamic, Dynamic, fw::NoNormaliser, OwnBeta>(
            {.key_size = 4, .value_size = 9}),
        7);
  check(fw::GatedLinearAttention<double, Dynamic, Dynamic, OwnDecay>(
            {.key_size = 4, .value_size = 9}),
        7);
}

// One of several heads: the column stride is larger than the number of rows.
TEST_CASE("kernels: access only the rows of their head", "[kernels]") {
  using M = fw::DeltaRule<double>;
  const M m({.key_size = 3, .value_size = 5});
  Run<M> alone(m, 11);
  fw::scan(m, alone.state, alone.in(), alone.queries(), alone.out());
  const auto among = [](const auto& part) {
    Eigen::MatrixXd whole = Eigen::MatrixXd::Constant(part.rows() + 4, part.cols(), NAN);
    whole.middleRows(2, part.rows()) = part;
    return whole;
  };
  Run<M> start(m, 11);
  const Eigen::MatrixXd key = among(start.all.inputs.key), value = among(start.all.inputs.value),
                        query = among(start.all.queries.query);
  Eigen::MatrixXd output = Eigen::MatrixXd::Constant(9, 11, -1);
  fw::scan(m, start.state, {key.middleRows(2, 3), value.middleRows(2, 5), start.all.inputs.beta},
           {query.middleRows(2, 3)}, {output.middleRows(2, 5)});
  CHECK(output.middleRows(2, 5) == alone.all.outputs.output);
  CHECK((output.topRows(2).array() == -1).all());
  CHECK((output.bottomRows(2).array() == -1).all());
}

// The pairs, and the two pairs of a pass, are the same after a cut at a multiple of 4 tokens.
template <class M> void cuts_keep_bits(const M& m) {
  constexpr Index steps = 70;
  Run<M> whole(m, steps);
  fw::scan(m, whole.state, whole.in(), whole.queries(), whole.out());
  for (Index cut = 0; cut <= steps; ++cut) {
    Run<M> parts(m, steps);
    const auto scan = [&](Index first, Index count) {
      fw::scan(m, parts.state, fw::detail::steps(parts.in(), m.signature().write(), first, count),
               fw::detail::steps(parts.queries(), m.signature().read(), first, count),
               fw::detail::steps(parts.out(), m.signature().out(), first, count));
    };
    scan(0, cut);
    scan(cut, steps - cut);
    INFO(M::name << " cut at " << cut);
    CHECK(difference(parts.all.outputs.output, whole.all.outputs.output) <= 1e-12);
    if (cut % 4 != 0 || cut + 1 == steps) continue;
    CHECK(parts.all.outputs.output == whole.all.outputs.output);
    CHECK(parts.state.W == whole.state.W);
  }
}

TEST_CASE("kernels: a scan without decay has the same bits when cut at multiples of 4 tokens",
          "[kernels]") {
  using Normaliser = fw::AttentionNormaliser<double>;
  for (const Index d : {3, 19, 64}) {
    const fw::Sizes<fw::Dynamic, fw::Dynamic> sizes{.key_size = d, .value_size = d};
    cuts_keep_bits(fw::DeltaRule<double>(sizes));
    cuts_keep_bits(fw::LinearAttention<double>(sizes));
    cuts_keep_bits(fw::LinearAttention<double, fw::Dynamic, fw::Dynamic, Normaliser>(sizes));
  }
}

template <class M> double float_error(Index d) {
  const M m({.key_size = d});
  const auto wide = m.template cast<double>();
  Run<M> narrow(m, 300);
  fw::scan(m, narrow.state, narrow.in(), narrow.queries(), narrow.out());
  Run<std::remove_const_t<decltype(wide)>> exact(wide, 300);
  fw::scan(wide, exact.state, exact.in(), exact.queries(), exact.out());
  return difference(narrow.all.outputs.output.template cast<double>(), exact.all.outputs.output);
}

TEST_CASE("kernels: float against double", "[kernels]") {
  for (const Index d : {1, 17, 64, 100}) {
    INFO("d " << d);
    CHECK(float_error<fw::DeltaRule<float>>(d) <= 2e-5);
    CHECK(float_error<fw::LinearAttention<float>>(d) <= 2e-5);
    CHECK(float_error<fw::HebbianMemory<float>>(d) <= 2e-5);
  }
}

}  // namespace
