#pragma once

#include <Eigen/Core>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <vector>

/// \file
/// A stream that is decoded: the gated delta rule's states of several heads.

namespace stream {

using Eigen::Index;
using Rule = fw::GatedDeltaRule<float>;

template <class State> Index bytes_of(State& state) {
  Index bytes = 0;
  fw::detail::visit_all_leaves(
      [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath&) {
        bytes += leaf->size() * Index(leaf->width);
      },
      state);
  return bytes;
}

/// The states of the heads, and a token for each. M is Rule or Deferred<Rule, …>.
template <class M> struct Stream {
  M m;
  std::vector<fw::StateOf<M>> states;
  Eigen::MatrixXf keys, values, outputs;

  Stream(Index d, Index heads)
      : m(Rule({.key_size = d})),
        states(std::size_t(heads), fw::initial_state(m)),
        keys(Eigen::MatrixXf::Random(d, heads)),
        values(Eigen::MatrixXf::Random(d, heads)),
        outputs(d, heads) {
    keys.colwise().normalize();
  }
  void step() {
    float beta = 0.5f, decay = 0.99f;
    for (Index h = 0; h < keys.cols(); ++h)
      fw::step(m, states[std::size_t(h)], {keys.col(h), values.col(h), beta, decay}, {keys.col(h)},
               {outputs.col(h)});
  }
};

}  // namespace stream
