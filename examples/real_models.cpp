// Runs trained models of others, beside the outputs of their own engines: script/real_models has
// the files, and compares the times.
//
//   build/release/examples/real_models --model silero --folder build/real_models

#include <time.h>

#include <cstdio>
#include <fastweights/io/weights.hpp>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>

#include "real_models/silero.hpp"
#include "real_models/typeseg.hpp"
#include "report/command_line.hpp"

namespace {

using Eigen::MatrixXf;
using fw::Index;
using Network = fw::networks::Network<float>;

struct Settings {
  std::string model, folder;
  long rounds = 5;
  bool smoke = false;
};

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// A model: its network, and whether it takes symbols, all in one pass, or pieces, one after
/// another.
struct RealModel {
  std::string name;
  std::function<fw::networks::Value<float>(fw::networks::Builder<float>&)> layers;
  bool takes_symbols;
};
const std::vector<RealModel> all_models{{"typeseg", real_models::typeseg<float>, true},
                                        {"silero", real_models::silero<float>, false}};

Network network_of(const RealModel& model) {
  fw::networks::Builder<float> net;
  Network network = net.build(model.layers(net));
  fw::Random random(1);
  fw::initialise(network, random);
  return network;
}

/// The least seconds of all rounds, and the outputs.
double run(const RealModel& model, const Network& network, const MatrixXf& x, MatrixXf& y,
           long rounds) {
  std::vector<int> symbols;
  if (model.takes_symbols)
    for (Index t = 0; t < x.cols(); ++t) symbols.push_back(int(x(0, t)));
  Network::Trace trace;
  double least = 1e300;
  for (long i = 0; i < rounds; ++i) {
    auto state = network.initial_state();
    const double begin = thread_seconds();
    if (model.takes_symbols)
      network.forward(state, symbols, y, trace);
    else
      for (Index t = 0; t < x.cols(); ++t) network.forward(state, x.col(t), y.col(t), trace);
    least = std::min(least, thread_seconds() - begin);
  }
  return least;
}

void compare(const RealModel& model, const Settings& s) {
  const auto file = [&](const std::string& ending) {
    return fw::io::SafeTensors::read(std::filesystem::path(s.folder) /
                                     (model.name + ending + ".safetensors"));
  };
  Network network = network_of(model);
  fw::io::load_parameters(network, file(""));
  const auto example = file("_case");
  const MatrixXf x = example.matrix<float>("x").transpose(),
                 expected = example.matrix<float>("y").transpose();
  MatrixXf y(expected.rows(), expected.cols());
  const double seconds = run(model, network, x, y, s.rounds);
  std::printf("%s: error %.1e of %.3g, %.1f us\n", model.name.c_str(),
              double((y - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>()),
              double(expected.cwiseAbs().maxCoeff()), 1e6 * seconds / double(x.cols()));
}

// Random weights and inputs: that the models run, in pieces or at once, and give numbers.
void smoke(const RealModel& model) {
  const Network network = network_of(model);
  MatrixXf x = MatrixXf::Random(model.takes_symbols ? 1 : network.inputs(), 5);
  if (model.takes_symbols) x = (x.array() * 60 + 64).floor();
  MatrixXf y(network.outputs(), x.cols());
  run(model, network, x, y, 1);
  if (!y.allFinite()) throw std::runtime_error(model.name + ": the outputs are not finite");
  std::printf("%s: %td weights, outputs up to %.3g\n", model.name.c_str(),
              fw::parameter_count(network), double(y.cwiseAbs().maxCoeff()));
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  CommandLine app("Runs trained models beside the outputs of their own engines");
  std::vector<std::string> names;
  for (const RealModel& model : all_models) names.push_back(model.name);
  app.add_option("--model", s.model, "which one; all of them if none is named").one_of(names);
  app.add_option("--folder", s.folder, "what script/real_models wrote");
  app.add_positive("--rounds", s.rounds, "takes the least time of so many");
  app.add_flag("--smoke,--quick", s.smoke, "random weights, a few tokens");
  app.parse(argc, argv);
  if (s.folder.empty() && !s.smoke) {
    std::cerr << "real_models: name the --folder that script/real_models wrote, or --smoke\n";
    return 1;
  }
  for (const RealModel& model : all_models) {
    if (!s.model.empty() && s.model != model.name) continue;
    if (s.smoke)
      smoke(model);
    else
      compare(model, s);
  }
} catch (const std::exception& error) {
  std::cerr << "real_models: " << error.what() << "\n";
  return 1;
}
