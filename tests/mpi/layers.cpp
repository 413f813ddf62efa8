// A model on one sequence that is cut over the ranks, against one process: with the same parts one
// after another, and with the whole sequence.

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/sequence_parallel.hpp>
#include <fastweights/mpi/training.hpp>
#include <fastweights/training/losses.hpp>
#include <numeric>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"
#include "support/queue_parallel.hpp"

namespace {

using fw::Index;
using Model = fw::networks::Network<double>;

constexpr int symbols = 7;

// The sequence in parts of 1 to 8 tokens.
class Task {
 public:
  explicit Task(int parts) : random_(9) {
    starts_ = {0};
    for (int p = 0; p < parts; ++p)
      starts_.push_back(starts_.back() + 1 + static_cast<Index>(random_.below(8)));
    for (Index t = 0; t <= starts_.back(); ++t)
      ids_.push_back(static_cast<int>(random_.below(symbols)));
  }
  Index tokens() const { return starts_.back(); }

  /// The parts first … last − 1 of the sequence.
  struct Part {
    fw::Symbols inputs, targets;
  };
  Part parts(int first, int last) const {
    const auto begin = static_cast<std::size_t>(starts_[static_cast<std::size_t>(first)]),
               end = static_cast<std::size_t>(starts_[static_cast<std::size_t>(last)]);
    const fw::Symbols ids(ids_);
    return {ids.subspan(begin, end - begin), ids.subspan(begin + 1, end - begin)};
  }

 private:
  fw::Random random_;
  std::vector<Index> starts_;
  std::vector<int> ids_;
};

Model drawn() {
  Model model = fw::networks::language_model<double>(
      {.symbols = symbols, .width = 8, .layers = 2}, [](const auto& in) {
        const auto x = in + fast_weights(rms_norm(in, "norm1", {}), "mixer",
                                         fw::DeltaRule<double>({.key_size = 4}), {.heads = 2},
                                         fw::L2Normalise());
        return x + convolution(rms_norm(x, "norm2", {}), "convolution", 4, true);
      });
  fw::Random random(1);
  fw::initialise(model, random);
  return model;
}

// A forward and backward pass of some parts.
struct Run {
  Model::Trace trace;
  Eigen::MatrixXd logits, dlogits;
  double loss = 0;

  void forward(const Model& model, const Task& task, const Task::Part& part, fw::Pass pass) {
    logits.resize(symbols, static_cast<Index>(part.inputs.size()));
    auto state = model.initial_state();
    model.forward(state, part.inputs, logits, trace, pass);
    dlogits = logits;
    loss = fw::cross_entropy(logits, part.targets, dlogits,
                             {.divisor = static_cast<double>(task.tokens())});
  }
  void backward(const Model& model, Model& gradient) { model.backward(trace, dlogits, gradient); }
};

// The gradients of the parts one after another, that of part p in element p.
std::vector<Model> gradients_in_one_process(const Model& model, const Task& task, int parts) {
  const auto count = static_cast<std::size_t>(parts);
  QueueParallel parallel(count);
  std::vector<Run> runs(count);
  std::vector<Model> gradients(count, fw::zero_gradient(model));
  for (int p = 0; p < parts; ++p) {
    parallel.go_to(static_cast<std::size_t>(p));
    runs[static_cast<std::size_t>(p)].forward(model, task, task.parts(p, p + 1),
                                              fw::Pass::train.over(parallel));
  }
  for (int p = parts; p-- > 0;) {
    const auto i = static_cast<std::size_t>(p);
    parallel.go_to(i);
    runs[i].backward(model, gradients[i]);
  }
  return gradients;
}

// Parts in round robin over the ranks, as many as there are tokens, or one.
void check_round(const Model& model, const Task& task, const fw::mpi::Ranks& ranks) {
  const auto all = task.parts(0, ranks.size());
  Model::Trace trace;
  Eigen::MatrixXd whole(symbols, task.tokens());
  auto expected = model.initial_state();
  model.forward(expected, all.inputs, whole, trace);
  for (const Index parts : {Index{1}, Index{2}, task.tokens()}) {
    const auto start = [&](Index part) { return task.tokens() * part / parts; };
    auto state = model.initial_state();
    double worst = 0;
    fw::mpi::run_round_robin(MPI_COMM_WORLD, parts, [&](long part, fw::SequenceParallel& parallel) {
      const Index first = start(part), count = start(part + 1) - first;
      Eigen::MatrixXd logits(symbols, count);
      model.forward(
          state,
          all.inputs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
          logits, trace, fw::Pass::infer.over(parallel));
      const auto apart = (logits - whole.middleCols(first, count)).cwiseAbs();
      worst = std::max(worst, apart.maxCoeff<Eigen::PropagateNaN>());
    });
    fw::mpi::broadcast(state, MPI_COMM_WORLD, static_cast<int>((parts - 1) % ranks.size()));
    mpi_test::expect(mpi_test::largest(worst) <= 1e-12, "the outputs of parts in round robin");
    mpi_test::expect(mpi_test::difference(state, expected) <= 1e-12, "and their last state");
  }
}

template <class Job> void train(fw::Trainer<Model>& trainer, const Job& job) {
  trainer.train(
      4, [](long long) { return 1e-2; }, job, [](const fw::TrainingStep&) {});
}

}  // namespace

