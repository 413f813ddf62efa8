#include "report/experiments/sorting_picture.hpp"

#include <cmath>
#include <fstream>

#include "models/sorting/sorting_model_of.hpp"
#include "report/experiments/signal_place.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"

namespace {

// One feature of the tokens that the first block remembers, and of the signal.
template <class Mixer>
void write_signal(const SortingNetwork<float>& network, const Mixer& mixer, fw::Symbols ids,
                  fw::Index written, const Eigen::MatrixXf& coefficients,
                  const std::filesystem::path& file) {
  const auto tokens = ids.first(static_cast<std::size_t>(written));
  Eigen::MatrixXf x(network.embedding.outputs(), written), normed(x.rows(), x.cols());
  typename fw::LayerNorm<float>::Trace trace;
  fw::Nothing none;
  network.embedding.forward(tokens, x);
  network.blocks[0].norm1.forward(none, x, normed, trace);
  const auto& memory = mixer.long_term.memory;
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
    csv << t << "," << normed(0, i) << "," << coefficients.row(0).cast<double>() * psi << ","
        << normed.row(0).segment(from, count).mean() << "\n";
  }
}

// The density of every head of the first block for outputs 1, 10 and 20.
template <class Layer, class Trace>
void write_densities(const Layer& layer, const Trace& trace, const Eigen::MatrixXf& queries,
                     const std::filesystem::path& file) {
  const fw::Index rows = trace.keys.rows() / layer.heads;
  std::ofstream csv = open_to_write(file);
  csv << "t";
  std::vector<fw::Mixture<float>> mixtures;
  for (const fw::Index output : {0, 9, 19})
    for (fw::Index h = 0; h < layer.heads; ++h) {
      const fw::Index column = queries.cols() - static_cast<fw::Index>(sort_symbols) + output;
      const Eigen::VectorXf scores = trace.keys.middleRows(h * rows, rows).transpose() *
                                     queries.col(column).segment(h * rows, rows) /
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

// Writes both files if the mixer of the first block is a Mixer.
template <class Mixer>
bool write_memory(const SortingNetwork<float>& network, fw::Symbols ids,
                  const std::filesystem::path& folder) {
  const auto* mixer = network.blocks[0].mixer.get<Mixer>();
  if (mixer == nullptr) return false;
  SortingNetwork<float>::Trace trace;
  Eigen::MatrixXf logits;
  auto state = network.initial_state();
  network.answer(state, ids, logits, trace, fw::Pass::infer);
  const auto& mixed = std::any_cast<const typename Mixer::Trace&>(trace.blocks[0].mixer);
  const auto& remembered = std::any_cast<const typename Mixer::State&>(state[0].mixer);
  const auto& last = mixed.segments[static_cast<std::size_t>(mixed.used - 1)].trace;
  write_signal(network, *mixer, ids, remembered.written, remembered.long_term.coefficients,
               folder / "signal.csv");
  write_densities(mixer->long_term, last, mixed.queries, folder / "densities.csv");
  return true;
}

}  // namespace

void show_memory(const SortingModel& model, const SortSequence& sequence, const std::string& title,
                 const std::filesystem::path& folder) {
  const auto& network = static_cast<const TrainedSorting<float>&>(model).network;
  const std::vector<int> ids = sorting_sequence(sequence).input;
  using Even = LongTermMixer<Continuous<float, fw::EvenSampling>>;
  using Sticky = LongTermMixer<Continuous<float, fw::StickySampling>>;
  if (!write_memory<Even>(network, ids, folder) && !write_memory<Sticky>(network, ids, folder))
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
