#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/math/products.hpp>

/// \file
/// The last c tokens of a memory, and a gradient step on all of them: what OmegaMemory and Atlas
/// share.

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α, γ): γ weighs the last tokens, the newest first. Read q.
template <int Dk, int Dv, int Window> struct KeyValueBetaDecayWindow : QueryOutput<Dk, Dv> {
  Index window = Window;  ///< c, the tokens of the window

  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    vec<C, Window> weights;  ///< γ, the newest token first
    static constexpr auto names = fw::names("key", "value", "beta", "decay", "weights");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaDecayWindow<NewDk, Dv, Window>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {window, 1}};
  }
  /// As QueryOutput::check, and of the window.
  void check(std::string_view rule) const {
    QueryOutput<Dk, Dv>::check(rule);
    detail::check_size<Window>(rule, "the window", window);
  }
};

/// The last tokens, the newest first. Columns are 0 before there are as many tokens: such a column
/// has no error and no gradient, so no counter is needed.
template <class C, int Dk, int Dv, int Window> struct TokenWindow {
  mat<C, Dk, Window> keys;    ///< d_k×c
  mat<C, Dv, Window> values;  ///< d_v×c
  static constexpr auto names = fw::names("keys", "values");
};

namespace detail {

/// A column becomes the newest, and the oldest is lost.
template <class M, class X> void push_column(M& columns, const X& newest) {
  for (Index c = columns.cols() - 1; c > 0; --c) columns.col(c) = columns.col(c - 1);
  columns.col(0) = newest;
}
template <class M, class DX> void push_column_vjp(M& dcolumns, DX& dnewest) {
  dnewest += dcolumns.col(0);
  for (Index c = 1; c < dcolumns.cols(); ++c) dcolumns.col(c - 1) = dcolumns.col(c);
  dcolumns.col(dcolumns.cols() - 1).setZero();
}

/// Calls f with the window after a write, which is a copy.
template <class Window, class T, class F>
void with_pushed(const Window& window, const T& t, F&& f) {
  using S = typename decltype(window.keys)::Scalar;
  struct Copy {
    Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>> keys, values;
  };
  matrix_scratch<S>(window.keys.rows(), window.keys.cols(), [&](auto& keys) {
    matrix_scratch<S>(window.values.rows(), window.values.cols(), [&](auto& values) {
      keys = window.keys;
      values = window.values;
      push_column(keys, t.key);
      push_column(values, t.value);
      f(Copy{keys, values});
    });
  });
}

/// e_i = W k_i − v_i of every token of the window.
template <class W, class Window, class E>
void window_errors(const W& w, const Window& window, E& errors) {
  errors = -window.values;
  add_product(errors, w, window.keys);
}

/// to ← α to − β Σ_i γ_i e_i k_iᵀ. The errors are those of W before it changes, if `to` is W.
template <class W, class Window, class S, class G, class To>
void descend(const W& w, const Window& window, const S& decay, const S& beta, const G& weights,
             To& to) {
  matrix_scratch<S>(window.values.rows(), window.values.cols(), [&](auto& errors) {
    window_errors(w, window, errors);
    errors *= (-beta * weights).asDiagonal();
    to *= decay;
    add_product(to, errors, window.keys.transpose());
  });
}

/// `dto` is the gradient of the result on entry and of `to` before the step on return. Adds to all
/// other gradients.
template <class W, class Window, class S, class G, class To, class DTo, class DW, class DWindow,
          class DG>
void descend_vjp(const W& w, const Window& window, const S& decay, const S& beta, const G& weights,
                 const To& to, DTo& dto, DW& dw, DWindow& dwindow, S& ddecay, S& dbeta,
                 DG& dweights) {
  matrix_scratch<S, 2>(window.values.rows(), window.values.cols(),
                       [&](auto& errors, auto& derrors) {
                         window_errors(w, window, errors);
                         set_product(derrors, dto, window.keys);
                         for (Index i = 0; i < errors.cols(); ++i) {
                           const S along = errors.col(i).cwiseProduct(derrors.col(i)).sum();
                           dbeta -= weights[i] * along;
                           dweights[i] -= beta * along;
                           errors.col(i) *= -beta * weights[i];
                           derrors.col(i) *= -beta * weights[i];
                         }
                         add_product(dwindow.keys, dto.transpose(), errors);
                         add_product(dwindow.keys, w.transpose(), derrors);
                         dwindow.values -= derrors;
                         apply_decay_vjp(to, decay, dto, ddecay);
                         add_product(dw, derrors, window.keys.transpose());
                       });
}

}  // namespace detail

}  // namespace fw
