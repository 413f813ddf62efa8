#pragma once

#include <array>

#include "models/sorting_model.hpp"
#include "training/threads.hpp"

/// Trains a model to sort. A sequence is read without gradients up to its last `window` tokens;
/// from there on it is a train pass, so that a step costs little more than reading. The batch is
/// cut into shards that may run at the same time, each with gradients of its own, summed up in
/// order: the result is the same for any number of threads.
template <class Model> class SortingTrainer {
  using Matrix = typename Model::Matrix;

 public:
  /// `reach`: how many tokens back the model can see, 0 for all; those before are not read.
  SortingTrainer(const Model& model, long tail, long reach = 0, int shards = 4)
      : tail_(static_cast<std::size_t>(tail) + sort_symbols),
        reach_(reach > 0 ? static_cast<std::size_t>(reach) + sort_symbols : ~std::size_t{0}),
        shards_(static_cast<std::size_t>(shards), Shard(model)) {}

  struct Score {
    double loss = 0, accuracy = 0;
  };

  /// The gradient of the mean loss over sequences first … first + batch − 1 of a seed.
  Score gradient(const Model& model, std::uint64_t seed, long first, long batch, long length) {
    for (Shard& shard : shards_) fw::set_zero_parameters(shard.gradient);
    const Score score = run(model, seed, first, batch, length, fw::Pass::train);
    for (std::size_t s = 1; s < shards_.size(); ++s)
      fw::add_parameters(shards_[0].gradient, shards_[s].gradient);
    return score;
  }
  const Model& gradient() const { return shards_[0].gradient; }

  /// Loss and token accuracy with teacher forcing.
  Score evaluate(const Model& model, std::uint64_t seed, long count, long length) {
    return run(model, seed, 0, count, length, fw::Pass::infer);
  }

 private:
  struct Shard {
    explicit Shard(const Model& model) : gradient(model) {}
    Model gradient;
    typename Model::Trace reading, answering;
    Matrix logits;
    double loss = 0;
    long hits = 0;
  };

  Score run(const Model& model, std::uint64_t seed, long first, long count, long length,
            fw::Pass pass) {
    run_jobs(shards_.size(), threads_or_all(), [&](std::size_t s) {
      Shard& shard = shards_[s];
      shard.loss = 0;
      shard.hits = 0;
      for (auto i = static_cast<long>(s); i < count; i += static_cast<long>(shards_.size()))
        run_one(model, shard,
                draw_sort_sequence(seed, static_cast<std::uint64_t>(first + i), length), count,
                pass);
    });
    Score score;
    for (const Shard& shard : shards_) {
      score.loss += shard.loss / static_cast<double>(count);
      score.accuracy +=
          static_cast<double>(shard.hits) / static_cast<double>(count * long{outputs});
    }
    return score;
  }

  void run_one(const Model& model, Shard& shard, const SortSequence& sequence, long count,
               fw::Pass pass) {
    const std::vector<int> ids = ids_of(sequence);
    const std::span<const int> all = std::span<const int>(ids).last(std::min(reach_, ids.size()));
    const std::size_t read = all.size() - std::min(all.size(), tail_);
    auto state = model.initial_state();
    for (std::size_t i = 0; i < read; i += segment)
      model.read(state, all.subspan(i, std::min(segment, read - i)), shard.reading);
    model.answer(state, all.subspan(read), shard.logits, shard.answering, pass);
    shard.hits += count_hits(best(shard.logits), sequence.targets);
    shard.loss += fw::cross_entropy(shard.logits, sequence.targets, shard.logits);
    if (pass == fw::Pass::infer) return;
    shard.logits /= static_cast<typename Model::Scalar>(count);
    model.backward(all.subspan(read), shard.logits, shard.answering, shard.gradient);
  }

  static Ranking best(const Matrix& logits) {
    Ranking ranking{};
    for (std::size_t i = 0; i < outputs; ++i)
      logits.col(static_cast<fw::Index>(i)).maxCoeff(&ranking[i]);
    return ranking;
  }

  static constexpr std::size_t segment = 512, outputs = sort_symbols;
  std::size_t tail_, reach_;
  std::vector<Shard> shards_;
};
