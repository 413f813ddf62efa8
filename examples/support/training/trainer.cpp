#include "training/trainer.hpp"

#include <algorithm>

#include "training/threads.hpp"

Trainer::Trainer(TrainedModel& model, const fw::AdamWOptions& options, int shards)
    : model_(model), shards_(static_cast<std::size_t>(shards)), optimiser_(model, options) {
  for (Shard& shard : shards_) shard.gradient = model.clone();
}

Score Trainer::run(long count, const Job& job) {
  std::vector<Score> scores(shards_.size());
  const int threads = std::min(threads_or_all(), static_cast<int>(shards_.size()));
  run_jobs(shards_.size(), threads, [&](std::size_t s) {
    for (auto i = static_cast<long>(s); i < count; i += static_cast<long>(shards_.size()))
      scores[s] += job(shards_[s], i);
  });
  Score total;
  for (Score& score : scores) {
    score.loss /= static_cast<double>(count);
    total += score;
  }
  total.examples = count;
  return total;
}

Score Trainer::run_with_gradient(long count, const Job& job) {
  for (Shard& shard : shards_) set_zero(*shard.gradient);
  const Score score = run(count, job);
  for (std::size_t s = 1; s < shards_.size(); ++s) add(gradient(), *shards_[s].gradient);
  return score;
}

void Trainer::step(double learning_rate) { optimiser_.step(model_, gradient(), learning_rate); }
