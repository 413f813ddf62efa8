#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

#include "support/laws.hpp"

namespace {

template <int Dk, int Dv> using Iterative = fw::MesaMemory<double, Dk, Dv, fw::ConjugateGradients>;

TEST_CASE("the Mesa memory with conjugate gradients takes other scalars and fixed sizes",
          "[laws][mesa]") {
  laws::other_forms(Iterative<4, 3>({}, {3}), Iterative<-1, -1>({4, 3}, {3}));
}
TEST_CASE("the normalised memory of Titans takes automatic differentiation and float",
          "[laws][titans]") {
  laws::takes_autodiff(fw::NormalisedTitans<double>({4}), false);
  laws::float_follows_double(fw::NormalisedTitans<double>({4}), false);
}

}  // namespace
