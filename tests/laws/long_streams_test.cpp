#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/subject.hpp"

/// \file
/// Every memory over a long stream of random tokens; lengthy/long_streams_test.cpp measures the
/// errors of some over 10⁸ tokens.

namespace {

using fw::Index;
using laws::Subject;

constexpr Index block = 500;

bool all_finite(const laws::Values& values) {
  return std::all_of(values.numbers.begin(), values.numbers.end(),
                     [](double x) { return std::isfinite(x); });
}

// The same block of tokens again and again.
template <class S> void stays_finite(const Subject& subject, Index blocks) {
  if (subject.options.more.contains("refuse")) return;  // a full cache throws
  // I + a bᵀ of random a and b has eigenvalues above 1.
  if (subject.name == "IdentityLowRankRule") return;
  INFO(subject.text());
  const auto memory = subject.memory<S>();
  if (memory.can().grows) blocks = 4;  // its reads cost more from block to block
  fw::Random random(3);
  auto all = fw::testing::random_sequences(memory, block, random, subject.positive());
  auto state = laws::first_state<S>(subject);
  std::size_t size = 0;
  for (Index i = 0; i < blocks; ++i) {
    for (auto& matrix : all.outputs.matrices) matrix.setConstant(S(std::nan("")));
    memory.scan(state, all.inputs.views(), all.queries.views(), all.outputs.template views<S>());
    const laws::Values values = laws::values_of(state);
    if (i > 0 && !memory.can().grows) REQUIRE(values.numbers.size() == size);
    size = values.numbers.size();
    REQUIRE(all_finite(values));
    REQUIRE(all_finite(laws::values_of(all.outputs)));
  }
  memory.check_state(state);
}

TEST_CASE("a long stream leaves a finite state of the same size", "[laws][streams]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{5, 3}, {1, 1}}) {
    for (const Subject& subject : laws::subjects<float>(dk, dv)) stays_finite<float>(subject, 40);
    for (const Subject& subject : laws::subjects<double>(dk, dv)) stays_finite<double>(subject, 10);
  }
  for (const Subject& subject : laws::variants<float>()) stays_finite<float>(subject, 10);
}

}  // namespace
