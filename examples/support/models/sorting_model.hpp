#pragma once

#include <fastweights/fastweights.hpp>
#include <string>
#include <vector>

#include "models/kinds.hpp"
#include "tasks/sorting_task.hpp"

/// \file
/// The models of the sorting task: the same transformer around four memories.

/// What a model reads of a sequence: the outputs so far have embeddings of their own.
inline std::vector<int> ids_of(const SortSequence& sequence) {
  std::vector<int> ids = sequence.input;
  for (std::size_t i = ids.size() - sort_symbols + 1; i < ids.size(); ++i)
    ids[i] += sort_vocabulary;
  return ids;
}

/// Blocks over a stream of symbols whose end is answered. Tokens have no positions; the separator
/// and the outputs so far do, and the outputs have embeddings of their own.
template <class Block> struct SortingModel {
  using Scalar = typename Block::Scalar;
  using Matrix = Eigen::Matrix<Scalar, fw::Dynamic, fw::Dynamic>;

  fw::Embedding<Scalar> embedding;  ///< symbols, separator, symbols as outputs
  fw::Embedding<Scalar> positions;
  std::vector<Block> blocks;
  fw::LayerNorm<Scalar> norm;
  fw::Linear<Scalar> head;
  static constexpr auto names = fw::names("embedding", "positions", "blocks", "norm", "head");

  using State = std::vector<typename Block::State>;
  struct Trace {
    std::vector<Matrix> x;
    std::vector<typename Block::Trace> blocks;
    typename fw::LayerNorm<Scalar>::Trace norm;
    Matrix normed, dnormed, dx, dy;
  };

  SortingModel(fw::Index layers, const Block& block)
      : embedding(sort_vocabulary + long{sort_symbols}, block.inputs()),
        positions(sort_symbols, block.inputs()),
        blocks(static_cast<std::size_t>(layers), block),
        norm(block.inputs()),
        head(block.inputs(), sort_symbols) {}

  template <class Generator> void initialise(Generator& random) {
    random.fill(embedding.weight, 1.0);
    random.fill(positions.weight, 1.0);
    for (Block& block : blocks) fw::initialise(block, random);
    head.initialise(random);
  }

  State initial_state() const {
    State state;
    for (const Block& block : blocks) state.push_back(block.initial_state());
    return state;
  }

  /// Reads on; nothing is answered yet.
  void read(State& state, fw::Symbols ids, Trace& trace) const {
    embed(ids, trace);
    run(state, trace, fw::Pass::infer);
  }

  /// Reads the rest, whose last 20 symbols are answered: logits 20×20.
  void answer(State& state, fw::Symbols ids, Matrix& logits, Trace& trace, fw::Pass pass) const {
    embed(ids, trace);
    auto& x = trace.x[0];
    for (fw::Index i = 0; i < outputs; ++i)
      x.col(x.cols() - outputs + i) += positions.weight.row(i).transpose();
    run(state, trace, pass);
    trace.normed.resize(x.rows(), x.cols());
    auto none = norm.initial_state();
    norm.forward(none, trace.x.back(), trace.normed, trace.norm, pass);
    logits.resize(outputs, outputs);
    head.forward(none, trace.normed.rightCols(outputs), logits, none);
  }

  /// Gradients of the last answer; what was read before it counts as constant. grad accumulates.
  void backward(fw::Symbols ids, const Matrix& dlogits, Trace& trace, SortingModel& grad) const {
    const auto& x = trace.x.back();
    trace.dnormed.setZero(x.rows(), x.cols());
    trace.dx.resize(x.rows(), x.cols());
    trace.dy.resize(x.rows(), x.cols());
    fw::Nothing none;
    head.backward(trace.normed.rightCols(outputs), none, dlogits, trace.dnormed.rightCols(outputs),
                  grad.head);
    norm.backward(x, trace.norm, trace.dnormed, trace.dx, grad.norm);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      trace.dy.swap(trace.dx);
      blocks[i].backward(trace.x[i], trace.blocks[i], trace.dy, trace.dx, grad.blocks[i]);
    }
    embedding.backward(ids, trace.dx, grad.embedding);
    for (fw::Index i = 0; i < outputs; ++i)
      grad.positions.weight.row(i) += trace.dx.col(x.cols() - outputs + i).transpose();
  }

 private:
  static constexpr auto outputs = fw::Index{sort_symbols};

  void embed(fw::Symbols ids, Trace& trace) const {
    trace.x.resize(blocks.size() + 1);
    trace.blocks.resize(blocks.size());
    for (Matrix& x : trace.x) x.resize(embedding.outputs(), static_cast<fw::Index>(ids.size()));
    embedding.forward(ids, trace.x[0]);
  }
  void run(State& state, Trace& trace, fw::Pass pass) const {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[i].forward(state[i], trace.x[i], trace.x[i + 1], trace.blocks[i], pass);
  }
};

