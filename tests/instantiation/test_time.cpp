// As memories.cpp, for the memories that learn at test time.

#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/kalma_memory.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/momentum_delta_rule.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/recursive_least_squares.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class MomentumDeltaRule<double, 3, 4>;
template class TitansMemory<double, 3, 4>;
template class MesaMemory<double, 3, 4>;
template class MesaMemory<float, 3, 4, ConjugateGradients>;
template class KalmaMemory<double, 3, 4>;
template class RecursiveLeastSquares<double, 3, 4>;
template class RecursiveLeastSquares<float, 3, 1>;
template class MirasMemory<double, 3, 4, HuberLoss, PlainRetention>;
template class MirasMemory<float, 3, 1, SquaredLoss, SoftmaxRetention>;
template class OmegaMemory<double, 3, 4, 2>;
template class AtlasMemory<double, 3, 4, 2>;
template class TestTimeTraining<double, 4, 4, MlpModel<InnerGelu, 6>, NormalisedObjective<>>;
template class TitansLearner<double, 3, 3, LinearModel<false>,
                             NormalisedObjective<Residual::answer, NormGradient::fla_titans>>;

}  // namespace fw
