// Compares published layers and models with every directory of a folder and prints one line for
// each. The environment variable FASTWEIGHTS_MODELS_DIR names the folder, tests/data/models by
// default. Sizes and options are those of config.json.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fastweights/io/safetensors.hpp>
#include <fastweights/models/load.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "data_folder.hpp"
#include "registry.hpp"
#include "round_trip.hpp"
#include "support/relative_error.hpp"

namespace {

using fw::Index;
using fw::io::SafeTensors;
using fw::networks::Matrix;
using fw::networks::Network;
namespace fs = std::filesystem;

struct UnknownArchitecture : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr double limit = 1e-12, gradient_limit = 1e-10, float_limit = 1e-4;

// NaN is the largest error.
double larger(double a, double b) { return std::isnan(b) ? INFINITY : std::max(a, b); }

double worst_error(const Matrix<double>& given, const std::vector<double>& expected,
                   double largest_of_all = 0) {
  if (given.size() != Index(expected.size())) return INFINITY;
  return relative_error(given.data(), expected, largest_of_all);
}

// The tokens of a directory: symbols, or vectors for a single layer.
struct Inputs {
  Index sequences = 0, steps = 0;
  std::vector<int> ids;
  Matrix<double> x;

  // Tokens first … first + count − 1 of every sequence.
  Inputs part(Index first, Index count) const {
    Inputs some{sequences, count, {}, Matrix<double>(x.rows(), x.rows() ? sequences * count : 0)};
    for (Index b = 0; b < sequences; ++b) {
      if (x.rows() > 0)
        some.x.middleCols(b * count, count) = x.middleCols(b * steps + first, count);
      else
        some.ids.insert(some.ids.end(), ids.begin() + b * steps + first,
                        ids.begin() + b * steps + first + count);
    }
    return some;
  }
};

template <class S>
Matrix<S> run(const Network<S>& network, fw::networks::State& state, const Inputs& in,
              typename Network<S>::Trace& trace, fw::Pass pass) {
  Matrix<S> y = Matrix<S>::Constant(network.outputs(), in.sequences * in.steps, S(std::nan("")));
  if (in.x.rows() > 0)
    network.forward(state, in.x.cast<S>().eval(), y, trace, pass);
  else
    network.forward(state, fw::Symbols(in.ids), y, trace, pass);
  return y;
}

class Directory {
 public:
  explicit Directory(const fs::path& path)
      : path_(path), vectors_(SafeTensors::read(path / "vectors.safetensors")) {
    std::ifstream file(path / "config.json");
    std::stringstream text;
    text << file.rdbuf();
    config_.emplace(fw::models::Config::parse(text.str(), (path / "config.json").string()));
    const std::string kind = config_->text("model_type", config_->text("class"));
    const auto found = registry().find(kind);
    if (found == registry().end()) throw UnknownArchitecture("no architecture " + kind);
    architecture_ = found->second;
    read_inputs();
  }

  // Prints the line; false if an error is above its limit.
  bool check() {
    const SafeTensors weights = SafeTensors::read(path_ / "model.safetensors");
    test_options = fw::models::model_options(weights);
    Network<double> network = architecture_.in_double(*config_);
    fw::models::load_weights(network, weights, {.is_ignored = architecture_.is_ignored});
    fw::networks::State state = network.initial_state(in_.sequences);
    Network<double>::Trace trace;
    const Matrix<double> y = run(network, state, in_, trace, fw::Pass::train);
    const double output = std::max(worst_error(y, values(output_name())), states_error(state));
    const double modules = modules_error(network, trace);
    const double streamed = streamed_error(network, y);
    const double gradients = gradients_error(network, trace);
    std::printf("model %s: output %.1e modules %.1e streamed %.1e gradients %.1e\n", name().c_str(),
                output, modules, streamed, gradients);
    const double in_float = float_error();
    const std::string saved = round_trip();
    std::printf("  float: output %.1e%s%s\n", in_float, saved.empty() ? "" : "; ", saved.c_str());
    return saved.empty() && output <= limit && modules <= limit && streamed <= limit &&
           gradients <= gradient_limit && in_float <= float_limit;
  }

  std::string name() const { return path_.filename().string(); }

 private:
  std::vector<double> values(const std::string& name) const {
    return vectors_.values<double>(name);
  }
  std::string output_name() const { return vectors_.contains("logits") ? "logits" : "y"; }

