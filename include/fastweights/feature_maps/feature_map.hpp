#pragma once

#include <concepts>
#include <fastweights/core/check.hpp>
#include <fastweights/math/activations.hpp>

/// \file
/// Feature maps: functions applied to keys and queries before a memory uses them. A map treats each
/// column of x by itself: one column (a token) and D×T (a sequence) share the code. Scalars are
/// float, double, complex and those of automatic differentiation. For the complex step, branches
/// depend on the real part and nothing is conjugated. Sizes are fixed or dynamic. A token takes no
/// heap.
///
///     struct Square {
///       static constexpr std::string_view name = "Square";
///       template <int D> static constexpr int fixed_features = D;  // output rows for D input rows
///       Index features(Index d) const;                             // the same at run time
///       void map(const X& x, Y& y) const;                          // y = φ(x)
///       void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const;  // dx += J(x)ᵀ dy
///     };
///
/// `map` and `vjp` are templates on Eigen matrices, maps and blocks. They check nothing: fw::apply
/// and fw::apply_vjp check sizes and call them. `vjp` takes both x and y = φ(x). x, y, dy and dx
/// must not overlap. `features` throws std::invalid_argument for a d that the map cannot take.

namespace fw::inline FASTWEIGHTS_ABI {

/// Maps a key or query to its features, column by column, with a vector-Jacobian product.
template <class M>
concept FeatureMap = requires(const M& map, Index d, const Eigen::VectorXd& x, Eigen::VectorXd& y) {
  { M::name } -> std::convertible_to<std::string_view>;
  { M::template fixed_features<Dynamic> } -> std::convertible_to<int>;
  { map.features(d) } -> std::same_as<Index>;
  map.map(x, y);
  map.vjp(x, y, x, y);
};

namespace detail {

// float or double, for which Eigen has SIMD minima, maxima and exponentials.
template <class X> inline constexpr bool is_real = std::is_floating_point_v<typename X::Scalar>;

// The sizes of a map with as many features as input rows.
struct KeepsRows {
  template <int D> static constexpr int fixed_features = D;
  Index features(Index d) const { return d; }
};

struct MatrixSize {
  Index rows, cols;
};
template <class X> MatrixSize size_of(const X& x) { return {x.rows(), x.cols()}; }

// Throws unless `given`, the size of an operand of a map, is the expected one. `of` names what sets
// the number of rows.
inline void check_mapped(std::string_view map, std::string_view member, MatrixSize given,
                         MatrixSize expected, const char* of) {
  if (given.rows != expected.rows)
    throw_mismatch(map, member, given.rows, "rows", expected.rows, of);
  if (given.cols != expected.cols)
    throw_mismatch(map, member, given.cols, "columns", expected.cols, "the sequence");
}

// The size of φ(x).
template <class M> MatrixSize mapped_size(const M& map, MatrixSize x) {
  if (x.rows < 1) throw_invalid({M::name, ": x has 0 rows, expected at least 1"});
  return {map.features(x.rows), x.cols};
}

}  // namespace detail

/// y = φ(x), column by column. Throws std::invalid_argument and leaves y unchanged when y does not
/// have the size of φ(x).
template <FeatureMap M, class X, class Y> void apply(const M& map, const X& x, Y&& y) {
  const detail::MatrixSize expected = detail::mapped_size(map, detail::size_of(x));
  detail::check_mapped(M::name, "y", detail::size_of(y), expected, "the feature map");
  map.map(x, y);
}

/// dx += J(x)ᵀ dy, where y = φ(x). Throws std::invalid_argument and leaves dx unchanged when a size
/// is wrong.
template <FeatureMap M, class X, class Y, class Dy, class Dx>
void apply_vjp(const M& map, const X& x, const Y& y, const Dy& dy, Dx&& dx) {
  const detail::MatrixSize expected = detail::mapped_size(map, detail::size_of(x));
  detail::check_mapped(M::name, "y", detail::size_of(y), expected, "the feature map");
  detail::check_mapped(M::name, "dy", detail::size_of(dy), expected, "the feature map");
  detail::check_mapped(M::name, "dx", detail::size_of(dx), detail::size_of(x), "the input");
  map.vjp(x, y, dy, dx);
}

/// The map for scalar T. A map with parameters has a cast<T>(), other maps take any scalar.
template <class T, FeatureMap M> auto cast_feature_map(const M& map) {
  if constexpr (requires { map.template cast<T>(); })
    return map.template cast<T>();
  else
    return map;
}

}  // namespace fw
