#pragma once

#include <fastweights/networks/builder.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Numbers that are the same for every token and are not learned.
template <class S> struct Constants final : Operation<S> {
  std::vector<double> numbers;  ///< the rows of the value

  explicit Constants(std::vector<double> entries) : numbers(std::move(entries)) {}
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    for (Index i = 0; i < y.rows(); ++i) y.row(i).setConstant(S(numbers[std::size_t(i)]));
  }
  void backward(const Backward<S>&) const override {}
};
/// Numbers that are the same for every token.
template <class S> Value<S> constants(Builder<S>& builder, std::vector<double> numbers) {
  const Index rows = Index(numbers.size());
  return builder.add(Constants<S>(std::move(numbers)), rows, {});
}

}  // namespace fw::networks
