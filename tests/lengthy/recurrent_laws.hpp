#pragma once

#include "support/laws.hpp"
#include "support/saves_its_state.hpp"

/// \file
/// The laws for the recurrent memories, from random initial states and with their saved states.

namespace recurrent_laws {

using fw::Index;

/// The rule with a random initial state. A self-referential matrix of zeros would stay zero, and
/// recurrent weights of zero would have no effect.
template <template <class, int, int> class Rule> struct Started {
  template <class S, int Dk, int Dv> struct Memory : Rule<S, Dk, Dv> {
    using Base = Rule<S, Dk, Dv>;
    using Base::Base;
    fw::StateOf<Base> initial_state() const {
      auto state = fw::zero_gradient(static_cast<const Base&>(*this));
      fw::Random random(5);
      fw::for_each_leaf(
          [&random](auto& leaf) {
            leaf = leaf.unaryExpr([&random](const S&) { return S(random.uniform() - 0.5); });
          },
          state);
      return state;
    }
    template <class T> auto cast() const { return Memory<T, Dk, Dv>(this->signature().sizes()); }
  };
};

template <template <class, int, int> class Rule> void obeys_the_laws() {
  using Dyn = typename Started<Rule>::template Memory<double, fw::Dynamic, fw::Dynamic>;
  using Tall = typename Started<Rule>::template Memory<double, 3, 17>;
  laws::at_all_sizes([](Index dk, Index dv) { return Dyn({dk, dv}); });
  laws::fixed_is_dynamic(Tall(), Dyn({.key_size = 3, .value_size = 17}), false);
  saves_its_state(Dyn({.key_size = 3, .value_size = 5}));
  CHECK_THROWS_WITH(Dyn({.key_size = 3, .value_size = 0}),
                    Catch::Matchers::ContainsSubstring("d_v is 0, expected at least 1"));
  CHECK_THROWS_WITH(Tall({.key_size = 2, .value_size = 17}),
                    Catch::Matchers::ContainsSubstring("d_k is 2, expected 3"));
}

}  // namespace recurrent_laws
