#include <models/sorting/sorting_model.hpp>
#include <training/sequence_trainer.hpp>

#include "examples/gradient.hpp"
#include "support/catch.hpp"

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

template <class S = float>
std::unique_ptr<SortingModel> tiny_model(const std::string& kind, const SortingReading& reading) {
  auto model = make_sorting_model<S>(kind, tiny);
  fw::Random random(3);
  model->initialise(random);
  model->reading = reading;
  return model;
}

auto drawn(long length) {
  return [length](long i) {
    return sorting_sequence(draw_sort_sequence(1, static_cast<std::uint64_t>(i), length));
  };
}

}  // namespace

TEST_CASE("Sorting: outputs so far have embeddings of their own", "[examples]") {
  const SortSequence sequence = draw_sort_sequence(1, 0, 30);
  const std::vector<int> ids = sorting_sequence(sequence).input;
  REQUIRE(ids.size() == 30 + sort_symbols);
  for (std::size_t i = 0; i < 30; ++i) CHECK(ids[i] == sequence.input[i]);
  CHECK(ids[30] == sort_separator);
  for (std::size_t i = 1; i < sort_symbols; ++i)
    CHECK(ids[30 + i] == sort_vocabulary + sequence.targets[i - 1]);
}

TEST_CASE("Sorting: the gradient of every model", "[examples]") {
  for (const Kind& kind : sorting_kinds) {
    INFO(kind.title);
    // One chunk is written, and in the train pass: older chunks count as constant.
    const auto model = tiny_model<double>(kind.key, {.tail = 40});
    check_sequence_gradient(*model, std::vector{drawn(8)(0), drawn(8)(1), drawn(8)(2)});
  }
}

TEST_CASE("Sorting: a model without a long-term memory need not read what it cannot see",
          "[examples]") {
  const auto evaluate = [](long reach) {
    const auto model = tiny_model("cache", {.tail = 8, .reach = reach});
    return SequenceTrainer(*model).evaluate(5, drawn(60));
  };
  const Score all = evaluate(0), seen = evaluate(tiny.reach());
  CHECK(seen.accuracy() == all.accuracy());
  CHECK(seen.loss == Catch::Approx(all.loss));
  CHECK(evaluate(1).loss != Catch::Approx(all.loss).epsilon(1e-4));
}
