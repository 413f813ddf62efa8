#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The base of a rule whose state is one matrix W, d_v×d_k, and whose read is y = W q: sizes, state
/// and read with its gradient. `Rule` is the rule itself, `Inputs` its signature.
template <class Rule, class S, class Inputs> class MatrixRule {
 public:
  using Scalar = S;
  using Signature = Inputs;

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

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const { return {{dv(), dk()}}; }

  void read(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
            typename Signature::template Out<Token<S>> y) const {
    set_product_with_vector(y.output, s.W, t.query);
  }
  void read_vjp(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
                const typename Signature::template Out<Token<const S>>& dy, OwnedState& ds,
                typename Signature::template Read<Token<S>> dt) const {
    product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 protected:
  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }

 private:
  Signature signature_;
};

}  // namespace fw::detail