  void read_inputs() {
    if (vectors_.contains("input_ids")) {
      const auto shape = vectors_.shape("input_ids");
      in_.sequences = Index(shape[0]);
      in_.steps = Index(shape[1]);
      in_.ids = vectors_.values<int>("input_ids");
      return;
    }
    const auto shape = vectors_.shape("x");
    in_.sequences = Index(shape[0]);
    in_.steps = Index(shape[1]);
    const std::vector<double> x = values("x");
    const Index columns = in_.sequences * in_.steps;
    in_.x = Eigen::Map<const Matrix<double>>(x.data(), Index(shape[2]), columns);
    if (vectors_.contains("v_first")) {  // the second input of a layer, below the first
      const std::vector<double> v = values("v_first");
      in_.x.conservativeResize(in_.x.rows() + Index(v.size()) / columns, Eigen::NoChange);
      in_.x.bottomRows(Index(v.size()) / columns) =
          Eigen::Map<const Matrix<double>>(v.data(), Index(v.size()) / columns, columns);
    }
  }

  // Every module of the reference that the network has, by name.
  double modules_error(const Network<double>& network, Network<double>::Trace& trace) const {
    double worst = 0;
    std::size_t found = 0, expected = 0;
    for (const auto& each : vectors_.names()) expected += each.ends_with(".out");
    network.for_each_module(trace, [&](const std::string& path, const auto& in, const auto& out) {
      const std::string reference = reference_path(path);
      if (reference.empty()) return;
      ++found;
      worst = std::max({worst, worst_error(Matrix<double>(in), values(reference + ".in")),
                        worst_error(Matrix<double>(out), values(reference + ".out"))});
    });
    if (found < expected) {
      std::printf("  %s: %zu of %zu modules compared\n", name().c_str(), found, expected);
      return INFINITY;
    }
    return worst;
  }
  // Names of modules and of the checkpoint may differ in their first part, and in known others.
  std::string reference_path(std::string path) const {
    for (const auto& [ours, reference] : architecture_.renamed)
      if (const std::size_t at = path.find(ours); at != std::string::npos)
        path.replace(at, ours.size(), reference);
    if (vectors_.contains(path + ".out")) return path;
    const std::string other = "model" + path.substr(std::min(path.size(), path.find('.')));
    return vectors_.contains(other + ".out") ? other : "";
  }

  // Token by token, in two sizes of pieces, and as a prompt.
  double streamed_error(const Network<double>& network, const Matrix<double>& whole) const {
    double worst = 0;
    const Index odd = in_.steps / 3 + 1;
    for (const Index piece : {Index(1), odd}) {
      fw::networks::State state = network.initial_state(in_.sequences);
      Network<double>::Trace trace;
      for (Index t = 0; t < in_.steps; t += piece) {
        const Index count = std::min(piece, in_.steps - t);
        const Matrix<double> y = run(network, state, in_.part(t, count), trace, fw::Pass::infer);
        for (Index b = 0; b < in_.sequences; ++b)
          worst = larger(
              worst, (y.middleCols(b * count, count) - whole.middleCols(b * in_.steps + t, count))
                         .cwiseAbs()
                         .maxCoeff<Eigen::PropagateNaN>());
      }
      worst = larger(worst, states_error(state));
    }
    if (!in_.ids.empty()) worst = larger(worst, prompt_error(network, whole, odd));
    return worst / whole.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  }

  double prompt_error(const Network<double>& network, const Matrix<double>& whole,
                      Index piece) const {
    fw::networks::State state = network.initial_state(in_.sequences);
    Network<double>::Trace trace;
    Matrix<double> last = Matrix<double>::Constant(network.outputs(), in_.sequences, std::nan(""));
    network.prefill(state, in_.ids, last, trace, piece);
    double worst = states_error(state);
    for (Index b = 0; b < in_.sequences; ++b)
      worst = larger(worst, (last.col(b) - whole.col((b + 1) * in_.steps - 1))
                                .cwiseAbs()
                                .maxCoeff<Eigen::PropagateNaN>());
    return worst;
  }

  // Of all weights and the input.
  double largest_gradient(const Network<double>& network, const SafeTensors& file) const {
    double largest = 0;
    const auto look_at = [&](const std::vector<double>& gradient) {
      for (const double x : gradient) largest = std::max(largest, std::abs(x));
    };
    if (in_.x.rows() > 0) look_at(values("grad_x"));
    for (const auto& weight : network.weights) look_at(file.values<double>(weight.name));
    return largest;
  }

