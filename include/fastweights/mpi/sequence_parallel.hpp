#pragma once

#include <fastweights/layers/sequence_parallel.hpp>
#include <fastweights/mpi/states.hpp>

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// Layers and models on one sequence that is cut over the ranks of a communicator. Every rank runs
/// the same layers on its own tokens, the first rank on the first ones:
///
///     fw::mpi::SequenceParallel parallel(comm);
///     auto state = model.initial_state();
///     model.forward(state, ids, logits, trace, fw::Pass::train.over(parallel));
///     loss = fw::cross_entropy(logits, targets, logits, {.divisor = tokens_of_all_ranks});
///     model.backward(ids, trace, logits, gradient);
///     fw::mpi::sum_parameters(gradient, comm);    // fw::mpi::join does it for a Trainer
///
/// A rank that works on a head of a layer waits for the rank before it only at the first layer: for
/// L layers with H heads the ranks take as long as L H + P − 1 heads, and as long backward. A rank
/// sends the states of all layers once, and their gradients once. Results are those of one process
/// that runs the parts one after another. In: the state before the first token, on the first rank.
/// Out: the states after the tokens of each rank.
///
/// All ranks have the same model and at least one token each. Only the thread that initialised MPI
/// may run the layers, so a Trainer has one shard. An error on one rank has to end all of them, by
/// MPI_Abort: the others wait.
class SequenceParallel final : public fw::SequenceParallel {
 public:
  /// The ranks of `comm` in order. A rank that sends waits until the next one receives, so that a
  /// state that is large is not copied.
  explicit SequenceParallel(MPI_Comm comm)
      : ranks_(comm), from_(ranks_.before()), to_(ranks_.after()), outbox_(ranks_) {}
  /// One part of a sequence in round robin: its states come from rank `from` and go to rank `to`;
  /// MPI_PROC_NULL at the ends of the sequence. Sending does not wait: what is sent is copied. All
  /// parts of a rank use one object, in infer passes.
  SequenceParallel(MPI_Comm comm, int from, int to)
      : ranks_(comm), from_(from), to_(to), waits_(false), outbox_(ranks_) {}
  /// Ranks pair its messages in order, so it is not copied.
  SequenceParallel(const SequenceParallel&) = delete;
  SequenceParallel& operator=(const SequenceParallel&) = delete;

  /// The next part.
  void set_neighbours(int from, int to) {
    from_ = from;
    to_ = to;
  }
  /// Waits until all that was sent is received.
  void finish() { outbox_.wait(); }

  void receive_state(const fw::detail::Object& state) override { receive(state, from_); }
  void send_state(const fw::detail::Object& state) override { send(state, to_); }
  void receive_gradient(const fw::detail::Object& state) override {
    check_gradient();
    receive(state, to_);
  }
  void send_gradient(const fw::detail::Object& state) override {
    check_gradient();
    send(state, from_);
  }

 private:
  void check_gradient() const {
    if (!waits_)
      fw::detail::throw_invalid({"mpi::SequenceParallel: a backward pass of parts in round robin"});
  }
  void receive(const fw::detail::Object& state, int from) {
    detail::receive_numbers(ranks_, state, from, buffer_);
    outbox_.progress();
  }
  void send(const fw::detail::Object& state, int to) {
    if (to == MPI_PROC_NULL) return;
    if (waits_) return detail::send_numbers(ranks_, state, to, buffer_);
    outbox_.send(state, to);
    outbox_.progress();
  }

  Ranks ranks_;
  int from_, to_;
  bool waits_ = true;
  std::vector<std::byte> buffer_;
  detail::Outbox outbox_;
};

using Relay [[deprecated("its name is SequenceParallel")]] = SequenceParallel;

/// A sequence in `parts` parts in round robin, part i on rank i mod P: calls run(i,
/// parallel) for the parts of this rank in their order. While a rank works on the first layers of
/// its part, others work on later layers of the parts before. For a sequence that is too long to be
/// in memory, or that is still arriving. At the end the last part's rank, (parts − 1) mod P, has
/// the state.
template <class Run> void run_round_robin(MPI_Comm comm, long parts, const Run& run) {
  if (parts < 0)
    fw::detail::throw_invalid(
        {"mpi::run_round_robin: parts is ", std::to_string(parts), ", expected at least 0"});
  const Ranks ranks(comm);
  const int before = (ranks.rank() + ranks.size() - 1) % ranks.size(),
            after = (ranks.rank() + 1) % ranks.size();
  SequenceParallel parallel(comm, MPI_PROC_NULL, MPI_PROC_NULL);
  for (long i = ranks.rank(); i < parts; i += ranks.size()) {
    parallel.set_neighbours(i == 0 ? MPI_PROC_NULL : before,
                            i + 1 == parts ? MPI_PROC_NULL : after);
    run(i, parallel);
  }
  parallel.finish();
}
template <class Run>
[[deprecated("its name is run_round_robin")]] void share_parts(MPI_Comm comm, long parts,
                                                               const Run& run) {
  run_round_robin(comm, parts, run);
}

}  // namespace fw::mpi
