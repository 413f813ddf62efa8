#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/joined_attention.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>

#include "support/catch.hpp"
#include "support/hostile_states.hpp"

namespace {

using Eigen::MatrixXf;
using fw::Index;
using Paths = std::vector<std::string>;

using Cache = fw::KeyValueCache<float>;
using Relative = fw::RelativeAttention<float>;
using Compressive = fw::LongTermLayer<fw::CompressiveMemory<float>>;

constexpr Index d = 4;

// One state after 9 tokens, then calls with one token and with several.
template <class L> void refuses_hostile_states(L layer, const Paths& free_counters = {}) {
  INFO(L::name);
  fw::Random random(2);
  fw::initialise(layer, random);
  MatrixXf x(d, 9), y(d, 9);
  random.fill(x);
  auto state = layer.initial_state();
  typename L::Trace trace;
  layer.forward(state, x, y, trace);
  const auto use = [&](auto& s) {
    auto by_step = s, by_training = s;
    layer.forward(by_step, x.col(0), y.col(0), trace);
    layer.forward(by_training, x, y, trace, fw::Pass::train);
    layer.forward(s, x, y, trace);
  };
  hostile::try_counters(hostile::subject(layer, state, use), free_counters);
}

Cache cache() { return Cache({.key_size = 2}, {3, fw::WhenFull::slide}); }
fw::FastWeightLayer<Cache> cache_layer() { return {{.d_model = d, .heads = 2}, cache()}; }
Compressive compressive() {
  return {{.heads = 2}, fw::CompressiveMemory<float>({d, 1, 2, 3, 2}), {}};
}

auto sticky() {
  using Density = fw::MixtureDensity<float, fw::LearnedComponents<float>>;
  using M = fw::ContinuousMemory<float, Density, fw::GaussianBasis<float>, fw::StickySampling>;
  typename M::Options o;
  o.d = d;
  o.chunk = 2;
  o.samples = 5;
  o.regression.ridge = 1;
  const M m(o, {5, {0.1, 0.3}}, Density{fw::LearnedComponents<float>(5)});
  return fw::LongTermLayer<M, fw::ConvGate<float>>({.heads = 2}, m, fw::ConvGate<float>(d));
}

TEST_CASE("layers with one counter refuse states that no run of tokens gives", "[hostile]") {
  refuses_hostile_states(Relative({.d_model = d, .heads = 2, .window = 3}), {"length"});
  refuses_hostile_states(cache_layer(), {"heads.0.length", "heads.1.length"});
  refuses_hostile_states(fw::SummedHeads<Cache>({.d_model = d, .heads = 2}, cache()),
                         {"heads.0.length", "heads.1.length"});
}

TEST_CASE("a joined layer refuses counters that do not go together", "[hostile]") {
  using Joined = fw::JoinedAttention<Relative, Compressive>;
  const Joined joined(Relative({.d_model = d, .heads = 2, .window = 3}), compressive(), 3, 2);
  refuses_hostile_states(joined, {"seed"});
  using Other = fw::JoinedAttention<fw::FastWeightLayer<Cache>, decltype(sticky())>;
  refuses_hostile_states(Other(cache_layer(), sticky(), 3, 2),
                         {"short_term.heads.0.length", "short_term.heads.1.length", "seed"});

  auto state = joined.initial_state();
  Joined::Trace trace;
  MatrixXf x = MatrixXf::Zero(d, 1), y(d, 1);
  const auto subject =
      hostile::subject(joined, state, [&](auto& s) { joined.forward(s, x, y, trace); });
  const std::int64_t many = 1'000'000'000'000, written = many - 4;
  hostile::expect_refused(subject, {{"tokens", many}});
  hostile::expect_refused(subject, {{"tokens", many}, {"short_term.length", many}});
  hostile::expect_refused(
      subject, {{"tokens", many}, {"short_term.length", many}, {"long_term.tokens", written}});
  hostile::expect_refused(subject, {{"written", 2}, {"long_term.tokens", 2}});
  hostile::expect_refused(
      subject, {{"tokens", many}, {"short_term.length", many}, {"written", written + 1}});
  state.tokens = state.short_term.length = many;  // a state of many tokens goes on
  state.written = state.long_term.tokens = written;
  CHECK_NOTHROW(joined.forward(state, x, y, trace));
  CHECK(state.tokens == many + 1);
}

TEST_CASE("a layer with a full cache for one sequence changes none", "[hostile]") {
  fw::FastWeightLayer<Cache> layer({.d_model = d, .heads = 2},
                                   Cache({.key_size = 2}, {3, fw::WhenFull::refuse}));
  auto full = layer.initial_state(), state = layer.initial_state(2);
  fw::FastWeightLayer<Cache>::Trace trace;
  MatrixXf x = MatrixXf::Ones(d, 3), y = x;
  layer.forward(full, x, y, trace);
  state.heads[2] = full.heads[0];  // of the second sequence
  state.heads[3] = full.heads[1];
  CHECK_THROWS_AS(layer.forward(state, x.leftCols(2), y.leftCols(2), trace), std::length_error);
  CHECK(state.heads[0].length == 0);
  CHECK(state.heads[1].length == 0);
}

TEST_CASE("a model refuses the state of one block before it changes another", "[hostile]") {
  using Block =
      fw::PreNormBlock<fw::RmsNorm<float>, fw::FastWeightLayer<Cache>, fw::FeedForward<float>>;
  const Block block(cache_layer(), fw::FeedForward<float>(d, 8));
  refuses_hostile_states(block, {"mixer.heads.0.length", "mixer.heads.1.length"});
  fw::LanguageModel<Block> model(5, 2, block);
  fw::Random random(3);
  fw::initialise(model, random);
  auto state = model.initial_state();
  fw::LanguageModel<Block>::Trace trace;
  MatrixXf logits(5, 2);
  const std::vector<int> ids{1, 4};
  const auto subject =
      hostile::subject(model, state, [&](auto& s) { model.forward(s, ids, logits, trace); });
  hostile::expect_refused(subject, {{"blocks.1.mixer.heads.1.length", -1}});
}

}  // namespace
