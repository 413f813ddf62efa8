#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>

/// \file
/// The backward pass of the preconditioned delta rule by kernels. The scales s_t = k̂_t / k_t depend
/// on keys and not on W. So W takes the writes of another rule with the key k̂: of Comba with the
/// look-up key α k, or for one decay per key row of GatedDeltaRule2 with the erase strengths β / s.
/// Its gradients then go back through the scales, for all d_k entries of a token at once.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The rule that writes W, its tokens and their gradients. `extra` is α k or β / s, and `write` is
/// β for every value row.
template <class S, int Dk, int Dv, int Decays> struct PreconditionedTrace {
  static constexpr bool one_decay = Decays == 1;
  using Rule = std::conditional_t<one_decay, Comba<S, Dk, Dv>, GatedDeltaRule2<S, Dk, Dv>>;
  using Keys = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  Keys moments;       ///< A before token t, and after the last
  Keys scale, slope;  ///< s, and ds/dr of its logarithm r
  Keys key, extra, write, dkey, dextra, dwrite;
  Checkpoints<Rule> checkpoints;

  void resize(Index dk, Index dv, Index steps) {
    moments.resize(dk, steps + 1);
    for (Keys* each : {&scale, &slope, &key, &extra}) each->resize(dk, steps);
    if constexpr (!one_decay) write.resize(dv, steps);
  }
  template <class Inputs> WriteSequence<Rule> tokens(const Inputs& in) const {
    if constexpr (one_decay)
      return {key, in.value, extra, in.beta, in.decay};
    else
      return {key, in.value, in.decay, extra, write};
  }
  template <class Gradients> WriteGradSequence<Rule> gradients(const Gradients& d) {
    dkey.setZero(key.rows(), key.cols());
    dextra.setZero(key.rows(), key.cols());
    if constexpr (one_decay) {
      return {dkey, d.value, dextra, d.beta, d.decay};
    } else {
      dwrite.setZero(write.rows(), write.cols());
      return {dkey, d.value, d.decay, dextra, dwrite};
    }
  }
};

/// The forward and the backward pass of M, a PreconditionedDeltaRule.
template <class M, class PassTrace> struct PreconditionedBackward {
  using S = typename M::Scalar;
  using State = StateOf<M>;
  using Trace = PassTrace;
  using Rule = typename Trace::Rule;

  const M& m;

  void scan(State& s, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
            OutSequence<M> out, Trace& trace) const {
    const Index steps = queries.query.cols();
    trace.resize(s.W.cols(), s.W.rows(), steps);
    trace.moments.col(0) = s.A;
    for (Index t = 0; t < steps; ++t) set_token(s, inputs, t, trace);
    s.A = trace.moments.col(steps);
    StateOf<Rule> W{s.W};
    fw::scan(rule(s), W, trace.tokens(inputs), ReadSequence<Rule>{queries.query},
             OutSequence<Rule>{out.output}, trace.checkpoints);
    s.W = W.W;
  }
  void backward(const State& initial, Trace& trace, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, const OutGradSequence<M>& dy, State& ds,
                WriteGradSequence<M> dinputs, ReadGradSequence<M> dqueries) const {
    StateOf<Rule> dW{ds.W};
    fw::backward(rule(initial), trace.checkpoints, trace.tokens(inputs),
                 ReadSequence<Rule>{queries.query}, OutGradSequence<Rule>{dy.output}, dW,
                 trace.gradients(dinputs), ReadGradSequence<Rule>{dqueries.query});
    ds.W = dW.W;
    for (Index t = queries.query.cols(); t-- > 0;) add_token(trace, inputs, t, ds, dinputs);
  }

 private:
  static Rule rule(const State& s) {
    return Rule({static_cast<int>(s.W.cols()), static_cast<int>(s.W.rows())});
  }

  static void set_token(const State& s, const WriteSequence<M>& in, Index t, Trace& trace) {
    const auto k = in.key.col(t).array();
    auto A = trace.moments.col(t + 1).array();
    A = in.moment_decay(0, t) * trace.moments.col(t).array() + in.moment_beta(0, t) * k.square();
    auto scale = trace.scale.col(t).array(), slope = trace.slope.col(t).array();
    M::set_scales(A, s.slow.log_scale, scale, slope);
    trace.key.col(t).array() = scale * k;
    if constexpr (Trace::one_decay) {
      trace.extra.col(t).array() = in.decay(0, t) * k;
    } else {
      trace.extra.col(t).array() = in.beta(0, t) * scale.inverse();
      trace.write.col(t).setConstant(in.beta(0, t));
    }
  }

  // From the gradients of k̂ and of α k or β / s.
  static void add_token(Trace& trace, const WriteSequence<M>& in, Index t, State& ds,
                        WriteGradSequence<M>& d) {
    const auto k = in.key.col(t).array();
    const auto scale = trace.scale.col(t).array();
    auto dkey = d.key.col(t).array();
    auto dscale = trace.dkey.col(t).array(), dextra = trace.dextra.col(t).array();
    dkey += scale * dscale;
    dscale *= k;
    if constexpr (Trace::one_decay) {
      dkey += in.decay(0, t) * dextra;
      d.decay(0, t) += (k * dextra).sum();
    } else {
      dextra *= scale.inverse();
      d.beta(0, t) += dextra.sum() + trace.dwrite.col(t).sum();
      dscale -= in.beta(0, t) * dextra * scale.inverse();
    }
    dscale *= trace.slope.col(t).array();  // the gradient of r
    ds.slow.log_scale -= dscale.sum();
    auto dA = ds.A.array();
    dA += dscale / (trace.moments.col(t + 1).array() + M::epsilon());
    d.moment_decay(0, t) += (trace.moments.col(t).array() * dA).sum();
    d.moment_beta(0, t) += (k.square() * dA).sum();
    dkey += S(2) * in.moment_beta(0, t) * k * dA;
    dA *= in.moment_decay(0, t);
  }
};

}  // namespace fw::detail
