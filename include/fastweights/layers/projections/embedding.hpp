#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/layers/layer.hpp>
#include <span>

namespace fw::inline FASTWEIGHTS_ABI {

/// Tokens as symbol numbers 0 … symbols − 1. A std::vector<int> converts to it.
using Symbols = std::span<const int>;

namespace detail {

inline void check_symbol(std::string_view name, std::size_t t, int id, Index symbols) {
  if (id < 0 || id >= symbols)
    throw_invalid({name, ": token ", std::to_string(t), " is ", std::to_string(id),
                   ", expected 0 to ", std::to_string(symbols - 1)});
}
inline void check_symbols(std::string_view name, Symbols ids, Index symbols) {
  for (std::size_t t = 0; t < ids.size(); ++t) check_symbol(name, t, ids[t], symbols);
}

}  // namespace detail

/// A learned vector for every symbol, with PyTorch's name and shape.
///
///     y_t = row ids_t of the weight
///
/// Shapes: ids T, y d×T, weight symbols×d, row-major, so that a symbol's vector is contiguous.
/// Cost per token: a copy of d numbers. Throws std::invalid_argument when a size does not fit or a
/// symbol is out of range.
template <class S> struct Embedding {
  using Scalar = S;
  static constexpr std::string_view name = "Embedding";

  Eigen::Matrix<S, Dynamic, Dynamic, Eigen::RowMajor> weight;
  static constexpr auto names = fw::names("weight");

  /// Zero until initialised or loaded.
  Embedding(Index symbols, Index d) {
    detail::check_size<Dynamic>(name, "symbols", symbols);
    detail::check_size<Dynamic>(name, "d", d);
    weight.setZero(symbols, d);
  }

  /// The number of symbols.
  Index symbols() const { return weight.rows(); }
  Index outputs() const { return weight.cols(); }

  /// Normal with standard deviation 0.02.
  template <class Generator> void initialise(Generator& random) {
    weight = weight.NullaryExpr(weight.rows(), weight.cols(),
                                [&] { return S(0.02 * static_cast<double>(random.normal())); });
  }

  void forward(Symbols ids, Output<S> y) const {
    check(ids, "y", y);
    for (Index t = 0; t < y.cols(); ++t) y.col(t) = weight.row(id_at(ids, t)).transpose();
  }

  void backward(Symbols ids, Input<S> dy, Embedding& grad) const {
    check(ids, "dy", dy);
    detail::check_same_shapes(name, *this, "grad", grad);
    for (Index t = 0; t < dy.cols(); ++t) grad.weight.row(id_at(ids, t)) += dy.col(t).transpose();
  }

 private:
  static Index id_at(Symbols ids, Index t) { return ids[static_cast<std::size_t>(t)]; }

  template <class View> void check(Symbols ids, std::string_view argument, const View& view) const {
    detail::check_symbols(name, ids, symbols());
    detail::check_extent(name, argument, view, outputs(), static_cast<Index>(ids.size()));
  }
};

}  // namespace fw
