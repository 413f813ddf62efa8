#pragma once

#include <fastweights/math/products.hpp>
#include <fastweights/networks/operations/combine.hpp>
#include <fastweights/networks/operations/rows.hpp>

/// \file
/// The parameters of a network: parameters as values, embeddings and linear maps.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// A parameter as a constant value, row by row.
template <class S> struct Parameter final : Operation<S> {
  static constexpr bool is_constant = true;

  void forward(const Forward<S>& run) const override {
    run.out() = run.weight().template reshaped<Eigen::RowMajor>(run.out().rows(), 1);
  }
  void backward(const Backward<S>& run) const override {
    run.dweight().template reshaped<Eigen::RowMajor>(run.out().rows(), 1) += run.dout();
  }
};
/// A vector of n learned numbers with the path `name`, the same for every token.
template <class S>
Value<S> parameter(Builder<S>& builder, const std::string& name, Index n,
                   Initialiser draw = constant_initialiser(0)) {
  return builder.add(Parameter<S>{}, n, {}, {builder.weight(name, {n}, std::move(draw))});
}
/// A matrix with rows×cols entries, such as one row for every head.
template <class S>
Value<S> parameter_matrix(Builder<S>& builder, const std::string& name, Index rows, Index cols,
                          Initialiser draw = constant_initialiser(0)) {
  return builder.add(Parameter<S>{}, rows * cols, {},
                     {builder.weight(name, {rows, cols}, std::move(draw))});
}

/// A parameter as a constant value in the order of a memory's state: `parts` equal parts of its
/// rows, each column by column.
template <class S> struct StateParameter final : Operation<S> {
  static constexpr bool is_constant = true;
  Index parts;  ///< of the rows

  explicit StateParameter(Index n) : parts(n) {}
  void forward(const Forward<S>& run) const override {
    const Matrix<S>& weight = run.weight();
    const Index rows = weight.rows() / parts, size = rows * weight.cols();
    for (Index i = 0; i < parts; ++i)
      run.out().middleRows(i * size, size) = weight.middleRows(i * rows, rows).reshaped();
  }
  void backward(const Backward<S>& run) const override {
    Matrix<S>& dweight = run.dweight();
    const Index rows = dweight.rows() / parts, size = rows * dweight.cols();
    for (Index i = 0; i < parts; ++i)
      dweight.middleRows(i * rows, rows) +=
          run.dout().middleRows(i * size, size).reshaped(rows, dweight.cols());
  }
};
/// A matrix of learned numbers for an array of a memory's state: see StateParameter.
template <class S>
Value<S> state_parameter(Builder<S>& builder, const std::string& name, Index rows, Index cols,
                         Initialiser draw = constant_initialiser(0), Index parts = 1) {
  if (parts < 1 || rows % parts != 0)
    fw::detail::throw_invalid({builder.path(name), ": ", std::to_string(rows),
                               " rows do not divide into ", std::to_string(parts), " parts"});
  return builder.add(StateParameter<S>(parts), rows * cols, {},
                     {builder.weight(name, {rows, cols}, std::move(draw))});
}

/// The columns of a table for the symbols that the network is given. The column of the symbol
/// `padding` is not learned.
template <class S> struct Embedding final : Operation<S> {
  Index padding;  ///< negative: none

  explicit Embedding(Index symbol) : padding(symbol) {}
  bool takes_quantised_weight(std::size_t) const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    if (const auto* quantised = run.quantised_weight()) {
      for (Index t = 0; t < y.cols(); ++t) quantised->copy_row(run.ids[std::size_t(t)], y.col(t));
      return;
    }
    for (Index t = 0; t < y.cols(); ++t)
      y.col(t) = run.weight().row(run.ids[std::size_t(t)]).transpose();
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    for (Index t = 0; t < dy.cols(); ++t)
      if (run.ids[std::size_t(t)] != padding)
        run.dweight().row(run.ids[std::size_t(t)]) += dy.col(t).transpose();
  }
};
/// The rows of the table `name`.weight, symbols×d, for the symbols of the input. The row of
/// `padding` is not learned.
template <class S>
Value<S> embedding(Builder<S>& builder, const std::string& name, Index symbols, Index d,
                   Index padding = -1) {
  builder.take_symbols(symbols);
  const auto draw = [](double, double normal) { return 0.02 * normal; };
  return builder.add(Embedding<S>(padding), d, {},
                     {builder.weight(name + ".weight", {symbols, d}, draw)});
}

/// y = W x, plus b if the node has it.
template <class S> struct Linear final : Operation<S> {
  bool takes_quantised_weight(std::size_t i) const override { return i == 0; }
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    const bool biased = run.node.weights.size() > 1;
    if (const auto* quantised = run.quantised_weight()) {
      quantised->multiply(run.in(), y);
      if (biased) y.colwise() += run.weight(1).col(0);
    } else if (biased) {
      y.colwise() = run.weight(1).col(0);
      fw::detail::add_product(y, run.weight(), run.in(), fw::detail::one_block);
    } else {
      fw::detail::set_product(y, run.weight(), run.in(), fw::detail::one_block);
    }
  }
  void backward(const Backward<S>& run) const override {
    auto dx = run.din();
    if (run.node.weights.size() > 1) run.dweight(1) += run.dout().rowwise().sum();
    fw::detail::add_product(run.dweight(), run.dout(), run.in().transpose(), fw::detail::one_block);
    if (run.is_first())
      fw::detail::set_product(dx, run.weight().transpose(), run.dout(), fw::detail::one_block);
    else
      fw::detail::add_product(dx, run.weight().transpose(), run.dout(), fw::detail::one_block);
  }
};

/// y = W x (+ b), with PyTorch's names `name`.weight and `name`.bias.
template <class S>
Value<S> linear(const Value<S>& x, const std::string& name, Index rows, bool bias = false) {
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(x.rows())));
  Builder<S>& builder = *x.builder;
  std::vector<std::size_t> weights{builder.weight(name + ".weight", {rows, x.rows()}, draw)};
  if (bias) weights.push_back(builder.weight(name + ".bias", {rows}, draw));
  return builder.add(Linear<S>{}, rows, {x}, std::move(weights));
}

}  // namespace fw::networks
