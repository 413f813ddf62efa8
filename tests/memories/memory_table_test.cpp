// The table of all memories in docs/memories.md says of every memory whether its writes compose.
#include <data_folder.hpp>
#include <fastweights/fastweights.hpp>
#include <fstream>
#include <map>
#include <string>

#include "support/catch.hpp"

namespace {

using S = float;
constexpr int d = fw::Dynamic;
using fw::Mergeable;

// The first cell of a row without markup, after that of the memory it is a variant of.
const std::map<std::string, bool> merges{
    {"LinearAttention", Mergeable<fw::LinearAttention<S>>},
    {"LinearAttention AttentionNormaliser",
     Mergeable<fw::LinearAttention<S, d, d, fw::AttentionNormaliser<S>>>},
    {"DeltaRule", Mergeable<fw::DeltaRule<S>>},
    {"DeltaRule KeyValueVectorBeta",
     Mergeable<fw::DeltaRule<S, d, d, fw::NoNormaliser, fw::KeyValueVectorBeta>>},
    {"DeltaRule AttentionNormaliser",
     Mergeable<fw::DeltaRule<S, d, d, fw::AttentionNormaliser<S>>>},
    {"GatedLinearAttention", Mergeable<fw::GatedLinearAttention<S>>},
    {"GatedLinearAttention KeyValueDecay",
     Mergeable<fw::GatedLinearAttention<S, d, d, fw::KeyValueDecay>>},
    {"GatedDeltaRule", Mergeable<fw::GatedDeltaRule<S>>},
    {"GatedDeltaRule KeyValueBetaVectorDecay",
     Mergeable<fw::GatedDeltaRule<S, d, d, fw::KeyValueBetaVectorDecay>>},
    {"HebbianMemory", Mergeable<fw::HebbianMemory<S>>},
    {"Deferred", Mergeable<fw::Deferred<fw::GatedDeltaRule<S>>>},
    {"CachedSegments", Mergeable<fw::CachedSegments<fw::DeltaRule<S>>>},
    {"Comba", Mergeable<fw::Comba<S>>},
    {"Efla", Mergeable<fw::Efla<S>>},
    {"EraseThenDelta", Mergeable<fw::EraseThenDelta<S>>},
    {"FineGrainedDeltaRule", Mergeable<fw::FineGrainedDeltaRule<S>>},
    {"QDelta", Mergeable<fw::QDelta<S>>},
    {"GatedDeltaRule2", Mergeable<fw::GatedDeltaRule2<S>>},
    {"GatedDeltaProduct", Mergeable<fw::GatedDeltaProduct<S>>},
    {"LowRankRule", Mergeable<fw::LowRankRule<S>>},
    {"PreconditionedDeltaRule", Mergeable<fw::PreconditionedDeltaRule<S>>},
    {"GatedOjaRule", Mergeable<fw::GatedOjaRule<S>>},
    {"Longhorn", Mergeable<fw::Longhorn<S>>},
    {"Rwkv6", Mergeable<fw::Rwkv6<S>>},
    {"MomentumDeltaRule", Mergeable<fw::MomentumDeltaRule<S>>},
    {"TitansMemory", Mergeable<fw::TitansMemory<S>>},
    {"MesaMemory", Mergeable<fw::MesaMemory<S>>},
    {"KalmaMemory", Mergeable<fw::KalmaMemory<S>>},
    {"RecursiveLeastSquares", Mergeable<fw::RecursiveLeastSquares<S>>},
    {"Yaad", Mergeable<fw::Yaad<S>>},
    {"Moneta", Mergeable<fw::Moneta<S>>},
    {"Memora", Mergeable<fw::Memora<S>>},
    {"OmegaMemory", Mergeable<fw::OmegaMemory<S>>},
    {"AtlasMemory", Mergeable<fw::AtlasMemory<S>>},
    {"TttLinear", Mergeable<fw::TttLinear<S>>},
    {"TttMlp", Mergeable<fw::TttMlp<S>>},
    {"TitansMlp", Mergeable<fw::TitansMlp<S>>},
    {"NormalisedTitans", Mergeable<fw::NormalisedTitans<S>>},
    {"LogLinearAttention", Mergeable<fw::LogLinearAttention<S>>},
    {"NormalisedGatedAttention", Mergeable<fw::NormalisedGatedAttention<S>>},
    {"Mlstm", Mergeable<fw::Mlstm<S>>},
    {"GatedSlotAttention", Mergeable<fw::GatedSlotAttention<S>>},
    {"CyclicFlowAttention", Mergeable<fw::CyclicFlowAttention<S>>},
    {"SelectiveScan", Mergeable<fw::SelectiveScan<S>>},
    {"Mamba3", Mergeable<fw::Mamba3<S>>},
    {"Mamba3Mimo", Mergeable<fw::Mamba3Mimo<S>>},
    {"Hgrn", Mergeable<fw::Hgrn<S>>},
    {"Rwkv4", Mergeable<fw::Rwkv4<S>>},
    {"FastWeightMemory", Mergeable<fw::FastWeightMemory<S>>},
    {"DeltaRnn", Mergeable<fw::DeltaRnn<S>>},
    {"DeltaLstm", Mergeable<fw::DeltaLstm<S>>},
    {"DeltaDeltaNet", Mergeable<fw::DeltaDeltaNet<S>>},
    {"DeltaMlp", Mergeable<fw::DeltaMlp<S>>},
    {"RecurrentDeltaNet", Mergeable<fw::RecurrentDeltaNet<S>>},
    {"SelfReferentialMatrix", Mergeable<fw::SelfReferentialMatrix<S>>},
    {"Programmer1991", Mergeable<fw::Programmer1991<S>>},
    {"KeyValueCache", Mergeable<fw::KeyValueCache<S>>},
    {"ForgettingAttention", Mergeable<fw::ForgettingAttention<S>>},
    {"PathAttention", Mergeable<fw::PathAttention<S>>},
    {"DeltaFormer", Mergeable<fw::DeltaFormer<S>>},
    {"Parallax", Mergeable<fw::Parallax<S>>},
    {"StickBreakingAttention", Mergeable<fw::StickBreakingAttention<S>>},
    {"ContinuousMemory",
     Mergeable<fw::ContinuousMemory<S, fw::GibbsDensity<S>, fw::RectangularBasis<S>>>},
    {"CompressiveMemory", Mergeable<fw::CompressiveMemory<S>>},
};

// The cells of a row of a table; an escaped bar does not end a cell.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\') {
      result.push_back(cell);
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return result;
}

// The first identifier in backquotes.
std::string identifier(const std::string& cell) {
  const auto begin = cell.find('`') + 1;
  return cell.substr(begin, cell.find_first_of("`<", begin) - begin);
}

}  // namespace

TEST_CASE("docs/memories.md: the table says which memories merge") {
  std::ifstream page(FASTWEIGHTS_REFERENCE_DIR "/../../docs/memories.md");
  REQUIRE(page.is_open());
  std::string line, memory;
  std::size_t rows = 0;
  bool in_table = false;
  while (std::getline(page, line)) {
    if (line.starts_with("| memory |")) in_table = true;
    if (!line.starts_with("| ")) in_table = in_table && line.starts_with("|-");
    if (!in_table || line.starts_with("|-") || line.starts_with("| memory |")) continue;
    const auto row = cells(line);
    REQUIRE(row.size() == 6);
    const bool variant = row[0].starts_with(" …");
    if (!variant) memory = identifier(row[0]);
    const std::string name = variant ? memory + " " + identifier(row[0]) : memory;
    INFO(name);
    REQUIRE(merges.contains(name));
    CHECK(row[4] == (merges.at(name) ? " yes " : " "));
    ++rows;
  }
  CHECK(rows == merges.size());
}
