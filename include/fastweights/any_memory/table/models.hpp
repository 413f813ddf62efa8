#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Memories whose state is a model that is trained at test time. A net starts from zero weights,
/// which learn nothing: set them, or learn the initial state.
template <class S> void add_models(MemoryTable<S>& table) {
  constexpr MemoryFacts square{.square = true};
  table.add(
      "TttLinear",
      [](auto& o) {
        const Index d = o.size();
        return TttLinear<S>(
            {d}, {.batch = o.integer("batch", 16), .objective = {o.number("epsilon", 1e-6)}});
      },
      square);
  table.add(
      "TttMlp",
      [](auto& o) {
        const Index d = o.size();
        return TttMlp<S>({d}, {.batch = o.integer("batch", 16),
                               .model = {o.integer("hidden", 4 * d)},
                               .objective = {o.number("epsilon", 1e-6)}});
      },
      square);
  table.add("TitansMlp", [](auto& o) {
    return TitansMlp<S>(o.sizes(), {.model = {o.integer("hidden", 4 * o.sizes().key_size)}});
  });
  table.add(
      "NormalisedTitans",
      [](auto& o) {
        return NormalisedTitans<S>({o.size()}, {.objective = {o.number("epsilon", 1e-6)}});
      },
      square);
  table.add("TttRegression", [](auto& o) {
    return TestTimeTraining<S, Dynamic, Dynamic, LinearModel<false>, SquaredObjective>(
        o.sizes(), {.batch = o.integer("batch", 16)});
  });
  table.add("TitansRegression", [](auto& o) {
    return TitansLearner<S, Dynamic, Dynamic, LinearModel<false>, SquaredObjective>(o.sizes());
  });
}

}  // namespace fw::detail
