// A rank that is killed in the middle of a scan over ranks, while others wait for its states.

#include <csignal>
#include <fastweights/mpi/scan.hpp>

#include "mpi/memories.hpp"

namespace mpi_test {
namespace {

// W += v kᵀ. Kills its rank at a write, if the rank is mortal.
struct MortalSum {
  using Scalar = float;
  using Signature = fw::KeyValue<2, 2>;
  template <class C> struct State {
    fw::mat<C, 2, 2> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<float>>;
  using Segment = OwnedState;
  static constexpr std::string_view name = "MortalSum";

  Signature signature() const { return {}; }
  State<fw::Extents> state_extents() const { return {{2, 2}}; }
  void write(OwnedState& s, const fw::WriteToken<MortalSum>& t) const {
    if (is_mortal && t.key[0] > 1) std::raise(SIGKILL);
    s.W += t.value * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<MortalSum>& t,
            fw::OutToken<MortalSum> y) const {
    y.output = s.W * t.query;
  }
  Segment empty_segment() const { return fw::initial_state(*this); }
  void extend(Segment& g, const fw::WriteToken<MortalSum>& t) const { write(g, t); }
  void merge(Segment& g, const Segment& later) const { g.W += later.W; }
  void apply(const Segment& g, OwnedState& s) const { s.W += g.W; }

  bool is_mortal = false;
};
static_assert(fw::Mergeable<MortalSum>);

}  // namespace

void scan_and_die(const std::string& method) {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const MortalSum m{.is_mortal = ranks.rank() == ranks.size() / 2};
  constexpr fw::Index heads = 3, steps = 5;
  Eigen::MatrixXf x = Eigen::MatrixXf::Ones(2, heads * steps), y = x;
  x(0, steps + 2) = 2;  // in the middle of the second head
  std::vector states(heads, fw::initial_state(m));
  fw::mpi::scan(m, std::span(states), {x, x}, {x}, {y}, MPI_COMM_WORLD,
                method == "chain"      ? fw::mpi::Method::chain
                : method == "segments" ? fw::mpi::Method::segments
                                       : fw::mpi::Method::heads);
}

}  // namespace mpi_test
