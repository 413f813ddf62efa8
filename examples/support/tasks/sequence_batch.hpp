#pragma once

#include <Eigen/Core>
#include <functional>
#include <span>
#include <vector>

/// Equally long sequences, one behind the other: of symbols, or of vectors in columns.
struct SequenceBatch {
  std::vector<int> symbols;
  Eigen::MatrixXf vectors;
};

/// Sequences with the class of each, as a trainer sees them. `data` has targets and
/// gather(which, batch), which copies some of its sequences; it must outlive this.
struct ClassifiedSequences {
  const std::vector<int>& targets;
  std::function<void(std::span<const int> which, SequenceBatch& batch)> gather;

  template <class Data>
  explicit ClassifiedSequences(const Data& data)
      : targets(data.targets), gather([&data](std::span<const int> which, SequenceBatch& batch) {
          data.gather(which, batch);
        }) {}

  std::size_t size() const { return targets.size(); }
};

/// The data to train on, to choose a model by, and to test on.
template <class Data> struct Splits { Data train, validation, test; };

inline Splits<ClassifiedSequences> as_classified(const auto& splits) {
  return {ClassifiedSequences(splits.train), ClassifiedSequences(splits.validation),
          ClassifiedSequences(splits.test)};
}
