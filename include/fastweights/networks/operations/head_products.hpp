#pragma once

#include <fastweights/networks/operations/weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Rows of a weight for every head: rows first … first + count − 1 of each of `heads` equal parts.
struct HeadRows {
  Index heads = 1, first = 0, count = 1;  ///< the number of heads; the rows of each
};

/// y_h = W_h x_h for every head h, or y_h = W_hᵀ x_h. W_h are rows of one weight, the part of a
/// projection that belongs to the head. As (W_h a)·b = a·(W_hᵀ b), one of two vectors that are
/// multiplied can stay as it was before its projection: the absorbed weights of latent attention,
/// DeepSeek-AI 2024, arXiv 2405.04434, section 2.1.2.
template <class S> struct HeadProducts final : Operation<S> {
  HeadRows rows;    ///< the rows of the weight
  bool transposed;  ///< whether the product is with W_hᵀ

  HeadProducts(const HeadRows& r, bool t) : rows(r), transposed(t) {}

  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    y.setZero();
    for (Index h = 0; h < rows.heads; ++h) {
      const auto w = of_head(run.weight(), h);
      auto yh = part(y, h);
      if (transposed)
        fw::detail::add_product(yh, w.transpose(), part(x, h), fw::detail::one_block);
      else
        fw::detail::add_product(yh, w, part(x, h), fw::detail::one_block);
    }
  }

  void backward(const Backward<S>& run) const override {
    const auto x = run.in(), dy = run.dout();
    auto dx = run.din();
    for (Index h = 0; h < rows.heads; ++h) {
      const auto w = of_head(run.weight(), h);
      auto dw = of_head(run.dweight(), h);
      const auto xh = part(x, h), dyh = part(dy, h);
      auto dxh = part(dx, h);
      if (transposed) {
        fw::detail::add_product(dxh, w, dyh, fw::detail::one_block);
        fw::detail::add_product(dw, xh, dyh.transpose(), fw::detail::one_block);
      } else {
        fw::detail::add_product(dxh, w.transpose(), dyh, fw::detail::one_block);
        fw::detail::add_product(dw, dyh, xh.transpose(), fw::detail::one_block);
      }
    }
  }

 private:
  template <class W> auto of_head(W& weight, Index h) const {
    return weight.middleRows(h * (weight.rows() / rows.heads) + rows.first, rows.count);
  }
  template <class X> auto part(X& x, Index h) const {
    const Index d = x.rows() / rows.heads;
    return x.middleRows(h * d, d);
  }
};

/// The products of the heads of x with their rows of the weight `name`.weight, which has `count`
/// rows and `columns` columns. Gives rows.count rows a head, transposed `columns` rows.
template <class S>
Value<S> head_products(const Value<S>& x, const std::string& name, Index count, Index columns,
                       const HeadRows& rows, bool transposed = false) {
  Builder<S>& net = *x.builder;
  if (rows.heads < 1 || rows.first < 0 || rows.count < 1)
    fw::detail::throw_invalid({net.path(name), ": has no such rows of heads"});
  const Index in = transposed ? rows.count : columns, out = transposed ? columns : rows.count;
  if (x.rows() != rows.heads * in)
    fw::detail::throw_mismatch(net.path(name), "the input", x.rows(), "rows", rows.heads * in,
                               "the heads");
  if (count % rows.heads != 0 || rows.first + rows.count > count / rows.heads)
    fw::detail::throw_invalid({net.path(name), ": has too few rows for its heads"});
  return net.add(HeadProducts<S>(rows, transposed), rows.heads * out, {x},
                 {net.weight(name + ".weight", {count, columns},
                             uniform_initialiser(1 / std::sqrt(double(columns))))});
}

}  // namespace fw::networks
