#pragma once

#include <fastweights/training/trainer.hpp>

#include "training/any_model.hpp"
#include "training/score.hpp"

/// The processes that mpirun started to run this program together, each with its share of every
/// batch; one alone without mpirun, or if MPI was not installed when this was compiled. Only the
/// first one prints to stdout.
class Processes {
 public:
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  /// Ends all processes after an error of this one: the others wait for it.
  void abort() const;

  /// All take the model and optimiser of the first, and from now on sum their gradients.
  void join(fw::Trainer<AnyModel<float>>& trainer) const;
  /// The sum over all.
  Score sum(const Score& mine) const;

 private:
  int rank_ = 0, count_ = 1;
};
