#pragma once

#include <fastweights/core/leaves.hpp>
#include <fastweights/networks/quantised_matrix.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

template <class S> using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;

/// The function by which the entries of a weight are drawn by Network::initialise.
using Initialiser = std::function<double(double uniform, double normal)>;
/// Always this value.
inline Initialiser constant_initialiser(double value) {
  return [value](double, double) { return value; };
}
/// Uniform in ±bound.
inline Initialiser uniform_initialiser(double bound) {
  return [bound](double uniform, double) { return bound * (2 * uniform - 1); };
}

namespace detail {

// A matrix of one column that is a vector in files and for an optimiser, such as a bias.
template <class S> fw::detail::Leaf vector_leaf(void* matrix) {
  fw::detail::Leaf leaf = fw::detail::object_type<Matrix<S>>.leaf(matrix);
  leaf.is_column = true;
  return leaf;
}
template <class S>
inline constexpr fw::detail::ObjectType vector_type{nullptr, nullptr, &vector_leaf<S>};

}  // namespace detail

/// A parameter under its published name. `axes` is its shape in a file, where axes of length 1 do
/// not count; the matrix has the last axis as columns and the others as rows. It is empty until the
/// weights are drawn or loaded, and again if `quantised` takes its place.
template <class S> struct Weight {
  Matrix<S> value;  ///< the entries; empty if there are none yet, or they are quantised
  std::string name;
  std::vector<Index> axes;                              ///< the lengths of the axes in a file
  Initialiser initialiser;                              ///< how `initialise` draws it
  std::shared_ptr<const QuantisedMatrix<S>> quantised;  ///< the entries in quantised form, or null
  Matrix<double> centre = {};  ///< added to what is drawn, entry by entry; empty: nothing
  static constexpr auto names =
      fw::names("value", "name", "axes", "initialiser", "quantised", "centre");

  /// The columns of the matrix.
  Index cols() const { return axes.size() == 1 ? 1 : axes.back(); }
  /// The rows of the matrix.
  Index rows() const {
    Index rows = 1;
    for (std::size_t i = 0; i + (axes.size() > 1) < axes.size(); ++i) rows *= axes[i];
    return rows;
  }

  /// The entries as a member of a record.
  fw::detail::Object object() {
    fw::detail::Object entries = fw::detail::object(value, name);
    if (axes.size() == 1) entries.type = &detail::vector_type<S>;
    return entries;
  }
  /// Takes the entries of a matrix, as a quantised one if `type` is given.
  template <class M> void set(const M& m, std::optional<WeightType> type = {}) {
    quantised = type ? std::make_shared<const QuantisedMatrix<S>>(m, *type) : nullptr;
    if (type) return value.resize(0, 0);
    value.resize(m.rows(), m.cols());
    constexpr Index some = 32;  // rows that stay in the cache, should m be row-major
    for (Index i = 0; i < m.rows(); i += some) {
      const Index count = std::min(some, m.rows() - i);
      value.middleRows(i, count) = m.middleRows(i, count);
    }
  }
  /// Replaces the matrix by a quantised one, if there is a matrix.
  void quantise(WeightType type) {
    if (value.size() > 0) set(value, type);
  }
};

}  // namespace fw::networks
