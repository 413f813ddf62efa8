#pragma once

#include "kernels/gradients.hpp"

// Sizes, lengths and decays for some Rules.
namespace gradients {

// Matrices that go pair by pair, and chunk by chunk unless a key row has its own decay.
inline constexpr fw::Sizes<> small{6, 9}, large{59, 57};

template <class R> void check_every_size() {
  for (const Index dv : {1, 2, 3, 5, 6, 7, 8, 9, 11, 16, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40}) R::check({dk, dv}, 5);
  // Large matrices, which go chunk by chunk.
  for (const Index size : {1, 3, 17, 33}) {
    R::check({size, 3136 / size + 1}, 11);
    R::check({3136 / size + 1, size}, 11);
  }
  for (const Index dv : {49, 64, 73})
    for (const Index dk : {64, 66, 95, 130}) R::check({dk, dv}, 11);
}

template <class R> void check_every_length() {
  for (const Index steps : {0, 1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 200})
    R::check({9, 6}, steps);
  // The gradient of a single decay is a sum over W and G, which does not cancel for this size.
  for (const Index steps : {0, 1, 2, 7, 8, 9, 12, 13, 16, 31, 130}) R::check({61, 55}, steps);
}

template <class R> void check_chunks_of_every_size() {
  for (const Index dv : {1, 2, 7, 8, 9, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40, 200}) R::check({dk, dv}, 5);
}

template <class R> void check_chunks_of_every_length() {
  for (const Index steps : {0, 1, 2, 7, 8, 9, 12, 16, 31, 130}) R::check({9, 6}, steps);
}

inline constexpr auto decays_near_0 = [](auto& all) {
  for (const Index t : {0, 1, 5, 6, 40, 511, 512, 599}) all.inputs.decay.col(t).setZero();
  for (const Index t : {7, 8, 9, 31, 514}) all.inputs.decay(0, t) = 1e-200;
};

// Keys of length one keep the states of the order of one.
inline constexpr auto tame = [](auto& all) {
  const auto normalise = [](auto& x) {
    for (Index t = 0; t < x.cols(); ++t) x.col(t) /= std::max(x.col(t).norm(), 1e-3);
  };
  normalise(all.inputs.key);
  if constexpr (requires { all.inputs.lookup; }) normalise(all.inputs.lookup);
  if constexpr (requires { all.inputs.removal; }) {
    normalise(all.inputs.removal);
    all.inputs.removal *= -1;
    all.inputs.replacement = -0.5 * all.inputs.removal;
  }
};

template <class R> void check_corrections_of_every_size() {
  for (const Index dv : {1, 2, 3, 7, 8, 9, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40}) R::check({dk, dv}, 5, tame, 4);
}

template <class R> void check_corrections_of_every_length() {
  for (const Index steps : {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 130}) R::check({9, 6}, steps, tame, 4);
}

template <class R> void check_corrections_with_any_decay() {
  for (const double decay : {1.0, 1.0 / 64, 1e-8, 0.0, -0.3})
    for (const Index every : {1, 3, 20}) {
      const auto change = [&](auto& all) {
        tame(all);
        if constexpr (requires { all.inputs.decay; })
          for (Index t = 0; t < all.inputs.decay.cols(); t += every) {
            all.inputs.decay.col(t).setConstant(decay);
            if (all.inputs.decay.rows() > 1) all.inputs.decay(1, t) = 0.9;
          }
      };
      R::check({9, 6}, 41, change, 4);
    }
}

}  // namespace gradients
