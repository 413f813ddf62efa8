#include "training/sequence_trainer.hpp"

#include <fastweights/math/parallel_for.hpp>

namespace {

// Sequences that a model runs together: enough for large products, few enough for their values to
// stay in the cache.
constexpr std::size_t group = 8;

}  // namespace

SequenceTrainer::SequenceTrainer(SequenceModel& model, const fw::AdamWOptions& options,
                                 fw::Index shards)
    : network_(model),
      model_(model),
      trainer_(model_, {.optimiser = options, .shards = shards}),
      buffers_(static_cast<std::size_t>(shards)),
      scores_(buffers_.size()) {}

void SequenceTrainer::join(const Processes& processes) {
  processes_ = &processes;
  processes.join(trainer_);
}

void SequenceTrainer::train(long steps, long batch, const std::function<double(long long)>& rate,
                            const std::function<Draw(long step)>& draw,
                            const std::function<void(const Step&, const Score&)>& after) {
  trainer_.train(
      steps, rate,
      [&](long long step, fw::Index shard, AnyModel<float>& gradient) {
        return run(shard, batch, draw(static_cast<long>(step)), &gradient.model()).loss;
      },
      [&](const Step& step) { after(step, total()); });
}

Score SequenceTrainer::compute_gradient(long batch, const Draw& draw) {
  trainer_.clear_gradient();
  trainer_.add_gradient([&](fw::Index shard, AnyModel<float>& gradient) {
    return run(shard, batch, draw, &gradient.model()).loss;
  });
  return total();
}

Score SequenceTrainer::evaluate(long count, const Draw& draw) {
  fw::parallel_for(trainer_.shards(), true,
                   [&](fw::Index shard) { run(shard, count, draw, nullptr); });
  return total();
}

Score SequenceTrainer::run(fw::Index shard, long batch, const Draw& draw, TrainedModel* gradient) {
  const auto s = static_cast<std::size_t>(shard);
  auto first = static_cast<long>(shard), stride = static_cast<long>(trainer_.shards());
  if (processes_ != nullptr) {
    first += processes_->rank() * stride;
    stride *= processes_->count();
  }
  Score& score = scores_[s] = {};
  std::vector<TaskSequence> sequences;
  for (long i = first; i < batch; i += stride) {
    sequences.push_back(draw(i));
    if (sequences.size() < group && i + stride < batch) continue;
    score += network_.run(sequences, batch, buffers_[s], gradient);
    sequences.clear();
  }
  return score;
}

Score SequenceTrainer::total() const {
  Score sum;
  for (const Score& score : scores_) sum += score;
  return processes_ == nullptr ? sum : processes_->sum(sum);
}
