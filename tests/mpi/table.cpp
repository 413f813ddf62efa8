// Every memory of the table on a sequence that is cut over the ranks: states go from rank to rank
// and their gradients back, as layers of networks send them. The parts in one process give the same
// bits.

#include <cstdio>
#include <fastweights/mpi/sequence_parallel.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"
#include "support/subject.hpp"

namespace mpi_test {
namespace {

using State = fw::AnyState<double>;
using Record = fw::testing::AnyRecord<double>;

constexpr Index tokens = 13;
// Rank r has the tokens from here on; every rank has one at least, and the last ones have more.
Index first_token(int rank, int ranks) {
  return rank + (tokens - ranks) * rank * rank / (ranks * ranks);
}

bool same_columns(const Record& a, const Record& b, Index first, Index count) {
  for (std::size_t i = 0; i < a.matrices.size(); ++i) {
    const Index width = a.members()[i].width;
    if (a.matrices[i].middleCols(first * width, count * width) !=
        b.matrices[i].middleCols(first * width, count * width))
      return false;
  }
  return true;
}

// The gradient of a state that grows would have another size on every rank: networks refuse it.
bool trains(const fw::AnyMemory<double>& memory) {
  return memory.can().differentiable && !memory.can().grows;
}

// The passes over the parts of one sequence.
class Passes {
 public:
  Passes(const fw::AnyMemory<double>& memory, bool positive, int ranks)
      : memory_(memory),
        ranks_(ranks),
        checkpoints_(static_cast<std::size_t>(ranks)),
        dy_(memory.given(), tokens, 0),
        dinputs_(memory.written(), tokens, 0),
        dqueries_(memory.read_with(), tokens, 0) {
    fw::Random random(7);
    all_ = fw::testing::random_sequences(memory, tokens, random, positive);
    for (auto& matrix : dy_.matrices) random.fill(matrix);
  }

  void forward(int rank, State& state) {
    const auto in = all_.inputs.part(begin(rank), count(rank)),
               queries = all_.queries.part(begin(rank), count(rank));
    const auto out = all_.outputs.part<double>(begin(rank), count(rank));
    if (trains())
      memory_.scan(state, in, queries, out, checkpoints_[static_cast<std::size_t>(rank)]);
    else
      memory_.scan(state, in, queries, out);
  }
  void backward(int rank, State& ds) {
    const Index first = begin(rank), n = count(rank);
    memory_.backward(checkpoints_[static_cast<std::size_t>(rank)], all_.inputs.part(first, n),
                     all_.queries.part(first, n), dy_.part(first, n), ds,
                     dinputs_.part<double>(first, n), dqueries_.part<double>(first, n));
  }
  bool trains() const { return mpi_test::trains(memory_); }
  bool same_part(const Passes& other, int rank) const {
    const auto same = [&](const Record& a, const Record& b) {
      return same_columns(a, b, begin(rank), count(rank));
    };
    return same(all_.outputs, other.all_.outputs) && same(dinputs_, other.dinputs_) &&
           same(dqueries_, other.dqueries_);
  }

 private:
  Index begin(int rank) const { return first_token(rank, ranks_); }
  Index count(int rank) const { return begin(rank + 1) - begin(rank); }

  const fw::AnyMemory<double>& memory_;
  int ranks_;
  fw::testing::AnySequences<double> all_;
  std::vector<fw::AnyCheckpoints<double>> checkpoints_;
  Record dy_, dinputs_, dqueries_;
};

// A state whose numbers must not matter.
State without_numbers(State state) {
  const fw::detail::Object object = state.object();
  fw::detail::visit_leaves(&object, 1, [](const fw::detail::Leaf* leaf, const auto&) {
    if (leaf->scalar == fw::detail::ScalarKind::float64)
      leaf->entries<double>().setConstant(std::nan(""));
  });
  return state;
}

// True if this rank has the results of the parts in one process.
bool same_over_ranks(const laws::Subject& subject, const fw::mpi::Ranks& ranks) {
  const auto memory = subject.memory<double>();
  const int rank = ranks.rank(), size = ranks.size();
  Passes alone(memory, subject.positive(), size), mine = alone;

  State state = laws::first_state(memory), first = state, last = memory.zero_gradient();
  for (int r = 0; r <= rank; ++r) alone.forward(r, state);
  State after = state, ds = last;
  for (int r = rank + 1; r < size; ++r) alone.forward(r, state);
  if (alone.trains())
    for (int r = size - 1; r >= rank; --r) alone.backward(r, ds);

  fw::mpi::SequenceParallel parallel(MPI_COMM_WORLD);
  State own = ranks.is_first() ? first : without_numbers(memory.initial_state());
  fw::detail::receive_state(parallel, own.object());
  mine.forward(rank, own);
  fw::detail::send_state(parallel, own.object());
  State own_ds = ranks.is_last() ? last : without_numbers(memory.zero_gradient());
  if (mine.trains()) {
    fw::detail::receive_gradient(parallel, own_ds.object());
    mine.backward(rank, own_ds);
    fw::detail::send_gradient(parallel, own_ds.object());
  }
  return own == after && (!mine.trains() || own_ds == ds) && mine.same_part(alone, rank);
}

}  // namespace

void check_table() {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  int count = 0, trained = 0;
  for (const auto& [dk, dv] : {std::pair<Index, Index>{5, 3}, {4, 4}})
    for (const laws::Subject& subject : laws::subjects<double>(dk, dv)) {
      expect(same_over_ranks(subject, ranks), subject.text().c_str());
      ++count;
      if (trains(subject.memory<double>())) ++trained;
    }
  if (ranks.is_first())
    std::printf("mpi %d memories of the table over %d ranks, %d with gradients\n", count,
                ranks.size(), trained);
}

}  // namespace mpi_test
