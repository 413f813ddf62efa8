#pragma once

#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/rules/normaliser.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `Programmer1991` | W = σ(W + v kᵀ), σ any activation | y = W q | 4 d_v d_k and σ |  |
//|   Schmidhuber 1991
/// The fast weight programmer of 1991: a slow net emits two patterns whose outer product is added
/// to the fast weights inside an activation σ.
///
///     W_t = σ(W_{t−1} + a_t b_tᵀ)      y_t = W_t x_t
///
/// with value = a, key = b, query = x. σ is any elementwise activation, see math/activations.hpp;
/// the identity gives linear attention, with a plain sum: for streams longer than 2^24 tokens in
/// float, use LinearAttention with CompensatedSum. Shapes: W d_v×d_k, b and x d_k, a and y d_v.
/// Cost per token: 4 d_v d_k flops and d_v d_k activations. Throws std::invalid_argument when a
/// size does not fit. Schmidhuber 1991, TR FKI-147-91; 1992, Neural Computation 4(1); as restated
/// in Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 1–3.
template <class S, int Dk = Dynamic, int Dv = Dk, class Activation = Tanh> class Programmer1991 {
 public:
  using Scalar = S;
  using Signature = KeyValue<Dk, Dv>;
  static constexpr std::string_view name = "Programmer1991";

  template <class C> struct State {
    mat<C, Dv, Dk> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<S>>;

  explicit Programmer1991(Sizes<Dk, Dv> sizes = {}, Activation activation = {})
      : signature_{{sizes.key_size, sizes.value_size}}, activation_(activation) {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const { return {{signature_.dv, signature_.dk}}; }
  template <class T> auto cast() const {
    return Programmer1991<T, Dk, Dv, Activation>(signature_.sizes(), activation_);
  }

  void write(OwnedState& s, const WriteToken<Programmer1991>& t) const {
    s.W.noalias() += t.value * t.key.transpose();
    s.W = detail::activated(activation_, s.W.array()).matrix();
  }

  void read(const OwnedState& s, const ReadToken<Programmer1991>& t,
            OutToken<Programmer1991> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }

  void write_vjp(const OwnedState& s, const WriteToken<Programmer1991>& t, OwnedState& ds,
                 WriteGradToken<Programmer1991> dt) const {
    for (Index j = 0; j < s.W.cols(); ++j)
      ds.W.col(j).array() *= detail::activated_derivative(
          activation_, s.W.col(j).array() + t.value.array() * t.key[j]);
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
  }

  void read_vjp(const OwnedState& s, const ReadToken<Programmer1991>& t,
                const OutGradToken<Programmer1991>& dy, OwnedState& ds,
                ReadGradToken<Programmer1991> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

 private:
  Signature signature_;
  [[no_unique_address]] Activation activation_;
};

}  // namespace fw
