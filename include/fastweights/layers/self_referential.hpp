#pragma once

#include <fastweights/any_memory/table/recurrent.hpp>
#include <fastweights/layers/fast_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Self-referential weight matrices, whose first matrices W_0 are what the layer learns:
///
///     y = W_o [srwm(softmax(x_1)); …; srwm(softmax(x_H))]
///
/// where x_h are the rows of head h. Weights: initial.0.W, … and output. A pass that begins at the
/// first token of a sequence gives the gradient of W_0. Cost per token: 2 d² + 18 d²/heads flops
/// for x of d rows. Throws std::invalid_argument unless d is a multiple of `heads`. Irie, Schlag,
/// Csordás, Schmidhuber 2022, arXiv 2202.05780, section 3; the draw of W_0 is that of its code:
/// normal with deviation 1/√d_head, and mean −1 in the rows of the write strengths.
template <class S>
Value<S> self_referential(const Value<S>& in, const std::string& name, Index heads = 1,
                          bool bias = false) {
  return module(name, in, [&](const Value<S>& x) {
    Builder<S>& net = *x.builder;
    const Index d = x.rows_of_part(heads);
    const AnyMemory<S> rule = SelfReferentialMatrix<S>({.key_size = d});
    const Value<S> input = feature_map(x, SoftmaxMap(), heads);
    const double deviation = 1 / std::sqrt(double(d));
    const auto draw = [=](const fw::detail::Leaf& W) -> Initialiser {
      // Entries are drawn column by column; the last four rows make the strengths.
      return [=, rows = W.rows, i = Index(0)](double, double normal) mutable {
        return deviation * normal - (i++ % rows < rows - 4 ? 0 : 1);
      };
    };
    const LearnedState<S> first =
        detail::learned_state(net, "initial", rule, heads, Learned::first_state, draw);
    return linear(memory(rule, {input}, {input}, "memory", first), "output", x.rows(), bias);
  });
}

}  // namespace fw::networks
