#include <fastweights/testing/any_gradient_check.hpp>

#include "support/catch.hpp"
#include "support/subject.hpp"

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
  const auto error =
      fw::testing::gradient_error(memory, subject.memory<laws::Complex>(),
                                  laws::first_state(memory), steps, 8, subject.positive());
  INFO("worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

TEST_CASE("gradients are exact: square sizes", "[laws][gradients]") {
  for (const Index d : {1, 3, 9})
    for (const Subject& subject : laws::subjects(d, d))
      for (const Index steps : {1, 17}) has_exact_gradients(subject, steps);
}

TEST_CASE("gradients are exact: values that are longer or shorter than keys",
          "[laws][gradients]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}})
    for (const Subject& subject : laws::subjects(dk, dv)) has_exact_gradients(subject, 6);
}

TEST_CASE("gradients are exact: other options", "[laws][gradients]") {
  for (const Subject& subject : laws::variants()) has_exact_gradients(subject, 9);
}

}  // namespace
