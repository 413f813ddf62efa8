#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The base of a rule whose state is one matrix W, d_v×d_k, and whose read is y = W q: sizes, state
/// and read with its gradient. `Rule` is the rule itself, which adds a write and its gradient;
/// `Inputs` is its signature, derived from QueryOutput.
///
///     struct MyRule : MatrixRule<MyRule, float, KeyValueBeta<Dynamic, Dynamic>> { … };
template <class Rule, class S, class Inputs> class MatrixRule {
 public:
  using Scalar = S;
  using Signature = Inputs;

  /// W, d_v×d_k.
  template <class C> struct State {
    mat<C, Signature::value_rows, Signature::key_rows> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<S>>;

  /// Throws std::invalid_argument when a size does not fit.
  explicit MatrixRule(Sizes<Signature::key_rows, Signature::value_rows> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(Rule::name);
  }

  /// The sizes of inputs and outputs.
  Signature signature() const { return signature_; }
  /// The size of W.
  State<Extents> state_extents() const { return {{dv(), dk()}}; }

  /// y = W q.
  void read(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
            typename Signature::template Out<Token<S>> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  /// Adds dy qᵀ to dW, and Wᵀ dy to dq.
  void read_vjp(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
                const typename Signature::template Out<Token<const S>>& dy, OwnedState& ds,
                typename Signature::template Read<Token<S>> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 protected:
  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }

 private:
  Signature signature_;
};

}  // namespace fw
