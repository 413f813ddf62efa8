#pragma once

#include <fastweights/layers/layer.hpp>
#include <fastweights/math/random.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A layer whose outputs are set to 0 at random in train passes. The others are scaled, so that
/// their mean stays; an infer pass changes nothing.
///
///     y = m ∘ layer(x) / (1 − rate)        m_i = 0 with probability `rate`, else 1
///
/// The draws are those of the state's seed, so that a train pass can be repeated. fw::seed_dropout
/// sets the seeds of all such layers of a model; call it for every batch:
///
///     using Block = fw::PreNormBlock<Norm, fw::Dropout<Mixer>, fw::Dropout<Ffn>>;
///     auto state = model.initial_state(B);
///     fw::seed_dropout(state, step);
///
/// Over a Relay all parts need the same seed; one sequence then has the draws that it has as a
/// whole.
///
/// Shapes: those of the layer, B sequences included. Cost: that of the layer, and in train passes a
/// random number per output. Throws std::invalid_argument for a rate
/// outside of [0, 1), for a train pass without a seed, and what the layer throws. Srivastava et al.
/// 2014, JMLR 15, section 4; the scaling as in PyTorch.
template <Layer L> struct Dropout {
  using Scalar = typename L::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "Dropout";

  L layer;      ///< whose outputs are dropped
  double rate;  ///< the probability that an entry becomes 0
  static constexpr auto names = fw::names("layer", "rate");

  struct State {
    typename L::State layer;                    ///< of the layer
    Index dropout_seed = 0, dropout_drawn = 0;  ///< no seed if 0; numbers it has given
    static constexpr auto names = fw::names("layer", "dropout_seed", "dropout_drawn");
  };
  struct Trace {
    typename L::Trace layer;
    Matrix factors, dy;  ///< m / (1 − rate); backward's buffer
    Index trained = 0;   ///< tokens of the last pass if it was a train pass, else 0
  };

  /// Drops outputs of `inner`. Throws std::invalid_argument unless the rate is at least 0 and below
  /// 1.
  Dropout(L inner, double drop_rate) : layer(std::move(inner)), rate(drop_rate) {
    if (!(rate >= 0 && rate < 1))
      detail::throw_invalid(
          {name, ": rate is ", std::to_string(rate), ", expected at least 0 and below 1"});
  }

  Index inputs() const { return layer.inputs(); }
  Index outputs() const { return layer.outputs(); }
  State initial_state(Index sequences = 1) const { return {fw::initial_state(layer, sequences)}; }
  void check_state(const State& state) const {
    fw::check_state(layer, state.layer);
    detail::check_count(name, {"dropout_seed", state.dropout_seed});
    detail::check_count(name, {"dropout_drawn", state.dropout_drawn});
  }
  /// B of a state.
  Index sequences(const State& state) const requires CountsSequences<L> {
    return detail::sequences_of(layer, state.layer);
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    check_state(state);
    const bool draws = pass.trains() && rate > 0;
    if (draws && state.dropout_seed == 0)
      detail::throw_invalid({name,
                             ": a train pass without a seed; call fw::seed_dropout(state, "
                             "seed) for every batch"});
    trace.trained = 0;
    if (draws && pass.relay() != nullptr) pass_count(state, x.cols(), *pass.relay());
    layer.forward(state.layer, x, y, trace.layer, pass);
    if (!pass.trains()) return;
    trace.factors.resize(outputs(), x.cols());
    if (draws)
      draw(state, trace.factors);
    else
      trace.factors.setOnes();
    y = y.cwiseProduct(trace.factors);
    trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                Dropout& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    trace.dy = dy.cwiseProduct(trace.factors);
    layer.backward(x, trace.layer, trace.dy, dx, grad.layer);
  }

 private:
  // Numbers drawn before this part, and before the next one.
  void pass_count(State& state, Index columns, Relay& relay) const {
    relay.receive_state(detail::object(state.dropout_drawn));
    const Index after = state.dropout_drawn + outputs() * columns;
    relay.send_state(detail::object(after));
  }
  void draw(State& state, Matrix& factors) const {
    const auto seed = static_cast<std::uint64_t>(state.dropout_seed);
    auto at = static_cast<std::uint64_t>(state.dropout_drawn);
    const Scalar kept = Scalar(1 / (1 - rate));
    for (Index i = 0; i < factors.size(); ++i)
      factors.data()[i] = uniform_at(seed, at++) < rate ? Scalar(0) : kept;
    state.dropout_drawn += factors.size();
  }
};

/// Gives every Dropout of a state, at any depth, a seed of its own, which follows from `seed`. Its
/// numbers start again.
template <Record State> void seed_dropout(State& state, std::uint64_t seed) {
  std::uint64_t layer = 0;
  const auto visit = [&](const detail::Leaf* leaf, const detail::LeafPath& path) {
    if (path.name == "dropout_drawn") leaf->store_integer(0, 0);
    if (path.name != "dropout_seed") return;
    const double drawn = uniform_at(seed, layer++);
    leaf->store_integer(0,
                        1 + static_cast<std::int64_t>(drawn * static_cast<double>(max_count / 2)));
  };
  const detail::Object object = detail::object(state);
  detail::visit_leaves(&object, 1, visit);
}

}  // namespace fw
