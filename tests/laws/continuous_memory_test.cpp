#include "support/continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory with even sampling obeys the laws", "[laws][continuous]") {
  obeys(memory(4, 2, 3, 5, 6));
  obeys(memory(3, 1, 1, 1, 1, Contraction::fixed(0.5)));
  obeys(memory(6, 3, 4, 2, 7, Contraction::fixed(0.9)));
  obeys(memory(1, 1, 5, 8, 5));
}

TEST_CASE("continuous memory with several components obeys the laws", "[laws][continuous]") {
  using M = Memory<double>;
  obeys(M(options<M>(4, 2, 3, 5), {6, {0.1, 0.3}}, density(6, 3)));
}

TEST_CASE("continuous memory: fixed and dynamic sizes agree", "[laws][continuous]") {
  const auto dynamic = memory(4, 2, 3, 5, 6);
  using Fixed = Memory<double, EvenSampling, 4>;
  const Fixed fixed(options<Fixed>(4, 2, 3, 5), {6, {0.1, 0.3}}, density(6));
  laws::all(fixed);
  laws::fixed_is_dynamic(fixed, dynamic, false);
}

TEST_CASE("continuous memory with a Gibbs density over slots obeys the laws",
          "[laws][continuous]") {
  for (const Index slots : {1, 5}) {
    const Slots<double> basis(slots);
    obeys(Gibbs<double>(options<Gibbs<double>>(4, 2, 3, 5), basis, fw::GibbsDensity(basis)));
  }
}

TEST_CASE("continuous memory supports automatic differentiation", "[laws][continuous]") {
  laws::takes_autodiff(memory(4, 2, 3, 5, 6), false);
}

TEST_CASE("continuous memory with sticky sampling obeys the laws", "[laws][continuous]") {
  using M = Memory<double, StickySampling>;
  for (const SamplingScheme scheme : {SamplingScheme::stratified, SamplingScheme::published}) {
    auto o = options<M>(4, 2, 3, 5);
    o.sampling = {16, scheme};
    obeys(M(o, {6, {0.1, 0.3}}, density(6)));
  }
}

}  // namespace
