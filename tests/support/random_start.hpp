#pragma once

#include <cmath>
#include <fastweights/core/state.hpp>
#include <fastweights/math/random.hpp>

namespace laws {

/// A memory that starts from random weights, since an MLP of zeros learns nothing.
template <template <class> class Rule, class S> struct Started : Rule<S> {
  using Rule<S>::Rule;
  explicit Started(const Rule<S>& rule) : Rule<S>(rule) {}
  template <class T> auto cast() const { return Started<Rule, T>(Rule<S>::template cast<T>()); }
  fw::StateOf<Rule<S>> initial_state() const {
    auto s = Rule<S>::initial_state();
    fw::Random random(77);
    const auto fill = [&](auto& leaf) {
      for (Eigen::Index i = 0; i < leaf.size(); ++i)
        leaf.data()[i] += S(random.normal() / std::sqrt(static_cast<double>(leaf.cols())) / 2);
    };
    fw::for_each_leaf(fill, s.weights);
    fw::for_each_leaf(fill, s.slow);
    return s;
  }
};

}  // namespace laws