void mpi_test::check_layers() {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const Model model = drawn();
  const Task task(ranks.size());
  const auto mine = task.parts(ranks.rank(), ranks.rank() + 1);
  fw::mpi::SequenceParallel parallel(MPI_COMM_WORLD);

  Run own, whole;
  Model gradient = fw::zero_gradient(model), of_whole = gradient;
  const long long before = bytes_sent();
  own.forward(model, task, mine, fw::Pass::train.over(parallel));
  const long long forward = bytes_sent();
  own.backward(model, gradient);
  const auto states = model.initial_state();
  const long long bytes = fw::mpi::detail::bytes_of(states);
  const long long positions = sizeof(Index);  // of the one sequence, which have no gradient
  expect(forward - before == (ranks.is_last() ? 0 : bytes),
         "a rank sends the states of all layers");
  expect(bytes_sent() - forward == (ranks.is_first() ? 0 : bytes - positions),
         "and their gradients");
  const auto one_by_one = gradients_in_one_process(model, task, ranks.size());
  const double parts =
      largest(difference(gradient, one_by_one[static_cast<std::size_t>(ranks.rank())]));

  const auto all = task.parts(0, ranks.size());
  whole.forward(model, task, all, fw::Pass::train);
  whole.backward(model, of_whole);
  fw::mpi::sum_parameters(gradient, MPI_COMM_WORLD);
  const double gradients = largest(difference(gradient, of_whole));
  const double losses = largest(std::abs(fw::mpi::sum(own.loss, MPI_COMM_WORLD) / whole.loss - 1));

  Model together = model, alone = model;
  fw::Trainer<Model> of_all(together, {.shards = 1}), one(alone, {.shards = 1});
  fw::mpi::join(of_all, MPI_COMM_WORLD);
  train(of_all, [&](long long, Index, Model& g) {
    own.forward(together, task, mine, fw::Pass::train.over(parallel));
    own.backward(together, g);
    return fw::mpi::sum(own.loss, MPI_COMM_WORLD);
  });
  train(one, [&](long long, Index, Model& g) {
    whole.forward(alone, task, all, fw::Pass::train);
    whole.backward(alone, g);
    return whole.loss;
  });
  const double trained = largest(difference(together, alone));
  if (ranks.is_first())
    std::printf(
        "mpi model on one sequence of %td tokens, %d ranks: gradients %g from the parts one by "
        "one, "
        "%.1e from the whole; loss %.1e; four steps of training %.1e\n",
        task.tokens(), ranks.size(), parts, gradients, losses, trained);
  check_round(model, task, ranks);
  expect(parts == 0, "the same bits as the parts in one process");
  expect(gradients <= 1e-12 && losses <= 1e-12, "the same as the whole sequence");
  expect(trained <= 1e-10, "training on one sequence over ranks");
}
