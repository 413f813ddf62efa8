#pragma once

#include "../rules.hpp"

namespace measure {

/// One head for a naive expression. D is its size or Dynamic. W is a map, because Eigen allows no
/// fixed-size matrix above 128 KiB. The tokens have the same strides as the library's views.
template <class S, int D> struct NaiveHead {
  using Columns = Eigen::Map<const Eigen::Matrix<S, D, Dynamic>, 0, Eigen::OuterStride<>>;
  using Outputs = Eigen::Map<Eigen::Matrix<S, D, Dynamic>, 0, Eigen::OuterStride<>>;
  using Numbers = Eigen::Map<const Eigen::Matrix<S, 1, Dynamic>, 0, Eigen::InnerStride<>>;

  Columns k, v, q;
  Numbers beta, decay;  // empty if the rule has none
  Outputs y;
  Eigen::Map<Eigen::Matrix<S, D, D>, Eigen::AlignedMax> w;

  explicit NaiveHead(const Arrays& a)
      : k(columns(a, a.key)),
        v(columns(a, a.value)),
        q(columns(a, a.query)),
        beta(numbers(a, a.beta)),
        decay(numbers(a, a.decay)),
        y(static_cast<S*>(a.output), a.d, a.steps, Eigen::OuterStride<>(a.d)),
        w(static_cast<S*>(a.state), a.d, a.d) {}

 private:
  static Columns columns(const Arrays& a, const void* data) {
    return {static_cast<const S*>(data), a.d, a.steps, Eigen::OuterStride<>(a.d)};
  }
  static Numbers numbers(const Arrays& a, const void* data) {
    return {static_cast<const S*>(data), data == nullptr ? 0 : a.steps, Eigen::InnerStride<>(1)};
  }
};

/// Equation::run<S, D> for the sizes of the benchmarks.
template <class Equation> Naive naive_of(bool is_double, Index d) {
  switch (d) {
    case 16:
      return is_double ? nullptr : Equation::template run<float, 16>;
    case 32:
      return is_double ? nullptr : Equation::template run<float, 32>;
    case 48:
      return is_double ? nullptr : Equation::template run<float, 48>;
    case 64:
      return is_double ? Equation::template run<double, 64> : Equation::template run<float, 64>;
    case 128:
      return is_double ? Equation::template run<double, 128> : Equation::template run<float, 128>;
    case 256:
      return is_double ? nullptr : Equation::template run<float, 256>;
    case Dynamic:
      return is_double ? Equation::template run<double, Dynamic>
                       : Equation::template run<float, Dynamic>;
    default:
      return nullptr;
  }
}

}  // namespace measure