  double gradients_error(const Network<double>& network, Network<double>::Trace& trace) const {
    Network<double> grad = fw::zero_gradient(network);
    const std::vector<double> up = values("up_" + output_name());
    const Index columns = in_.sequences * in_.steps;
    const Matrix<double> dy =
        Eigen::Map<const Matrix<double>>(up.data(), network.outputs(), columns);
    const SafeTensors file = SafeTensors::read(path_ / "gradients.safetensors");
    const double largest = largest_gradient(network, file);
    double worst = 0;
    if (in_.x.rows() > 0) {
      Matrix<double> dx = Matrix<double>::Constant(in_.x.rows(), columns, std::nan(""));
      network.backward(in_.x, trace, dy, dx, grad);
      const std::vector<double> expected = values("grad_x");
      const Index rows = Index(expected.size()) / columns;
      worst = worst_error(Matrix<double>(dx.topRows(rows)), expected, largest);
      if (vectors_.contains("grad_v_first"))
        worst = larger(worst, worst_error(Matrix<double>(dx.bottomRows(dx.rows() - rows)),
                                          values("grad_v_first"), largest));
    } else {
      network.backward(trace, dy, grad);
    }
    for (const auto& weight : grad.weights) {
      const Matrix<double> by_row = weight.value.transpose();  // row-major, as the file
      const double error = worst_error(by_row, file.values<double>(weight.name), largest);
      if (error > gradient_limit) std::printf("  %s: %.1e\n", weight.name.c_str(), error);
      worst = larger(worst, error);
    }
    return worst;
  }

  Network<float> network_in_float() const {
    Network<float> network = architecture_.in_float(*config_);
    fw::models::load_weights(network, SafeTensors::read(path_ / "model.safetensors"),
                             {.is_ignored = architecture_.is_ignored});
    return network;
  }

  double float_error() const {
    const Network<float> network = network_in_float();
    fw::networks::State state = network.initial_state(in_.sequences);
    Network<float>::Trace trace;
    return worst_error(run(network, state, in_, trace, fw::Pass::infer).cast<double>().eval(),
                       values(output_name()));
  }

  // Differences of a folder that is loaded and saved; a single layer is no folder.
  std::string round_trip() const {
    return in_.ids.empty() ? std::string() : round_trip_problem(network_in_float(), path_);
  }

  // The states of the reference against the leaves of ours.
  double states_error(fw::networks::State& state) const {
    std::vector<std::pair<std::string, Matrix<double>>> leaves;
    fw::detail::visit_all_leaves(
        [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
          if (leaf->scalar != fw::detail::ScalarKind::float64) return;
          leaves.emplace_back(path.text(),
                              Eigen::Map<const Matrix<double>>(static_cast<double*>(leaf->data),
                                                               leaf->rows, leaf->cols));
        },
        state);
    double worst = 0;
    for (const auto& each : vectors_.names()) {
      if (!each.starts_with("state.") && !each.starts_with("final_state")) continue;
      const double error = state_error(each, leaves);
      if (error > limit) std::printf("  %s: %.1e\n", each.c_str(), error);
      worst = larger(worst, error);
    }
    return worst;
  }

  template <class Leaves>
  double state_error(const std::string& reference, const Leaves& leaves) const {
    const auto shape = vectors_.shape(reference);
    const std::string kind = reference.substr(reference.rfind('.') + 1);
    // state.3.keys: a leaf of layer 3
    const std::string layer = reference.starts_with("state.")
                                  ? reference.substr(5, reference.rfind('.') - 4)
                                  : std::string();
    const auto is_of_layer = [&](const std::string& path) {
      return layer.empty() || path.find("layers" + layer) != std::string::npos ||
             path.find("blocks" + layer) != std::string::npos;
    };
    std::vector<Matrix<double>> ours;
    const auto own = architecture_.leaves.find(kind);
    const std::string member = own != architecture_.leaves.end() ? own->second : leaf_name(kind);
    for (const auto& [path, leaf] : leaves)
      if (path.ends_with(member) && is_of_layer(path) &&
          (kind != "conv_state" || path.find("conv") != std::string::npos))
        ours.push_back(leaf);
    if (ours.empty()) return INFINITY;
    return compare_states(kind, shape, values(reference), ours);
  }

  static std::string leaf_name(const std::string& kind) {
    if (kind == "conv_state") return ".recent";
    if (kind == "keys" || kind == "values") return '.' + kind;
    if (kind == "n") return ".normaliser";
    if (kind == "m") return ".maximum";
    return ".W";
  }

