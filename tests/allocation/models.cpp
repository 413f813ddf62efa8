#include <fastweights/fastweights.hpp>
#include <span>

#include "checks.hpp"

namespace {

// A language model does not allocate after its first token.
template <class M, class Map> void check_model(const M& m) {
  using Block =
      fw::PreNormBlock<fw::LayerNorm<float>, fw::FastWeightLayer<M, Map>, fw::FeedForward<float>>;
  const Index width = 32;
  fw::LanguageModel<Block> model(
      63, 2,
      Block(fw::FastWeightLayer<M, Map>({.d_model = width, .heads = 2}, m),
            fw::FeedForward<float>(width, 4 * width)));
  fw::Random random(1);
  fw::initialise(model, random);
  auto state = model.initial_state();
  typename fw::LanguageModel<Block>::Trace trace;
  Eigen::MatrixXf logits(63, 1);
  const auto read = [&](int symbol) { model.forward(state, std::span(&symbol, 1), logits, trace); };
  read(0);
  const Usage streaming = usage_of([&] {
    for (Index t = 0; t < pass_count * sequence_length; ++t) read(static_cast<int>(t % 63));
  });
  report("LanguageModel around " + std::string(M::name), streaming, {});
}

}  // namespace

void check_models() {
  check_model<fw::DeltaRule<float>, fw::L2Normalise>(fw::DeltaRule<float>({.key_size = 16}));
  check_model<fw::GatedDeltaRule<float>, fw::L2Normalise>(
      fw::GatedDeltaRule<float>({.key_size = 16}));
  check_model<fw::KeyValueCache<float>, fw::IdentityMap>(
      fw::KeyValueCache<float>({.key_size = 16}, {100, fw::WhenFull::slide}));
  check_model<fw::DeltaRnn<float>, fw::SumNormalised<fw::EluPlusOne>>(
      fw::DeltaRnn<float>({.key_size = 16}));
  check_model<fw::RecurrentDeltaNet<float>, fw::IdentityMap>(
      fw::RecurrentDeltaNet<float>({.key_size = 16}));
}
