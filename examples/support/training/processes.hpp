#pragma once

#include <fastweights/layers/sequence_parallel.hpp>
#include <fastweights/networks/network.hpp>
#include <fastweights/training/trainer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "training/any_model.hpp"
#include "training/score.hpp"

/// For a sequence that is not cut.
class Whole final : public fw::SequenceParallel {
 public:
  void receive_state(const fw::detail::Object&) override {}
  void send_state(const fw::detail::Object&) override {}
  void receive_gradient(const fw::detail::Object&) override {}
  void send_gradient(const fw::detail::Object&) override {}
};

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

  /// Runs main's work. After an error it prints the message and ends all processes: the others
  /// would wait for this one.
  int run(const char* program, const std::function<int()>& work) const;

  /// All take the model and optimiser of the first, and from now on sum their gradients.
  void join(fw::Trainer<AnyModel<float>>& trainer) const;
  /// Join for a trainer of one shard; the sums continue during the backward pass, which calls
  /// the result. They end with this object.
  fw::GradientReady join(fw::Trainer<fw::networks::Network<float>>& trainer);

  /// The sum over all.
  Score sum(const Score& mine) const;
  double sum(double mine) const;
  /// The largest of all.
  double largest(double mine) const;
  /// The numbers of all in order, for the first one.
  std::vector<float> join(const std::vector<float>& mine) const;
  /// All take a record of process `root`.
  void broadcast(const fw::detail::Object& record, int root) const;

  /// Calls run(i, parallel) for the parts of a sequence that are this process's: part i is that of
  /// process i mod count(). A layer's state comes and goes by `parallel`.
  void run_round_robin(long parts,
                       const std::function<void(long, fw::SequenceParallel&)>& run) const;
  /// The process of part i.
  int owner_of(long part) const { return static_cast<int>(part % count_); }

 private:
  struct Sums;

  void abort() const;
  void wait_for_all() const;

  int rank_ = 0, count_ = 1;
  std::shared_ptr<Sums> sums_;
};
