#include "support/catch.hpp"
#include "support/laws.hpp"
#include "support/sizes.hpp"

/// \file
/// Every memory: the gradients of all inputs, queries and the initial state equal the complex step.

namespace {

using fw::Index;
using laws::Subject;

void has_exact_gradients(const Subject& subject, Index steps) {
  if (!subject.has<laws::Complex>()) return;
  const auto memory = subject.memory<double>();
  if (!memory.can().differentiable) return;
  INFO(subject.text() << ", " << steps << " tokens");
  laws::gradients_are_exact(memory, subject.memory<laws::Complex>(), steps, subject.positive());
}

TEST_CASE("gradients are exact: square sizes", "[laws][gradients]") {
  for (const Index d : sizes({1, 3, 9}, {1, 3}))
    for (const Subject& subject : laws::subjects(d, d)) {
      // A key of one entry has length 1 whatever it is: its gradient is 0 and has no relative
      // error.
      if (d == 1 && subject.name == "L2GatedDeltaRule") continue;
      for (const Index steps : {1, 17}) has_exact_gradients(subject, steps);
    }
}

TEST_CASE("gradients are exact: values that are longer or shorter than keys", "[laws][gradients]") {
  using Pair = std::pair<Index, Index>;
  for (const auto& [dk, dv] : sizes<Pair>({{1, 5}, {5, 1}, {3, 17}, {17, 4}}, {{5, 2}, {3, 5}}))
    for (const Subject& subject : laws::subjects(dk, dv)) {
      if (dk == 1 && subject.name == "L2GatedDeltaRule") continue;
      has_exact_gradients(subject, 6);
    }
  // The kernels have other panels for long keys.
  for (const Subject& subject : laws::subjects(sizes({65}, {17})[0], 4))
    if (subject.memory<double>().can().traced_backward) has_exact_gradients(subject, 6);
}

TEST_CASE("gradients are exact: other options", "[laws][gradients]") {
  for (const Subject& subject : laws::variants()) {
    // Leaves out a part of the gradient, as the paper does.
    if (subject.options.more.count("gradients_of_the_past") != 0) continue;
    has_exact_gradients(subject, 9);
  }
}

TEST_CASE("gradients of reads after all writes are exact", "[laws][gradients]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{3, 3}, {5, 2}})
    for (const Subject& subject : laws::subjects(dk, dv)) {
      if (!subject.has<laws::Complex>()) continue;
      INFO(subject.text());
      laws::gradients_of_reads_are_exact(subject.memory<double>(), subject.memory<laws::Complex>(),
                                         subject.positive());
    }
}

TEST_CASE("a backward pass from the first state is one from checkpoints", "[laws][gradients]") {
  // A key of one entry that is divided by its sum is 1: its gradient is rounding alone.
  for (const auto& [dk, dv] : {std::pair<Index, Index>{2, 1}, {3, 3}, {5, 2}})
    for (const Subject& subject : laws::subjects(dk, dv)) {
      INFO(subject.text());
      laws::backward_from_the_first_state(subject.memory<double>(), subject.positive());
    }
}

TEST_CASE("checkpoints serve another size", "[laws][gradients]") {
  for (const auto& [from, to] : {std::pair<Index, Index>{1, 40}, {9, 2}}) {
    const auto before = laws::subjects(from, from), after = laws::subjects(to, to);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      INFO(before[i].text() << ", then " << after[i].text());
      laws::checkpoints_fit_another_size(before[i].memory<double>(), after[i].memory<double>(),
                                         before[i].positive());
    }
  }
}

TEST_CASE("gradients of a wrong size are refused and leave all gradients unchanged",
          "[laws][gradients]") {
  for (const Subject& subject : laws::subjects(3, 3)) {
    INFO(subject.text());
    laws::wrong_gradients_are_refused(subject.memory<double>(), subject.positive());
  }
}

}  // namespace
