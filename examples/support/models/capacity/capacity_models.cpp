#include "models/capacity/capacity_models.hpp"

#include <fastweights/fastweights.hpp>
#include <stdexcept>

#include "models/capacity/capacity_maps.hpp"
#include "models/capacity/capacity_rules.hpp"

namespace {

using Rule = std::unique_ptr<RecallRule<float>>;

template <class M> Rule memory_rule(const CapacityOptions& o, AnyMap<float> map) {
  return std::make_unique<MemoryRule<M>>(o.symbols, o.d_key, std::move(map));
}

Rule make_rule(const std::string& rule, const std::string& map, const CapacityOptions& o) {
  using Gated = fw::GatedLinearAttention<float, fw::Dynamic, fw::Dynamic, fw::KeyValueDecay>;
  const auto plain = [&] { return capacity_map(map, o.d_key, false); };
  const auto normalised = [&] { return capacity_map(map, o.d_key, true); };
  if (rule == "sum") return std::make_unique<SumRule<float>>(plain());
  if (rule == "fwm") return memory_rule<fw::FastWeightMemory<float>>(o, plain());
  if (rule == "ours") return memory_rule<fw::DeltaRule<float>>(o, normalised());
  if (rule == "gated") return memory_rule<Gated>(o, normalised());
  throw std::invalid_argument("capacity: no rule is called " + rule);
}

}  // namespace

CapacityResult train_capacity(const std::string& model, CapacityOptions o) {
  if (model == "softmax_cat") {
    o.fan = true;
    return CapacityTrainer<float>(o, std::make_unique<SoftmaxRule<float>>()).train();
  }
  if (model == "tanh_fwm") o.rate = 1e-4, o.batch = 128;  // as the authors did
  const auto split = model.find('_');
  return CapacityTrainer<float>(o, make_rule(model.substr(split + 1), model.substr(0, split), o))
      .train();
}
