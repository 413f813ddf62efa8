#include "every_rule/rules.hpp"

#include <fastweights/any_memory/table.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

namespace every_rule {

namespace {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using measure::Flops;

void look_up_key(Inputs& inputs, State&) { inputs["lookup"] = 0.9f * inputs["key"]; }
void move_key(Inputs& inputs, State&) {
  inputs["removal"] = -inputs["key"];
  inputs["replacement"] = 0.5f * inputs["key"];
}
void shorten_values(Inputs& inputs, State&) { inputs["value"].colwise().normalize(); }
void take_small_steps(Inputs& inputs, State& state) {
  inputs["beta"] *= 0.01f;
  fw::detail::visit_all_leaves(
      [](const Leaf* leaf, const LeafPath& path) {
        if (path.name == "A") leaf->entries<float>().setRandom();
      },
      state);
}
// As after `kept` segments of 64 tokens, whose matrices are zero.
constexpr double kept = 32;
void keep_segments(Inputs&, State& state) {
  fw::detail::visit_all_leaves(
      [](const Leaf* leaf, const LeafPath& path) {
        if (path.name == "length") leaf->store_integer(0, (static_cast<Index>(kept) + 1) * 64);
      },
      state);
}
void take_mean(Inputs& inputs, State&) { inputs["weights"] /= 4; }  // of a window of 4
void lower_rates(Inputs& inputs, State&) {
  inputs["rate"] /= static_cast<float>(inputs["key"].rows());
}

// Rules of one size d.
class Table {
 public:
  explicit Table(Index d) : d_(d) {}

  // A name that begins with "…" is that of a variant; it continues that of its memory.
  void add(const std::string& name, Memory memory, const Flops& flops,
           void (*prepare)(Inputs&, State&) = nullptr, Functions functions = {}) {
    const std::string mark = "…";
    const bool is_variant = name.rfind(mark, 0) == 0;
    if (!is_variant) memory_ = name.substr(0, name.find_first_of(" ,"));
    rules.push_back({is_variant ? memory_ + name.substr(mark.size()) : name, std::move(memory),
                     flops, functions, prepare});
  }
  void add(const std::string& name, const char* memory, const Flops& flops,
           void (*prepare)(Inputs&, State&) = nullptr, Functions functions = {}) {
    add(name, fw::make_memory<float>(memory, {.key_size = d_}), flops, prepare, functions);
  }
  // Keys of 16 rows, as in the papers of the maps: W is d × features.
  void add_mapped(const std::string& name, const char* memory, Index features,
                  double flops_per_entry) {
    add(name + ", " + std::to_string(features) + " features of 16",
        fw::make_memory<float>(memory, {.key_size = 16, .value_size = d_}),
        {.lines = flops_per_entry * static_cast<double>(features)});
  }

  std::vector<Rule> rules;

