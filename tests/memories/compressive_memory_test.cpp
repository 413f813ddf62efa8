#include <fastweights/memories/attention/compressive_memory.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Dynamic;
using fw::Index;
template <int D = Dynamic> using Memory = fw::CompressiveMemory<double, D>;

Memory<> memory(Index d, Index heads, Index chunk, Index capacity, Index rate) {
  return Memory<>({d, heads, chunk, capacity, rate});
}

TEST_CASE("compressive memory obeys the laws", "[laws][compressive]") {
  for (const auto& m : {memory(4, 2, 3, 5, 1), memory(4, 1, 3, 4, 3), memory(3, 3, 4, 1, 2),
                        memory(1, 1, 1, 2, 3), memory(2, 1, 7, 2, 2)}) {
    laws::all(m);
    laws::gradients_are_exact(m, 1, false);
    laws::gradients_are_exact(m, 7, false);
  }
  laws::takes_autodiff(memory(4, 2, 3, 5, 2), false);
  const Memory<4> fixed({4, 2, 3, 5, 3});
  laws::fixed_is_dynamic(fixed, memory(4, 2, 3, 5, 3), false);
}

TEST_CASE("a slot is the mean of its tokens, and reads attend to the last slots", "[compressive]") {
  constexpr Index d = 4, heads = 2, capacity = 3, rate = 2, tokens = 11;
  const auto m = memory(d, heads, 1, capacity, rate);
  fw::Random random(1);
  MatrixXd x(d, tokens), q(d, 1), y(d, 1);
  random.fill(x);
  random.fill(q);
  auto state = fw::initial_state(m);
  for (Index t = 0; t < tokens; ++t) {
    fw::write(m, state, {x.col(t)});
    fw::read(m, state, {q}, {y});
    const Index written = (t + 1) / rate, first = std::max<Index>(0, written - capacity);
    MatrixXd expected = MatrixXd::Zero(d, 1);
    for (Index h = 0; h < d; h += d / heads) {
      double total = 0;
      for (Index i = first; i < written; ++i) {
        const Eigen::VectorXd slot =
            x.middleCols(i * rate, rate).rowwise().mean().segment(h, d / heads);
        const double p = std::exp(slot.dot(q.col(0).segment(h, d / heads)) / std::sqrt(2.0));
        expected.col(0).segment(h, d / heads) += p * slot;
        total += p;
      }
      if (total > 0) expected.col(0).segment(h, d / heads) /= total;
    }
    INFO("token " << t);
    CHECK(largest_entry(y - expected) <= 1e-14);
    CHECK(m.slots(state).cols() == std::min(written, capacity));
  }
}

TEST_CASE("slots do not depend on how tokens are split into chunks", "[compressive]") {
  const auto m = memory(3, 1, 1, 4, 3);
  fw::Random random(2);
  MatrixXd x(3, 40);
  random.fill(x);
  auto whole = fw::initial_state(m);
  fw::write(m, whole, {x});
  for (const Index piece : {1, 2, 3, 5, 7, 39}) {
    auto state = fw::initial_state(m);
    for (Index t = 0; t < 40; t += piece)
      fw::write(m, state, {x.middleCols(t, std::min(piece, 40 - t))});
    INFO("pieces of " << piece);
    CHECK(state.slots == whole.slots);
    CHECK(state.partial_sum == whole.partial_sum);
    CHECK(state.tokens == 40);
  }
}

TEST_CASE("an empty compressive memory returns 0 and has no gradient", "[compressive]") {
  const auto m = memory(2, 1, 1, 3, 4);
  fw::Random random(3);
  MatrixXd q(2, 5), y = MatrixXd::Constant(2, 5, NAN), dq = MatrixXd::Zero(2, 5);
  random.fill(q);
  auto state = fw::initial_state(m), ds = fw::zero_gradient(m);
  fw::write(m, state, {q.leftCols(3)});  // does not fill a slot
  fw::read(m, state, {q}, {y});
  CHECK(y.isZero(0));
  m.read_vjp(state, {q}, {q}, ds, {dq});
  CHECK(dq.isZero(0));
  CHECK((ds.slots.isZero(0) && ds.partial_sum.isZero(0)));
}

TEST_CASE("compressive memory: the error names the option that is out of range", "[compressive]") {
  CHECK_THROWS_WITH(memory(0, 1, 1, 1, 1), "CompressiveMemory: d is 0, expected at least 1");
  CHECK_THROWS_WITH(memory(4, 0, 1, 1, 1), "CompressiveMemory: heads is 0, expected at least 1");
  CHECK_THROWS_WITH(memory(4, 1, 0, 1, 1), "CompressiveMemory: chunk is 0, expected at least 1");
  CHECK_THROWS_WITH(memory(4, 1, 1, 0, 1), "CompressiveMemory: capacity is 0, expected at least 1");
  CHECK_THROWS_WITH(memory(4, 1, 1, 1, 0), "CompressiveMemory: rate is 0, expected at least 1");
  CHECK_THROWS_WITH(memory(4, 3, 1, 1, 1),
                    "CompressiveMemory: d is 4, expected a multiple of heads, 3");
  CHECK_THROWS_WITH(Memory<4>({5, 1, 1, 1, 1}), "CompressiveMemory: d is 5, expected 4");
}

}  // namespace
