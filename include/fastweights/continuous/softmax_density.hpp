#pragma once

#include <fastweights/continuous/locations.hpp>

namespace fw {

/// Slots without an order: the basis of a memory that keeps vectors instead of a signal.
struct Slots {
  template <class T> Slots cast() const { return {}; }
};

/// Softmax attention over slots, r = softmax(s), for memories that keep vectors. Over no slots the
/// answer is 0.
struct SoftmaxDensity {
  struct Place {  ///< nothing: the scores say it all
    static constexpr auto names = fw::names();
  };
  static constexpr auto names = fw::names();

  template <class T> SoftmaxDensity cast() const { return {}; }

  template <class Basis, class Scores> Place locate(const Basis&, const Scores&) const {
    return {};
  }
  template <class Basis, class Scores, class R>
  void expect(const Basis&, const Scores& scores, const Place&, R&& r) const {
    r = scores;
    detail::softmax_in_place(r);
  }
  /// dscores overwritten; it may not be dr.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis&, const Scores& scores, const Place&, const Dr& dr, Place&,
           DScores&& dscores, SoftmaxDensity&) const {
    using S = typename Scores::Scalar;
    dscores = scores;
    detail::softmax_in_place(dscores);
    const S mean = dscores.cwiseProduct(dr).sum();
    dscores.array() *= dr.array() - mean;
  }
  Place no_gradient(const Place&) const { return {}; }
};

}  // namespace fw
