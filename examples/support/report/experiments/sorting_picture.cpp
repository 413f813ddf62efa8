#include "report/experiments/sorting_picture.hpp"

#include <cmath>
#include <fstream>
#include <optional>

#include "models/sorting/sorting_model_of.hpp"
#include "report/experiments/signal_place.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"

namespace {

using Network = fw::networks::Network<float>;

// The mixer of the first block after a sequence: its inputs, and the long-term memory.
template <class Sampling> struct Mixed {
  using Layer = ContinuousLayer<float, Sampling>;
  Eigen::MatrixXf x, queries;
  Layer layer;
  typename Layer::State state;
};

const std::string mixer_path = "blocks.0.mixer";

const Eigen::MatrixXf& weight(const Network& network, const std::string& name) {
  for (const auto& each : network.weights)
    if (each.name == mixer_path + '.' + name) return each.value;
  throw std::logic_error("the sorting model has no weight " + name);
}

// None if the model has another memory.
template <class Sampling>
std::optional<Mixed<Sampling>> mixed(const TrainedSorting<float>& model, const SortingOptions& o,
                                     fw::Symbols ids) {
  using State = fw::networks::LongTermState<decltype(Mixed<Sampling>::Layer::memory)>;
  const Network& network = model.network.blocks;
  auto state = network.initial_state();
  TrainedSorting<float>::Buffers buffers;
  model.read(state, ids, true, buffers, fw::Pass::train);
  for (const auto& member : state.members) {
    const fw::detail::Object part = member.part->object();
    if (member.path != mixer_path + ".long_term" || part.type != &fw::detail::object_type<State>)
      continue;
    auto layer = continuous_layer<float, Sampling>(o);
    fw::for_each_parameter(
        [&](const std::string& path, auto& w) { w = weight(network, "long_term." + path); }, layer);
    Mixed<Sampling> found{{}, {}, layer, static_cast<State*>(part.address)->streams[0].memory};
    network.for_each_module(buffers.blocks, [&](const std::string& path, auto in, auto) {
      if (path == mixer_path) found.x = in;
    });
    found.queries = (weight(network, "query.weight") * found.x).colwise() +
                    weight(network, "query.bias").col(0);
    return found;
  }
  return {};
}

// One feature of the tokens that the first block remembers, and of the signal.
template <class Sampling>
void write_signal(const Mixed<Sampling>& mixed, const std::filesystem::path& file) {
  const fw::Index written = mixed.state.tokens;
  const auto& memory = mixed.layer.memory;
  const auto& basis = memory.basis();
  const fw::Index chunk = memory.options().chunk;
  Eigen::VectorXd psi(basis.size());
  std::ofstream csv = open_to_write(file);
  csv << "t,token,signal,mean\n";
  constexpr fw::Index around = 32;  // about as many tokens as a narrow basis function spans
  for (fw::Index i = 0; i < written; ++i) {
    const double within = (static_cast<double>(i % chunk) + 0.5) / static_cast<double>(chunk);
    const double t = signal_place(memory.options().contraction, written / chunk,
                                  (written - 1 - i) / chunk + 1, within);
    basis.evaluate(t, psi);
    const fw::Index from = std::max<fw::Index>(0, i - around / 2);
    const fw::Index count = std::min(around, written - from);
    csv << t << "," << mixed.x(0, i) << ","
        << mixed.state.coefficients.row(0).template cast<double>() * psi << ","
        << mixed.x.row(0).segment(from, count).mean() << "\n";
  }
}

// The density of every head of the first block for outputs 1, 10 and 20.
template <class Sampling>
void write_densities(const Mixed<Sampling>& mixed, const std::filesystem::path& file) {
  const auto& layer = mixed.layer;
  const Eigen::MatrixXf keys = layer.key.weight * mixed.state.coefficients;
  const fw::Index rows = keys.rows() / layer.heads;
  std::ofstream csv = open_to_write(file);
  csv << "t";
  std::vector<fw::Mixture<float>> mixtures;
  for (const fw::Index output : {0, 9, 19})
    for (fw::Index h = 0; h < layer.heads; ++h) {
      const fw::Index column = mixed.queries.cols() - static_cast<fw::Index>(sort_symbols) + output;
      const Eigen::VectorXf scores = keys.middleRows(h * rows, rows).transpose() *
                                     mixed.queries.col(column).segment(h * rows, rows) /
                                     std::sqrt(static_cast<float>(rows));
      mixtures.push_back(layer.density.mixture_of(layer.memory.basis(), scores));
      csv << ",output " << output + 1 << " head " << h + 1;
    }
  csv << "\n";
  for (int i = 0; i <= 200; ++i) {
    const double t = i / 200.0;
    csv << t;
    for (const auto& mixture : mixtures) {
      const double z = t - static_cast<double>(mixture.mean[0]);
      const auto v = static_cast<double>(mixture.variance[0]);
      csv << "," << std::exp(-0.5 * z * z / v) / std::sqrt(6.283185307179586 * v);
    }
    csv << "\n";
  }
}

// Writes both files if the first block has that memory.
template <class Sampling>
bool write_memory(const TrainedSorting<float>& model, const SortingOptions& o, fw::Symbols ids,
                  const std::filesystem::path& folder) {
  const auto found = mixed<Sampling>(model, o, ids);
  if (!found) return false;
  write_signal(*found, folder / "signal.csv");
  write_densities(*found, folder / "densities.csv");
  return true;
}

}  // namespace

void show_memory(const SortingModel& model, const SortingOptions& o, const SortSequence& sequence,
                 const std::string& title, const std::filesystem::path& folder) {
  const auto& trained = static_cast<const TrainedSorting<float>&>(model);
  const std::vector<int> ids = sorting_sequence(sequence).input;
  if (!write_memory<fw::EvenSampling>(trained, o, ids, folder) &&
      !write_memory<fw::StickySampling>(trained, o, ids, folder))
    return;
  plot(folder / "memory.png",
       "set datafile separator ','\nset multiplot layout 2,1 title " +
           quoted(std::filesystem::path(title)) +
           "\nset key outside right\nset grid\nset ylabel 'density'\nplot for [i=0:11] " +
           quoted(folder / "densities.csv") +
           " using 1:i+2 with lines lw 2 lc i/4+1 dt i%4+1 title columnheader(i+2)\nset ylabel "
           "'feature 1'\nset xlabel "
           "'place in the signal'\nplot " +
           quoted(folder / "signal.csv") +
           " using 1:2 skip 1 with points pt 7 ps 0.2 lc 'gray70' title 'tokens', '' using 1:4 "
           "skip 1 with lines lc 'gray30' title 'mean of 32', '' using 1:3 skip 1 with lines lw "
           "2 title "
           "'signal'\nunset multiplot\n");
}
