// Loads a model's folder as it is published and compares tokens, logits and generated text with
// what its expected.safetensors says. The environment variable FASTWEIGHTS_MODEL_FOLDER names the
// folder, tests/data/models/qwen3_5_folder by default. Prints one line.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fastweights/io/safetensors.hpp>
#include <fastweights/models/model.hpp>
#include <fastweights/models/sampler.hpp>
#include <fastweights/models/tokenizer.hpp>

#include "data_folder.hpp"

namespace {

using fw::Index;
using fw::models::Tokenizer;
using fw::networks::Network;
using Logits = Eigen::MatrixXf;

constexpr double limit = 1e-4;

struct Model {
  Tokenizer tokenizer;
  Network<float> network;
};

Model load(const std::filesystem::path& folder) {
  return {Tokenizer::read(folder / "tokenizer.json"), fw::models::load<float>(folder)};
}

struct Result {
  bool same_ids = true, same_greedy = true;
  double error = 0;  // of the logits, over their largest
};

class Expected {
 public:
  explicit Expected(const std::filesystem::path& folder)
      : file_(fw::io::SafeTensors::read(folder / "expected.safetensors")) {}

  // Adds one prompt to the result; false if there is no such prompt.
  bool compare(const Model& model, int i, Result& result) const {
    const std::string end = '.' + std::to_string(i);
    if (!file_.metadata().contains("prompt" + end)) return false;
    const std::vector<int> ids = file_.values<int>("ids" + end);
    result.same_ids &= model.tokenizer.encode(file_.metadata().at("prompt" + end)) == ids;

    fw::networks::State state = model.network.initial_state();
    Network<float>::Trace trace;
    Logits logits(model.network.outputs(), Index(ids.size()));
    model.network.forward(state, fw::Symbols(ids), logits, trace);
    result.error = std::max(result.error, error(logits, file_.values<float>("logits" + end)));

    const std::vector<int> greedy = file_.values<int>("greedy" + end);
    const std::vector<int> own = generate(model, state, logits.rightCols<1>(), greedy.size());
    result.same_greedy &= own == greedy && model.tokenizer.decode(own, false) ==
                                               file_.metadata().at("continuation" + end);
    return true;
  }

 private:
  static double error(const Logits& given, const std::vector<float>& expected) {
    if (given.size() != Index(expected.size())) return INFINITY;
    const auto other = Eigen::Map<const Logits>(expected.data(), given.rows(), given.cols());
    const double worst = (given - other).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
    return std::isnan(worst) ? INFINITY : worst / other.cwiseAbs().maxCoeff();
  }

  static std::vector<int> generate(const Model& model, fw::networks::State& state, Logits logits,
                                   std::size_t count) {
    fw::models::Sampler greedy({.temperature = 0});
    Network<float>::Trace trace;
    std::vector<int> ids;
    while (ids.size() < count) {
      ids.push_back(greedy(logits.col(0)));
      model.network.forward(state, fw::Symbols(ids).last(1), logits, trace);
    }
    return ids;
  }

  fw::io::SafeTensors file_;
};

}  // namespace

int main() try {
  const char* named = std::getenv("FASTWEIGHTS_MODEL_FOLDER");
  const std::filesystem::path folder =
      named ? named : FASTWEIGHTS_REFERENCE_DIR "/models/qwen3_5_folder";
  const Expected expected(folder);
  const Model model = load(folder);
  Result result;
  int prompts = 0;
  while (expected.compare(model, prompts, result)) ++prompts;
  const auto word = [](bool same) { return same ? "same" : "differ"; };
  std::printf("folder: ids %s logits %.1e greedy %s\n", word(result.same_ids), result.error,
              word(result.same_greedy));
  const bool passed = prompts > 0 && result.same_ids && result.same_greedy && result.error <= limit;
  return passed ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("folder: failed: %s\n", error.what());
  return 1;
}
