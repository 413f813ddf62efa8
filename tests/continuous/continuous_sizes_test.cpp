#include <cmath>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/catch.hpp"

/// \file
/// The sizes that a continuous memory chooses keep what the rule in contraction.hpp says. What is
/// left of a chunk is measured by writes.

namespace {

using Catch::Matchers::ContainsSubstring;
using fw::Contraction;
using fw::Index;
using Slots = fw::RectangularBasis<double>;
using Memory = fw::ContinuousMemory<double, fw::GibbsDensity<double>, Slots>;

Memory of_slots(Index slots, Memory::Options options) {
  const Slots basis(slots);
  return {options, basis, fw::GibbsDensity<double>(basis)};
}

// The share left of each chunk in the function that has most of it, the newest first. Chunk i sets
// feature i to 1 and all others to 0.
Eigen::VectorXd shares(const Memory& memory, Index chunks) {
  auto options = memory.options();
  options.d = chunks;
  const Memory wide(options, memory.basis(), memory.density());
  auto state = fw::initial_state(wide);
  for (Index i = 0; i < chunks; ++i) {
    Eigen::MatrixXd chunk = Eigen::MatrixXd::Zero(chunks, options.chunk);
    chunk.row(i).setOnes();
    fw::write(wide, state, {chunk});
  }
  return state.coefficients.rowwise().maxCoeff().reverse();
}

// The writes for which one half is left, and what the memory says.
Index kept(const Memory& memory, Index chunks) {
  const Eigen::VectorXd left = shares(memory, chunks);
  Index count = 0;
  while (count < chunks && left[count] >= 0.5) ++count;
  return count;
}
Index said(const Memory& memory) {
  return memory.kept_tokens(memory.options().chunk) / memory.options().chunk;
}

}  // namespace

TEST_CASE("chosen samples and ridge keep what the rule says", "[continuous]") {
  for (const double tau : {0.5, 0.75, 0.9})
    for (const Index slots : {32, 64, 128})
      for (const Index chunk : {64, 200}) {
        const auto m =
            of_slots(slots, {.d = 1, .chunk = chunk, .contraction = Contraction::fixed(tau)});
        CAPTURE(tau, slots, chunk);
        CHECK(m.options().samples == 4 * slots);
        CHECK(static_cast<double>(said(m)) >=
              std::log(0.5 * static_cast<double>(slots) * (1 - tau)) / -std::log(tau));
        const Index writes = kept(m, 40);
        CHECK(writes >= said(m));
        CHECK(writes <= said(m) + 2);
      }
}

TEST_CASE("settings that lose the past are found by kept_tokens", "[continuous]") {
  struct Case {
    Index samples;
    double ridge;
    Index writes;
  };
  // Of 64 slots. The first one was the default, the second one the guide's.
  for (const auto& [samples, ridge, writes] :
       {Case{1, 1, 1}, {256, 1, 4}, {64, 1, 2}, {1024, 1, 9}, {0, 0, 10}}) {
    const auto m = of_slots(64, {.d = 1,
                                 .chunk = 512,
                                 .samples = samples,
                                 .contraction = Contraction::fixed(0.75),
                                 .regression = {.ridge = ridge}});
    CAPTURE(samples, ridge);
    CHECK(kept(m, 30) == writes);
    CHECK(std::abs(static_cast<double>(said(m) - writes)) <= 1);
  }
}

TEST_CASE("a memory made for a horizon keeps it", "[continuous]") {
  for (const Index writes : {1, 2, 5, 10}) {
    CAPTURE(writes);
    const Index horizon = 512 * writes;
    const Memory fixed({.d = 1, .chunk = 512, .contraction = Contraction::fixed(0.75, horizon)});
    CHECK(fixed.kept_tokens(512) >= horizon);
    CHECK(kept(fixed, 25) >= writes);
    const Memory even({.d = 1, .chunk = 512, .contraction = Contraction::even(horizon)});
    CHECK(even.kept_tokens(512) >= horizon);
    CHECK(kept(even, writes) == writes);
    CHECK(kept(even, 2 * writes + 3) >= writes);
    // Fewer functions are refused. (One of them may be there for rounding.)
    const Index fewer = fixed.basis().size() - 2;
    CHECK_THROWS_WITH(
        of_slots(fewer, {.d = 1, .chunk = 512, .contraction = Contraction::fixed(0.75, horizon)}),
        ContainsSubstring("functions"));
  }
  const Memory guide({.d = 8, .chunk = 512, .contraction = Contraction::fixed(0.75, 5120)});
  CHECK(guide.basis().size() == 54);
  CHECK(guide.options().samples == 216);
  CHECK(guide.kept_tokens(512) == 5120);
}

TEST_CASE("a horizon that cannot be kept is refused, own samples are not", "[continuous]") {
  const Memory::Options options{.d = 1, .chunk = 64, .contraction = Contraction::even(2560)};
  CHECK_THROWS_WITH(of_slots(64, options),
                    ContainsSubstring("ContinuousMemory: 64 functions keep 0 tokens in writes of "
                                      "64 (`chunk`), the horizon is 2560; expected 319 slots"));
  CHECK_NOTHROW(of_slots(319, options));
  auto own = options;
  own.samples = 256;
  CHECK_NOTHROW(of_slots(64, own));
  auto single = options;
  single.chunk = 1;
  CHECK_THROWS_WITH(of_slots(64, single), ContainsSubstring("expected longer writes"));
  CHECK_THROWS_WITH(Memory(single), ContainsSubstring("no number of functions"));
  CHECK_THROWS_WITH(Memory({.d = 1, .chunk = 64}), ContainsSubstring("no number of functions"));
  CHECK_THROWS_WITH(Memory({.d = 1, .chunk = 64, .contraction = Contraction::fixed(0.75, 6400)}),
                    ContainsSubstring("no number of functions"));
  CHECK_THROWS_WITH(of_slots(64, options).kept_tokens(0), ContainsSubstring("functions keep"));
  CHECK_THROWS_WITH(of_slots(64, own).kept_tokens(0), ContainsSubstring("new_tokens is 0"));
}

TEST_CASE("a cast memory has the sizes that were chosen", "[continuous]") {
  const Memory m({.d = 2, .chunk = 64, .contraction = Contraction::fixed(0.75, 128)});
  const auto narrow = m.cast<float>();
  CHECK(narrow.options().samples == m.options().samples);
  CHECK(narrow.options().regression.ridge == m.options().regression.ridge);
  CHECK(narrow.basis().size() == m.basis().size());
}

TEST_CASE("Gaussians without a ridge have at most the published one", "[continuous]") {
  using Density = fw::MixtureDensity<double, fw::MatchedComponent<double>>;
  const fw::ContinuousMemory<double, Density> published(
      {.d = 1, .chunk = 512, .samples = 512, .contraction = Contraction::fixed(0.75)},
      {512, {0.005, 0.01}}, {});
  CHECK(published.options().regression.ridge == 1);
  CHECK(published.options().samples == 512);
}