  // True if our parts of every sequence, below each other, have the shape [B, rows, columns].
  template <class Shape>
  static bool is_stacked(const Shape& shape, const std::vector<Matrix<double>>& ours) {
    if (shape.size() < 2 || shape.size() > 3) return false;
    const auto batch = std::size_t(shape[0]);
    if (ours.size() % batch != 0) return false;
    const Index columns = shape.size() > 2 ? Index(shape[2]) : 1;
    return ours[0].rows() * Index(ours.size() / batch) == Index(shape[1]) &&
           ours[0].cols() == columns;
  }

  template <class Shape>
  double compare_states(const std::string& kind, const Shape& shape,
                        const std::vector<double>& expected,
                        const std::vector<Matrix<double>>& ours) const {
    double worst = 0, largest = 0;
    const auto compare = [&](double given, std::size_t i) {
      worst = larger(worst, std::abs(given - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    };
    const auto n = [&](std::size_t axis) { return axis < shape.size() ? Index(shape[axis]) : 1; };
    std::size_t i = 0;
    if (kind == "conv_state") {  // [B, channels, K], often one token more than ours keeps
      const Index kept = ours[0].cols() / n(0), more = n(2) - kept;
      for (Index b = 0; b < n(0); ++b)
        for (const Matrix<double>& recent : ours)
          for (Index c = 0; c < recent.rows(); ++c)
            for (Index k = 0; k < n(2); ++k, ++i)
              if (k >= more) compare(recent(c, b * kept + k - more), i);
    } else if (kind == "keys" || kind == "values") {  // [B, H, T, d]
      for (const Matrix<double>& head : ours) {
        if (head.rows() < n(3) || head.cols() < n(2)) return INFINITY;
        // The last tokens; of a window, token t is in column t mod its size.
        const Index oldest = in_.steps - n(2);
        // Latent attention: our keys are those of the reference, then its values.
        const Index first = kind == "values" ? head.rows() - n(3) : 0;
        for (Index t = 0; t < n(2); ++t)
          for (Index d = 0; d < n(3); ++d, ++i)
            compare(head(first + d, (oldest + t) % head.cols()), i);
      }
    } else if (is_stacked(shape, ours)) {  // [B, rows, columns]: ours are parts of these rows
      for (const Matrix<double>& part : ours)
        for (Index r = 0; r < part.rows(); ++r)
          for (Index c = 0; c < part.cols(); ++c, ++i) compare(part(r, c), i);
    } else if (ours.size() == 1) {  // [B, rows]: ours has a column for each sequence
      if (ours[0].cols() != n(0) || ours[0].rows() != n(1)) return INFINITY;
      for (Index b = 0; b < n(0); ++b)
        for (Index r = 0; r < n(1); ++r, ++i) compare(ours[0](r, b), i);
    } else {  // [B, H, rows, columns]; the reference repeats states that several queries share
      const bool by_value = architecture_.states_by_value || shape.size() < 4;  // or a vector
      const Index shared = std::max<Index>(n(0) * n(1) / Index(ours.size()), 1);
      for (Index h = 0; h < shared * Index(ours.size()); ++h) {
        const Matrix<double>& head = ours[std::size_t(h / shared)];
        for (Index r = 0; r < n(2); ++r)
          for (Index c = 0; c < n(3); ++c, ++i) compare(by_value ? head(r, c) : head(c, r), i);
      }
    }
    if (i != expected.size()) return INFINITY;
    return largest > 0 ? worst / largest : worst;
  }

  fs::path path_;
  SafeTensors vectors_;
  std::optional<fw::models::Config> config_;
  Architecture architecture_;
  Inputs in_;
};

// True if all of the directory's errors are within their limits.
bool check(const fs::path& path) {
  try {
    return Directory(path).check();
  } catch (const UnknownArchitecture& error) {
    std::printf("model %s: skipped %s\n", path.filename().c_str(), error.what());
    return true;
  } catch (const std::exception& error) {
    std::printf("model %s: failed: %s\n", path.filename().c_str(), error.what());
    return false;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* folder = std::getenv("FASTWEIGHTS_MODELS_DIR");
  std::vector<fs::path> directories;
  const fs::path root = folder ? folder : FASTWEIGHTS_REFERENCE_DIR "/models";
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "vectors.safetensors") &&
        (count < 2 || entry.path().filename().string().find(arguments[1]) != std::string::npos))
      directories.push_back(entry.path());
  std::sort(directories.begin(), directories.end());
  int failed = 0;
  for (const fs::path& each : directories) failed += !check(each);
  std::printf("%zu models, %d failed\n", directories.size(), failed);
  return failed > 0 || directories.empty();
}
