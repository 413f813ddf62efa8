#include <fastweights/memories/rules/gated_delta_product.hpp>

#include "kernels/gradient_cases.hpp"

// Several writes per token.
namespace {

template <class S> using TwoWrites = fw::GatedDeltaProduct<S, 2>;
template <class S> using ThreeWrites = fw::GatedDeltaProduct<S, 3>;
using Rules = gradients::Rules<TwoWrites, ThreeWrites>;

TEST_CASE("kernels: gradients of products in every size", "[kernels]") {
  gradients::check_corrections_of_every_size<Rules>();
}

TEST_CASE("kernels: gradients of products of every length", "[kernels]") {
  gradients::check_corrections_of_every_length<Rules>();
}

TEST_CASE("kernels: gradients of products with decays of any size", "[kernels]") {
  gradients::check_corrections_with_any_decay<Rules>();
}

}  // namespace
