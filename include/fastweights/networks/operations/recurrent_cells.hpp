#pragma once

#include <fastweights/networks/operations/elementwise.hpp>

/// \file
/// The cells of recurrent nets: the rules of one token. A cell has its number of gates; the vectors
/// of R numbers that it keeps for the next token, h first; and those that it saves for backward.
/// With z = W_ih x_t + b_ih and r = W_hh h_{t−1} + b_hh:
///
///     step(z, r, state, saved)               moves the state on to token t
///     step_backward(saved, dstate, dz, dr)   turns the gradient of the state behind token t into
///                                            that before it, without what dr gives by W_hh

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

/// Vector i of a column of stacked vectors of `size` numbers.
template <class Column> auto stacked(Column& column, Index i, Index size) {
  return column.segment(i * size, size);
}

}  // namespace detail

/// h_t = F(z + r), with an activation of math/activations.hpp.
template <class F> struct RnnCell {
  static constexpr Index gates = 1, states = 1, saved = 2;

  template <class Z, class R, class State, class Saved>
  static void step(const Z& z, const R& r, State& h, Saved& to) {
    const Index n = h.size();
    auto sum = detail::stacked(to, 0, n);
    sum = z + r;
    h = fw::detail::activated(F{}, sum);
    detail::stacked(to, 1, n) = h;
  }
  template <class Saved, class State, class D>
  static void step_backward(const Saved& from, State& dh, D& dz, D& dr) {
    const Index n = dh.size();
    dz = dh * fw::detail::activated_derivative(F{}, detail::stacked(from, 0, n),
                                               detail::stacked(from, 1, n));
    dr = dz;
    dh.setZero();
  }
};

/// [i; f; g; o] = z + r, c_t = σ(f) ⊙ c_{t−1} + σ(i) ⊙ tanh(g), h_t = σ(o) ⊙ tanh(c_t). The state
/// is [h; c].
struct LstmCell {
  static constexpr Index gates = 4, states = 2, saved = 6;

  template <class Z, class R, class State, class Saved>
  static void step(const Z& z, const R& r, State& state, Saved& to) {
    using fw::detail::logistic;
    const Index n = state.size() / states;
    auto h = detail::stacked(state, 0, n), c = detail::stacked(state, 1, n);
    auto i = detail::stacked(to, 0, n), f = detail::stacked(to, 1, n);
    auto g = detail::stacked(to, 2, n), o = detail::stacked(to, 3, n);
    to.head(gates * n) = z + r;
    i = logistic(i);
    f = logistic(f);
    g = g.tanh();
    o = logistic(o);
    detail::stacked(to, 4, n) = c;
    c = f * c + i * g;
    auto tanh_c = detail::stacked(to, 5, n);
    tanh_c = c.tanh();
    h = o * tanh_c;
  }
  template <class Saved, class State, class D>
  static void step_backward(const Saved& from, State& dstate, D& dz, D& dr) {
    using S = typename State::Scalar;
    const Index n = dstate.size() / states;
    const auto i = detail::stacked(from, 0, n), f = detail::stacked(from, 1, n);
    const auto g = detail::stacked(from, 2, n), o = detail::stacked(from, 3, n);
    const auto previous_c = detail::stacked(from, 4, n), tanh_c = detail::stacked(from, 5, n);
    auto dh = detail::stacked(dstate, 0, n), dc = detail::stacked(dstate, 1, n);
    dc += dh * o * (S(1) - tanh_c * tanh_c);
    detail::stacked(dz, 0, n) = dc * g * i * (S(1) - i);
    detail::stacked(dz, 1, n) = dc * previous_c * f * (S(1) - f);
    detail::stacked(dz, 2, n) = dc * i * (S(1) - g * g);
    detail::stacked(dz, 3, n) = dh * tanh_c * o * (S(1) - o);
    dr = dz;
    dc *= f;
    dh.setZero();
  }
};

/// r_t = σ(z_1 + r_1), u_t = σ(z_2 + r_2), n_t = tanh(z_3 + r_t ⊙ r_3),
/// h_t = (1 − u_t) ⊙ n_t + u_t ⊙ h_{t−1}, for z = [z_1; z_2; z_3] and r in the same way.
struct GruCell {
  static constexpr Index gates = 3, states = 1, saved = 5;

  template <class Z, class R, class State, class Saved>
  static void step(const Z& z, const R& r, State& h, Saved& to) {
    using S = typename State::Scalar;
    const Index n = h.size();
    auto reset = detail::stacked(to, 0, n), update = detail::stacked(to, 1, n);
    auto candidate = detail::stacked(to, 2, n);
    reset = fw::detail::logistic(detail::stacked(z, 0, n) + detail::stacked(r, 0, n));
    update = fw::detail::logistic(detail::stacked(z, 1, n) + detail::stacked(r, 1, n));
    candidate = (detail::stacked(z, 2, n) + reset * detail::stacked(r, 2, n)).tanh();
    detail::stacked(to, 3, n) = detail::stacked(r, 2, n);
    detail::stacked(to, 4, n) = h;
    h = (S(1) - update) * candidate + update * h;
  }
  template <class Saved, class State, class D>
  static void step_backward(const Saved& from, State& dh, D& dz, D& dr) {
    using S = typename State::Scalar;
    const Index n = dh.size();
    const auto reset = detail::stacked(from, 0, n), update = detail::stacked(from, 1, n);
    const auto candidate = detail::stacked(from, 2, n), recurrent = detail::stacked(from, 3, n);
    const auto previous_h = detail::stacked(from, 4, n);
    auto dreset = detail::stacked(dz, 0, n), dcandidate = detail::stacked(dz, 2, n);
    dcandidate = dh * (S(1) - update) * (S(1) - candidate * candidate);
    dreset = dcandidate * recurrent * reset * (S(1) - reset);
    detail::stacked(dz, 1, n) = dh * (previous_h - candidate) * update * (S(1) - update);
    dr = dz;
    detail::stacked(dr, 2, n) *= reset;
    dh *= update;
  }
};

}  // namespace fw::networks
