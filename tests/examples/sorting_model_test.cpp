#include <training/sorting_trainer.hpp>

#include "examples/gradient.hpp"

namespace {

const SortingOptions tiny{.layers = 2,
                          .width = 8,
                          .heads = 2,
                          .hidden = 8,
                          .window = 8,
                          .chunk = 16,
                          .functions = 9,
                          .samples = 32,
                          .sticky = 16,
                          .rate = 2,
                          .widths = {0.1}};

template <class S = float, class F> void with_tiny(const std::string& kind, const F& f) {
  with_sorting_model<S>(kind, tiny, [&](auto model) {
    fw::Random random(3);
    fw::initialise(model, random);
    f(model);
  });
}

}  // namespace

TEST_CASE("Sorting: outputs so far have embeddings of their own", "[examples]") {
  const SortSequence sequence = draw_sort_sequence(1, 0, 30);
  const std::vector<int> ids = ids_of(sequence);
  REQUIRE(ids.size() == 30 + sort_symbols);
  for (std::size_t i = 0; i < 30; ++i) CHECK(ids[i] == sequence.input[i]);
  CHECK(ids[30] == sort_separator);
  for (std::size_t i = 1; i < sort_symbols; ++i)
    CHECK(ids[30 + i] == sort_vocabulary + sequence.targets[i - 1]);
}

TEST_CASE("Sorting: the gradient of every model", "[examples]") {
  for (const Kind& kind : sorting_kinds) {
    INFO(kind.title);
    with_tiny<double>(kind.key, [&](auto model) {
      // One chunk is written, and in the train pass: what is older counts as constant.
      SortingTrainer<decltype(model)> trainer(model, 40);
      trainer.gradient(model, 1, 0, 3, 8);
      const auto gradient = trainer.gradient();
      check_gradient(model, gradient, [&] { return trainer.gradient(model, 1, 0, 3, 8).loss; });
    });
  }
}

TEST_CASE("Sorting: a model without a long-term memory need not read what it cannot see",
          "[examples]") {
  with_tiny("cache", [&](auto model) {
    using Trainer = SortingTrainer<decltype(model)>;
    const auto all = Trainer(model, 8).evaluate(model, 1, 5, 60),
               seen = Trainer(model, 8, tiny.reach()).evaluate(model, 1, 5, 60);
    CHECK(seen.accuracy == all.accuracy);
    CHECK(seen.loss == Catch::Approx(all.loss));
    CHECK(Trainer(model, 8, 1).evaluate(model, 1, 5, 60).loss !=
          Catch::Approx(all.loss).epsilon(1e-4));
  });
}
