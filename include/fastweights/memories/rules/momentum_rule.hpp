#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/momentum_backward.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The base of a rule whose errors go into a momentum M, which W follows:
///
///     u_t = s_t (v_t − W_{t−1} p_t)     M_t = a_t M_{t−1} + u_t k_tᵀ
///     W_t = b_t W_{t−1} + c_t M_t       y_t = W_t q_t
///
/// The rule adds its write, as its paper has it, and says what p, s, a, b and c of a token are:
///
///     MomentumWrite<S> momentum_write(const WriteToken<Rule>& t) const;
///     void momentum_write_vjp(const WriteToken<Rule>& t, const MomentumGradient<S>& g,
///                             WriteGradToken<Rule>& dt) const;    // adds to dt
///
/// The base has state, sizes, read and all gradients, and for float and double a scan and a
/// backward pass over a sequence by SIMD kernels. With `static constexpr bool adds_momentum =
/// true`, where c = 1, these multiply less. The backward pass keeps a state for every 32 tokens.
///
/// `Inputs` is the rule's signature, derived from QueryOutput, with `key`, `value` and `query`.
template <class Rule, class S, class Inputs> class MomentumRule {
  using Written = typename Inputs::template Write<Token<const S>>;
  using Query = typename Inputs::template Read<Token<const S>>;
  using Writes = typename Inputs::template Write<Sequence<const S>>;
  using Queries = typename Inputs::template Read<Sequence<const S>>;
  using Outputs = typename Inputs::template Out<Sequence<S>>;

 public:
  using Scalar = S;
  using Signature = Inputs;

  /// W and M, d_v×d_k.
  template <class C> struct State {
    mat<C, Signature::value_rows, Signature::key_rows> W;
    mat<C, Signature::value_rows, Signature::key_rows> momentum;  ///< M
    static constexpr auto names = fw::names("W", "momentum");
  };
  using OwnedState = State<Owned<S>>;
  using Trace = detail::MomentumTrace<S>;

  /// Throws std::invalid_argument when a size does not fit.
  explicit MomentumRule(Sizes<Signature::key_rows, Signature::value_rows> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(Rule::name);
  }

  /// The sizes of inputs and outputs.
  Signature signature() const { return signature_; }
  /// The sizes of W and M.
  State<Extents> state_extents() const {
    const MemberExtent W{signature_.dv, signature_.dk};
    return {W, W};
  }

  /// y = W q.
  void read(const OwnedState& s, const Query& t, typename Inputs::template Out<Token<S>> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  /// Adds dy qᵀ to dW, and Wᵀ dy to dq.
  void read_vjp(const OwnedState& s, const Query& t,
                const typename Inputs::template Out<Token<const S>>& dy, OwnedState& ds,
                typename Inputs::template Read<Token<S>> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }
  /// The gradient of the write. Does not compute M_t.
  void write_vjp(const OwnedState& s, const Written& t, OwnedState& ds,
                 typename Inputs::template Write<Token<S>> dt) const {
    const auto by = rule().momentum_write(t);
    const detail::GradientVector<S> lookup(by.lookup, signature_.dk);
    scratch<S, Signature::value_rows, 2>(signature_.dv, [&](auto& error, auto& derror) {
      scratch<S, Signature::key_rows, 2>(signature_.dk, [&](auto& dkey, auto& dlookup) {
        detail::MomentumGradient<S> g;
        error.noalias() = s.W * lookup;
        error = t.value - error;
        derror.noalias() = ds.W * t.key;
        g.write = by.momentum * detail::product_sum(s.momentum, ds.W) +
                  by.rate * detail::product_sum(error, derror);
        g.keep = detail::product_sum(s.W, ds.W);
        ds.momentum += by.write * ds.W;  // the gradient of M_t
        g.momentum = detail::product_sum(s.momentum, ds.momentum);
        derror.noalias() = ds.momentum * t.key;  // over s, the gradient of the error
        g.rate = detail::product_sum(error, derror);
        dkey.noalias() = ds.momentum.transpose() * (by.rate * error);
        derror *= by.rate;
        dlookup.noalias() = -s.W.transpose() * derror;
        ds.W *= by.keep;
        ds.W.noalias() -= derror * lookup.transpose();
        g.key = dkey.data(), g.lookup = dlookup.data(), g.value = derror.data();
        rule().momentum_write_vjp(t, g, dt);
      });
    });
    ds.momentum *= by.momentum;
  }

  void scan(OwnedState& s, const Writes& inputs, const Queries& queries,
            Outputs out) const requires detail::KernelScalar<S> {
    detail::scan_with_momentum(rule(), s, inputs, queries, out);
  }
  /// Keeps what `backward` needs.
  void scan(OwnedState& s, const Writes& inputs, const Queries& queries, Outputs out,
            Trace& trace) const requires detail::KernelScalar<S> {
    detail::scan_with_momentum(rule(), s, inputs, queries, out, trace);
  }
  /// The gradients of a sequence, by kernels.
  void backward(
      const OwnedState&, Trace& trace, const Writes& inputs, const Queries& queries,
      const typename Inputs::template Out<Sequence<const S>>& dy, OwnedState& ds,
      typename Inputs::template Write<Sequence<S>> dinputs,
      typename Inputs::template Read<Sequence<S>> dqueries) const requires detail::KernelScalar<S> {
    detail::MomentumBackward<Rule>(rule(), inputs, queries, dy, dinputs, dqueries).run(trace, ds);
  }

 private:
  const Rule& rule() const { return static_cast<const Rule&>(*this); }

  Signature signature_;
};

// For rules of your own.
using detail::MomentumGradient;
using detail::MomentumWrite;

}  // namespace fw
