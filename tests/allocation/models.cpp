#include <fastweights/any_memory/table.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <span>

#include "checks.hpp"

namespace {

// A language model does not allocate after its first token.
template <class Map = fw::IdentityMap>
void check_model(const std::string& memory, const std::map<std::string, double>& options = {},
                 const Map& map = {}) {
  using namespace fw::networks;
  const auto rule = fw::make_memory<float>(memory, {.key_size = 16, .more = options});
  Network<float> model =
      fw::language_model<float>({.symbols = 63, .width = 32, .layers = 2}, [&](const auto& in) {
        const auto x =
            in + fast_weights(rms_norm(in, "norm1", {}), "mixer", rule, {.heads = 2}, map);
        return x + feed_forward(layer_norm(x, "norm2", {.bias = true}), "ffn");
      });
  fw::Random random(1);
  fw::initialise(model, random);
  auto state = model.initial_state();
  Network<float>::Trace trace;
  Eigen::MatrixXf logits(63, 1);
  const auto read = [&](int symbol) { model.step(state, symbol, logits, trace); };
  read(0);
  const Usage streaming = usage_of([&] {
    for (Index t = 0; t < pass_count * sequence_length; ++t) read(static_cast<int>(t % 63));
  });
  report("a language model around " + memory, streaming, {});
}

}  // namespace

void check_models() {
  check_model("DeltaRule", {}, fw::L2Normalise());
  check_model("GatedDeltaRule", {}, fw::L2Normalise());
  check_model("KeyValueCache", {{"capacity", 100}, {"slide", 1}});
  check_model("DeltaRnn", {}, fw::SumNormalised<fw::EluPlusOne>());
  check_model("RecurrentDeltaNet");
}
