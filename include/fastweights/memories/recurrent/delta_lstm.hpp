#pragma once

#include <fastweights/core/recurrent_signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/recurrent/delta_step.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `DeltaLstm` | the same for three nets | an LSTM of their outputs | 18 d_v (d_k + d_v) |  |
//|   Irie et al. 2021, 2106.06295
/// The Delta LSTM: a fast LSTM whose six matrices are updated by the delta rule. For each of the
/// nets g = i (input gate), u (update), o (output gate), each with its own column of the inputs,
///
///     W_g ← W_g + β_g (v_g − W_g k_g) k_gᵀ       R_g ← R_g + β'_g (v'_g − R_g k'_g) k'_gᵀ
///     a_g = W_g q_g + R_g softmax(y_{t−1})
///     c_t = σ(a_i) ⊙ a_u + (1 − σ(a_i)) ⊙ c_{t−1}       y_t = σ(a_o) ⊙ c_t
///
/// The forget gate is one minus the input gate, and the update a_u has no activation. Shapes: W_g
/// d_v×d_k, R_g d_v×d_v, k and q d_k×3 (feature-mapped already), k' d_v×3 (after its softmax), v
/// and v' d_v×3, β and β' 3, c and y d_v. State: the matrices, c and y, initially zero. Cost per
/// token: 18 d_v (d_k + d_v) flops. β and β' are in [0, 2]. Stable for β_g‖k_g‖² ≤ 2 and
/// β'_g‖k'_g‖² ≤ 2: normalise the keys. A FastWeightLayer around it is the layer of the source.
/// Throws std::invalid_argument when a size does not fit.
/// Irie, Schlag, Csordás, Schmidhuber 2021, arXiv 2106.06295, section 3; the fourth version of its
/// code, which trained its language models.
template <class S, int Dk = Dynamic, int Dv = Dk> class DeltaLstm {
 public:
  using Scalar = S;
  using Signature = RecurrentKeyValueBeta<Dk, Dv, 3>;
  static constexpr std::string_view name = "DeltaLstm";

  /// The matrices of one of the three nets.
  template <class C> struct Net {
    mat<C, Dv, Dk> W;  ///< the matrix that reads the query, d_v×d_k
    mat<C, Dv, Dv> R;  ///< the matrix that reads the softmax of the last output, d_v×d_v
    static constexpr auto names = fw::names("W", "R");
  };
  template <class C> struct State {
    Net<C> input_gate, update, output_gate;  ///< the nets of the gates and of the update
    vec<C, Dv> cell;                         ///< c of the LSTM, d_v rows
    vec<C, Dv> output;                       ///< y of the last token, d_v rows
    static constexpr auto names =
        fw::names("input_gate", "update", "output_gate", "cell", "output");
  };
  using OwnedState = State<Owned<S>>;

  explicit DeltaLstm(Sizes<Dk, Dv> sizes = {}) : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(name);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    const Index dv = signature_.dv;
    const Net<Extents> net{{dv, signature_.dk}, {dv, dv}};
    return {net, net, net, {dv, 1}, {dv, 1}};
  }
  template <class T> auto cast() const { return DeltaLstm<T, Dk, Dv>(signature_.sizes()); }

  void write(OwnedState& s, const WriteToken<DeltaLstm>& t) const {
    scratch<S, Dv, 4>(signature_.dv, [&](auto& context, auto& in, auto& update, auto& out) {
      SoftmaxMap().map(s.output, context);
      in.setZero(), update.setZero(), out.setZero();
      step_net(s.input_gate, t, 0, context, in);
      step_net(s.update, t, 1, context, update);
      step_net(s.output_gate, t, 2, context, out);
      in = gate(in);
      s.cell += in.cwiseProduct(update - s.cell);
      s.output = gate(out).cwiseProduct(s.cell);
    });
  }

  Violation violation(const WriteToken<DeltaLstm>& t) const {
    for (Index g = 0; g < 3; ++g) {
      if (const Violation v = delta_violation(t.beta[g], t.key.col(g))) return v;
      if (const Violation v =
              delta_violation(t.recurrent_beta[g], t.recurrent_key.col(g),
                              "recurrent_beta times the squared norm of recurrent_key"))
        return v;
    }
    return {};
  }

  void read(const OwnedState& s, const ReadToken<DeltaLstm>&, OutToken<DeltaLstm> y) const {
    y.output = s.output;
  }

  void write_vjp(const OwnedState& s, const WriteToken<DeltaLstm>& t, OwnedState& ds,
                 WriteGradToken<DeltaLstm> dt) const {
    scratch<S, Dv, 5>(signature_.dv,
                      [&](auto& context, auto& in, auto& update, auto& out, auto& cell) {
                        SoftmaxMap().map(s.output, context);
                        in.setZero(), update.setZero(), out.setZero();
                        read_net(s.input_gate, t, 0, context, in);
                        read_net(s.update, t, 1, context, update);
                        read_net(s.output_gate, t, 2, context, out);
                        in = gate(in);
                        out = gate(out);
                        update -= s.cell;
                        cell = s.cell + in.cwiseProduct(update);

                        // Gradients reuse the buffers of values that are no longer needed.
                        auto &dout = out, &din = update, &dupdate = cell, &dcontext = in;
                        ds.cell += out.cwiseProduct(ds.output);
                        dout = gate_derivative(out).cwiseProduct(ds.output).cwiseProduct(cell);
                        din = gate_derivative(in).cwiseProduct(ds.cell).cwiseProduct(update);
                        dupdate = in.cwiseProduct(ds.cell);
                        ds.cell -= dupdate;
                        dcontext.setZero();
                        net_vjp(s.input_gate, t, 0, context, din, ds.input_gate, dt, dcontext);
                        net_vjp(s.update, t, 1, context, dupdate, ds.update, dt, dcontext);
                        net_vjp(s.output_gate, t, 2, context, dout, ds.output_gate, dt, dcontext);
                        ds.output.setZero();
                        SoftmaxMap().vjp(s.output, context, dcontext, ds.output);
                      });
  }

  void read_vjp(const OwnedState&, const ReadToken<DeltaLstm>&, const OutGradToken<DeltaLstm>& dy,
                OwnedState& ds, ReadGradToken<DeltaLstm>) const {
    ds.output += dy.output;
  }

 private:
  template <class X> static auto gate(const X& x) {
    return x.unaryExpr([](const S& each) { return Sigmoid().value(each); });
  }
  // The derivative as a function of the gate's value.
  template <class Y> static auto gate_derivative(const Y& y) {
    return y.unaryExpr([](const S& each) { return S(each * (S(1) - each)); });
  }

  // The inputs, or their gradients, of the two matrices of net g.
  template <class T> static auto fast(T& t, Index g) {
    return detail::DeltaToken{t.key.col(g), t.value.col(g), t.beta[g], t.query.col(g)};
  }
  template <class T, class X> static auto recurrent(T& t, Index g, X& context) {
    return detail::DeltaToken{t.recurrent_key.col(g), t.recurrent_value.col(g), t.recurrent_beta[g],
                              context};
  }

  template <class T, class X, class Y>
  static void step_net(Net<Owned<S>>& net, const T& t, Index g, const X& context, Y& a) {
    detail::delta_step(net.W, fast(t, g), a);
    detail::delta_step(net.R, recurrent(t, g, context), a);
  }

  // Adds to a what step_net would add, without writing.
  template <class T, class X, class Y>
  static void read_net(const Net<Owned<S>>& net, const T& t, Index g, const X& context, Y& a) {
    detail::delta_output(net.W, fast(t, g), a);
    detail::delta_output(net.R, recurrent(t, g, context), a);
  }

  template <class T, class X, class Da, class DT, class DX>
  static void net_vjp(const Net<Owned<S>>& net, const T& t, Index g, const X& context, const Da& da,
                      Net<Owned<S>>& dnet, DT& dt, DX& dcontext) {
    detail::delta_step_vjp(net.W, fast(t, g), da, dnet.W, fast(dt, g));
    detail::delta_step_vjp(net.R, recurrent(t, g, context), da, dnet.R, recurrent(dt, g, dcontext));
  }

  Signature signature_;
};

}  // namespace fw