/// Sizes of the models and their memories.
struct SortingOptions {
  fw::Index layers = 2, width = 64, heads = 4, hidden = 256;
  fw::Index window = 64;      ///< tokens of a layer's short-term memory
  fw::Index chunk = 64;       ///< tokens that enter the long-term memory together
  fw::Index functions = 128;  ///< N, or slots of the compressive memory
  fw::Index samples = 1024;   ///< M, taken evenly: as dense as tokens are in the longer sequences
  fw::Index sticky = 256;     ///< M, taken where it was attended to: these cost a write
  fw::Index rate = 4;         ///< tokens to a slot of the compressive memory
  std::vector<double> widths = {0.01, 0.05};
  double ridge = 0.5;
  double tau = 0;  ///< 0: the past weighs evenly

  /// How many tokens back the short-term memories of all layers see together: a layer's window
  /// holds what the layer below made of its own.
  fw::Index reach() const { return layers * window; }
};

inline const Kinds sorting_kinds{{"cache", "cache only"},
                                 {"compressive", "compressive memory"},
                                 {"continuous", "infinite-former"},
                                 {"sticky", "infinite-former, sticky"}};

template <class S> using ShortTerm = fw::RelativeAttention<S>;
template <class Mixer>
using SortingBlock = fw::PreNormBlock<fw::LayerNorm<typename Mixer::Scalar>, Mixer,
                                      fw::FeedForward<typename Mixer::Scalar>>;
template <class S> using Density = fw::LocatedDensity<S, fw::LearnedLocation<S>>;
template <class S, class Sampling>
using Continuous = fw::ContinuousMemory<S, Density<S>, fw::GaussianBasis<S>, Sampling>;

template <class S> ShortTerm<S> short_term(const SortingOptions& o) {
  return ShortTerm<S>({.d_model = o.width, .heads = o.heads, .window = o.window});
}

template <class Mixer>
SortingModel<SortingBlock<Mixer>> sorting_model(const SortingOptions& o, Mixer mixer,
                                                fw::Index hidden) {
  return {o.layers, SortingBlock<Mixer>(std::move(mixer),
                                        fw::FeedForward<typename Mixer::Scalar>(o.width, hidden))};
}

template <class Memory> auto with_long_term(const SortingOptions& o, Memory memory) {
  using S = typename Memory::Scalar;
  using Long = fw::LongTermLayer<Memory>;
  fw::JoinedAttention<ShortTerm<S>, Long> mixer(
      short_term<S>(o), Long({.heads = o.heads}, std::move(memory), {}), o.window, o.chunk);
  return sorting_model(o, std::move(mixer), o.hidden);
}

template <class S, class Sampling> auto continuous_model(const SortingOptions& o) {
  using Memory = Continuous<S, Sampling>;
  typename Memory::Options m;
  m.d = o.width;
  m.heads = o.heads;
  m.chunk = o.chunk;
  m.samples = Memory::sticky ? o.sticky : o.samples;
  m.regression.ridge = o.ridge;
  m.contraction = {o.tau};
  return with_long_term(o, Memory(m, fw::GaussianBasis<S>(o.functions, o.widths),
                                  Density<S>{fw::LearnedLocation<S>(o.functions)}));
}

/// Calls f with a model of that kind, its parameters still zero. The cache-only model has as many
/// parameters as that of the continuous memory: what the long-term part takes there goes into its
/// feed-forward layer.
template <class S = float, class F>
auto with_sorting_model(const std::string& kind, const SortingOptions& o, F&& f) {
  if (kind == "continuous") return f(continuous_model<S, fw::EvenSampling>(o));
  if (kind == "sticky") return f(continuous_model<S, fw::StickySampling>(o));
  if (kind == "compressive")
    return f(with_long_term(o, fw::CompressiveMemory<S>({.d = o.width,
                                                         .heads = o.heads,
                                                         .chunk = o.chunk,
                                                         .capacity = o.functions,
                                                         .rate = o.rate})));
  if (kind != "cache")
    throw std::invalid_argument("there is no model '" + kind +
                                "': expected cache, compressive, continuous or sticky");
  const fw::Index wanted = fw::parameter_count(continuous_model<S, fw::EvenSampling>(o));
  const fw::Index given = fw::parameter_count(sorting_model(o, short_term<S>(o), o.hidden));
  const fw::Index more = (wanted - given) / (o.layers * (2 * o.width + 1));
  return f(sorting_model(o, short_term<S>(o), o.hidden + more));
}
