#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>

#include "checks.hpp"

namespace {

template <int D> void check_all(Index d) {
  using S = float;
  check(fw::MesaMemory<S, D, D>({d}), "exact");
  check(fw::MesaMemory<S, D, D, fw::ConjugateGradients>({d}, {3}), "conjugate gradients");
  check(fw::Yaad<S, D, D>({d}), "Yaad");
  check(fw::Moneta<S, D, D>({d}), "Moneta");
  check(fw::Memora<S, D, D>({d}), "Memora");
  check(fw::OmegaMemory<S, D, D, D>({d}, d));
  check(fw::AtlasMemory<S, D, D, D>({d}, d));
}

}  // namespace

void check_learners() {
  Eigen::setNbThreads(1);  // Eigen's parallel products allocate
  check_all<3>(3);
  for (const Index d : {3, 64}) check_all<Dynamic>(d);
  Eigen::setNbThreads(0);
}
