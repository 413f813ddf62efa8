#pragma once

#include <fastweights/continuous/components.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Unordered slots: the basis of a memory that stores vectors instead of a signal.
struct Slots {
  template <class T> Slots cast() const { return {}; }
};

/// Softmax attention over slots, r = softmax(s), for memories that store vectors. Without slots the
/// output is 0.
struct SoftmaxDensity {
  /// No components: the scores define the density.
  struct Mixture {
    static constexpr auto names = fw::names();
  };
  static constexpr auto names = fw::names();

  template <class T> SoftmaxDensity cast() const { return {}; }

  /// Nothing: the scores define the density.
  template <class Basis, class Scores> Mixture mixture_of(const Basis&, const Scores&) const {
    return {};
  }
  /// r ← softmax(s).
  template <class Basis, class Scores, class R>
  void expect(const Basis&, const Scores& scores, const Mixture&, R&& r) const {
    r = scores;
    detail::softmax_in_place(r);
  }
  /// Overwrites dscores, which must not be dr.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis&, const Scores& scores, const Mixture&, const Dr& dr, Mixture&,
           DScores&& dscores, SoftmaxDensity&) const {
    using S = typename Scores::Scalar;
    dscores = scores;
    detail::softmax_in_place(dscores);
    const S mean = dscores.cwiseProduct(dr).sum();
    dscores.array() *= dr.array() - mean;
  }
  /// Nothing, as Mixture.
  Mixture zero_gradient(const Mixture&) const { return {}; }
};

}  // namespace fw
