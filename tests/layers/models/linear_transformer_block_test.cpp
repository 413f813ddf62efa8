#include <fastweights/layers/models/linear_transformer_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "layers/models/run_block.hpp"
#include "support/layer_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using layer_checks::Complex;
using layer_checks::random_matrix;
using models::run;

namespace {

template <template <class> class Rule, class F, template <class> class Norm = fw::IdentityLayer,
          class S = double>
auto block_of(Index d, Index heads, bool bias, bool causal = true) {
  using M = Rule<S>;
  return fw::LinearTransformerBlock<M, fw::Elementwise<F>, Norm>(
      fw::SummedHeads<M>(
          {.d_model = d, .heads = heads, .causal = causal, .bias = bias, .allow_unstable = true},
          M({.key_size = 3, .value_size = 4})),
      fw::FeedForward<S, fw::Elementwise<F>>(d, d + 2, bias));
}
template <class S> using SumOf = fw::LinearAttention<S>;
template <class S> using DeltaOf = fw::DeltaRule<S>;

}  // namespace

TEST_CASE("linear transformer block: gradients, streaming, refusals", "[layers]") {
  using layer_checks::check_layer;
  for (const Index d : {1, 7})
    for (const Index heads : {1, 3}) {
      const auto sum = block_of<SumOf, fw::Tanh>(d, heads, heads == 3);
      check_layer(sum, block_of<SumOf, fw::Tanh, fw::IdentityLayer, Complex>(d, heads, heads == 3),
                  {1, 6});
      check_layer(block_of<DeltaOf, fw::Sigmoid>(d, heads, false),
                  block_of<DeltaOf, fw::Sigmoid, fw::IdentityLayer, Complex>(d, heads, false),
                  {1, 6});
    }
  check_layer(block_of<SumOf, fw::Relu, fw::LayerNorm>(5, 2, false),
              block_of<SumOf, fw::Relu, fw::LayerNorm, Complex>(5, 2, false), {4});
  CHECK(layer_checks::parameter_names(block_of<DeltaOf, fw::Tanh>(5, 2, false)) ==
        "mixer.write.key.weight\nmixer.write.value.weight\nmixer.write.beta.weight\n"
        "mixer.read.query.weight\nmixer.output.weight\nffn.up.weight\nffn.down.weight\n");
}

TEST_CASE("linear transformer block, full: gradients and refusals", "[layers]") {
  fw::Random random(6);
  auto sum = block_of<SumOf, fw::Tanh>(5, 3, true, false);
  auto delta = block_of<DeltaOf, fw::Tanh>(5, 3, true, false);
  layer_checks::randomise(sum, random);
  layer_checks::randomise(delta, random);
  for (const Index steps : {1, 6}) {
    layer_checks::check_gradients(
        sum, block_of<SumOf, fw::Tanh, fw::IdentityLayer, Complex>(5, 3, true, false), steps);
    layer_checks::check_gradients(
        delta, block_of<DeltaOf, fw::Tanh, fw::IdentityLayer, Complex>(5, 3, true, false), steps);
  }
  layer_checks::check_refusals(sum);
  using Cache = fw::KeyValueCache<double>;
  CHECK_THROWS_WITH(fw::SummedHeads<Cache>({.d_model = 4, .causal = false},
                                           Cache({.key_size = 2}, {.capacity = 3})),
                    ContainsSubstring("SummedHeads: the full form of KeyValueCache was requested"));
}

TEST_CASE("linear transformer block, full: E + Σ Q Kᵀ V W_P, then + σ(E W_1) W_2", "[layers]") {
  fw::Random random(7);
  auto block = block_of<SumOf, fw::Tanh>(5, 3, false, false);
  layer_checks::randomise(block, random);
  const Eigen::MatrixXd x = random_matrix(5, 8, random);
  Eigen::MatrixXd E = x.transpose();  // tokens as rows
  const Eigen::MatrixXd start = E;
  for (Index m = 0; m < 3; ++m) {
    const Eigen::MatrixXd Q = start *
                              block.mixer.read.query.weight.middleRows(3 * m, 3).transpose(),
                          K = start * block.mixer.write.key.weight.middleRows(3 * m, 3).transpose(),
                          V = start *
                              block.mixer.write.value.weight.middleRows(4 * m, 4).transpose();
    E += Q * K.transpose() * V * block.mixer.output.weight.transpose();
  }
  E += (E * block.ffn.up.weight.transpose()).array().tanh().matrix() *
       block.ffn.down.weight.transpose();
  CHECK(layer_checks::relative_difference(run(block, x), E.transpose()) <= 1e-13);
}

TEST_CASE("identity layer: gradients, streaming, refusals", "[layers]") {
  layer_checks::check_layer(fw::IdentityLayer<double>(3), fw::IdentityLayer<Complex>(3), {1, 4});
}