 private:
  Index d_;
  std::string memory_;
};

void add_sums_and_deltas(Table& table) {
  table.add("LinearAttention", "LinearAttention", {.squares = 4});
  table.add("… with AttentionNormaliser", "NormalisedLinearAttention", {.squares = 7});
  table.add("DeltaRule", "DeltaRule", {.squares = 6});
  table.add("… with KeyValueVectorBeta", "VectorDeltaRule", {.squares = 6});
  table.add("… with AttentionNormaliser", "NormalisedDeltaRule", {.squares = 9});
}

void add_gated(Table& table, Index d) {
  using Delta = fw::GatedDeltaRule<float>;
  table.add("GatedLinearAttention", "GatedLinearAttention", {.squares = 5});
  table.add("… with KeyValueDecay (Mamba-2)", "SimpleGatedLinearAttention", {.squares = 5});
  table.add("GatedDeltaRule", "GatedDeltaRule", {.squares = 7});
  table.add("… with KeyValueBetaVectorDecay (Kimi delta attention)", "KimiDeltaAttention",
            {.squares = 7});
  table.add("HebbianMemory", "HebbianMemory", {.squares = 5});
  table.add("Deferred GatedDeltaRule, 8 tokens", fw::Deferred<Delta, 8>(Delta({d})),
            {.squares = 7, .lines = 32});
}

void add_delta_family(Table& table) {
  table.add("Comba", "Comba", {.squares = 7}, look_up_key);
  table.add("GatedDeltaRule2", "GatedDeltaRule2", {.squares = 7});
  table.add("GatedDeltaProduct, N = 2", "GatedDeltaProduct", {.squares = 11});
  table.add("LowRankRule (RWKV-7)", "LowRankRule", {.squares = 9}, move_key);
  table.add("… with KeyValueRemoval (IPLR)", "IdentityLowRankRule", {.squares = 9}, move_key);
  table.add("PreconditionedDeltaRule", "PreconditionedDeltaRule", {.squares = 7});
  table.add("… with one decay per key row", "VectorPreconditionedDeltaRule", {.squares = 7});
  table.add("GatedOjaRule", "GatedOjaRule", {.squares = 7}, shorten_values);
  table.add("EFLA", "Efla", {.squares = 6});
  table.add("EraseThenDelta", "EraseThenDelta", {.squares = 11});
  table.add("QDelta", "QDelta", {.squares = 7});
  table.add("FineGrainedDeltaRule (FG²-GDN)", "FineGrainedDeltaRule", {.squares = 7});
  table.add("Longhorn", "Longhorn", {.squares = 7});
  table.add("… exact", "ExactLonghorn", {.squares = 6});
  table.add("Rwkv6", "Rwkv6", {.squares = 5});
}

void add_learners(Table& table) {
  constexpr double window = 4;
  table.add("MomentumDeltaRule", "MomentumDeltaRule", {.squares = 9});
  table.add("TitansMemory", "TitansMemory", {.squares = 9});
  table.add("CachedSegments of DeltaRule, 32 segments", "CachedDeltaRule",
            {.squares = 6 + 2 * kept}, keep_segments);
  table.add("MesaMemory, exact", "MesaMemory", {.squares = 8, .cubes = 2. / 3});
  table.add("… with 30 conjugate gradients", "IterativeMesaMemory", {.squares = 8 + 2 * 30});
  table.add("KalmaMemory, 30 iterations", "KalmaMemory", {.squares = 10 + 2 * 30});
  table.add("RecursiveLeastSquares", "RecursiveLeastSquares", {.squares = 15});
  table.add("Yaad", "Yaad", {.squares = 7});
  table.add("Moneta", "Moneta", {.squares = 17}, take_small_steps);
  table.add("Memora", "Memora", {.squares = 13, .also = "2 d² exp"}, nullptr,
            {Functions::exponential, 2});
  table.add("OmegaMemory, c = 4", "OmegaMemory", {.squares = 4 * window + 3}, take_mean);
  // 20 m² n + 10 m³ = 30 d³
  table.add("AtlasMemory, c = 4", "AtlasMemory", {.squares = 4 * window + 6, .cubes = 30},
            take_mean);
}

// With h = 4 d hidden units.
void add_models(Table& table) {
  table.add("TttLinear, mini-batches of 16", "TttLinear", {.squares = 8}, lower_rates);
  table.add("TttMlp, mini-batches of 16, h = 4 d", "TttMlp", {.squares = 18 * 4}, lower_rates);
  table.add("TitansMlp, h = 4 d", "TitansMlp", {.squares = 9 * 4 + 11 * 4}, lower_rates);
  table.add("NormalisedTitans", "NormalisedTitans", {.squares = 9}, lower_rates);
}

void add_state_spaces(Table& table, Index d) {
  constexpr double levels = 13, slots = 64;  // levels for 4096 tokens
  table.add("LogLinearAttention, L = 13", "LogLinearAttention", {.squares = 5 * levels});
  table.add("NormalisedGatedAttention", "NormalisedGatedAttention", {.squares = 5});
  table.add("… with KeyValueVectorDecay", "NormalisedVectorGatedAttention", {.squares = 5});
  table.add("Mlstm", "Mlstm", {.squares = 5});
  table.add("GatedSlotAttention, M = 64", "GatedSlotAttention", {.lines = 5 * slots * 2});
  table.add("CyclicFlowAttention, M = 64", "CyclicFlowAttention",
            {.lines = 5 * slots * 2, .also = "8 M²"});
  // 16 keys, as published: with A_ij = −j for j = 1 … d most decays would be subnormal numbers.
  table.add("SelectiveScan (Mamba), d_k = 16",
            fw::make_memory<float>("SelectiveScan", {.key_size = 16, .value_size = d}),
            {.lines = 6 * 16, .also = "16 d exp"}, nullptr, {Functions::exponential, 0, 16});
  table.add("Mamba3", "Mamba3", {.squares = 7});
  table.add("Mamba3Mimo, R = 4", "Mamba3Mimo", {.squares = 6 * 4 + 1});
  table.add("Hgrn", "Hgrn", {.lines = 2});
  table.add("Rwkv4", "Rwkv4", {.lines = 19, .also = "4 d exp"}, nullptr,
            {Functions::exponential, 0, 4});
  table.add("FastWeightMemory", "FastWeightMemory", {.squares = 9});
}

void add_features(Table& table) {
  const Index taylor = fw::TaylorMap().features(16), squares = fw::SymmetricPower<2>().features(16);
  table.add_mapped("LinearAttention of TaylorMap (Based)", "TaylorLinearAttention", taylor, 7);
  table.add_mapped("LinearAttention of SymmetricPower (ReBased)", "SquaredLinearAttention", squares,
                   7);
  table.add_mapped("NormalisedGatedAttention of SymmetricPower (power attention)", "PowerAttention",
                   squares, 5);
}

void add_recurrent(Table& table) {
  table.add("DeltaRnn", "DeltaRnn", {.squares = 12});
  table.add("DeltaLstm", "DeltaLstm", {.squares = 36});
  table.add("DeltaDeltaNet", "DeltaDeltaNet", {.squares = 24, .lines = 6});
  table.add("DeltaMlp, h = 4 d", "DeltaMlp", {.squares = 12 * 4});
  table.add("RecurrentDeltaNet", "RecurrentDeltaNet", {.squares = 12});
  table.add("SelfReferentialMatrix", "SelfReferentialMatrix", {.squares = 18});
  table.add("Programmer1991", "Programmer1991", {.squares = 4, .also = "d² tanh"}, nullptr,
            {Functions::tanh, 1});
}

}  // namespace

std::vector<Rule> all_rules(Index d) {
  Table table(d);
  add_sums_and_deltas(table);
  add_gated(table, d);
  add_delta_family(table);
  add_learners(table);
  add_models(table);
  add_state_spaces(table, d);
  add_features(table);
  add_recurrent(table);
  return table.rules;
}

}  // namespace every_rule
