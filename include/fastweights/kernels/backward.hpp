#pragma once

#include <fastweights/kernels/pass.hpp>
#include <fastweights/kernels/scan.hpp>

/// \file
/// Gradients of the sum rule and the delta rule over a whole sequence, without any state but the
/// first and the last. With u_t = v_t − W_{t−1} k_t from the forward pass, e_t = β_t u_t, and G_t
/// the gradient of W_t, three passes over the tokens each take one matrix along:
///
///     back:     G_t = Ḡ_{t+1} + dy_t q_tᵀ,   c_t = G_t k_t,   Ḡ_t = G_t − β_t c_t k_tᵀ
///     onwards:  W_t = W_{t−1} + e_t k_tᵀ,   dq_t = W_tᵀ dy_t,   dk_t −= β_t W_{t−1}ᵀ c_t
///     back:     dk_t += β_t G_tᵀ u_t
///     and       dv_t = β_t c_t,   dβ_t = c_t·u_t
///
/// The latter two have the matrix transposed, so that their products run along the lanes as well.
/// The sum rule is the same with e = v and without c in G and dk. Cost: three times the scan.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Two tokens as the passes of a backward pass take them, `one` before `two`.
template <class S> struct BackwardPair {
  struct One {
    const S *k, *q, *dy, *u;
    S *c, *dk, *dq, *dv, *dbeta;
    S beta;
  };
  One one, two;
  bool lonely;    // then `two` is not there, and all that belongs to it is as of `one`
  S met[4];       // k_1·k_2, k_1·q_1, k_1·q_2, k_2·q_2
  S answered[4];  // u_1·dy_1, u_1·dy_2, u_2·dy_2, u_1·c_2
};

/// gradient += factor x, of `rows` entries.
template <class Column, class S>
EIGEN_ALWAYS_INLINE void add_to(S* gradient, const Column& x, S factor, Index rows) {
  Column sum = load_part<Column>(gradient, 0, rows);
  sum.add(x, factor);
  store_part(sum, gradient, 0, rows);
}

/// G through a pair, the later token first: c_t = G_t k_t. dots: k_1·k_2, k_1·q_1, k_1·q_2,
/// k_2·q_2.
template <class S, int R, bool Corrects> class PanelErrors {
 public:
  static EIGEN_DONT_INLINE void run(S* G, Index columns, const BackwardPair<S>* pairs, Index count,
                                    Index first, Index rows) {
    Pending<S, R, updates> pending;
    visit<Writes::nothing>(G, columns, pairs[0], pending, first, rows);
    for (Index i = 1; i < count; ++i)
      visit<Writes::updates>(G, columns, pairs[i], pending, first, rows);
    Pass<Writes::updates, S, R, updates, 2>::write(G, columns, pending);
  }

 private:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> c;
    set_zero<S, R>(c);
    Pass<writes, S, R, updates, 2>::run(G, columns, pending, {{one.k}, {two.k}}, c);
    const Column dy1 = load_part<Column>(one.dy + first, 0, rows);
    Column dy2 = load_part<Column>(two.dy + first, 0, rows);
    if (p.lonely) dy2 = Column::all(S(0));
    Column &c1 = c.first.only, &c2 = c.second.only;
    c2.add(dy2, p.met[3]);
    c1.add(dy2, p.met[2]);
    c1.add(dy1, p.met[1]);
    Column g2 = c2;
    g2.scale(-two.beta);
    if constexpr (Corrects) c1.add(g2, p.met[0]);
    Column g1 = c1;
    g1.scale(-one.beta);
    if constexpr (Corrects) {
      store_part(c1, one.c + first, 0, rows);
      if (!p.lonely) store_part(c2, two.c + first, 0, rows);
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}}, {{{one.q}, {one.k}}, {{two.q}, {two.k}}}, {}, {}};
    } else {
      add_to(one.c + first, c1, S(1), rows);
      if (!p.lonely) add_to(two.c + first, c2, S(1), rows);
      pending = {{{dy1}, {dy2}}, {{one.q}, {two.q}}, {}, {}};
    }
  }
};

/// Wᵀ through a pair: dq_t and what dk_t has of W.
template <class S, int R, bool Corrects> class PanelQueries {
 public:
  static EIGEN_DONT_INLINE void run(S* W, Index columns, const BackwardPair<S>* pairs, Index count,
                                    Index first, Index rows) {
    Pending<S, R, 2> pending;
    visit<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
    for (Index i = 1; i < count; ++i)
      visit<Writes::updates>(W, columns, pairs[i], pending, first, rows);
    Pass<Writes::updates, S, R, 2, products>::write(W, columns, pending);
  }

 private:
  using Column = Rows<S, R>;
  static constexpr int products = Corrects ? 4 : 2;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* W, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, 2>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    const Vectors<S, 2> dy{{one.dy}, {two.dy}}, c{{one.c}, {two.c}};
    Few<Column, products> sums;
    set_zero<S, R>(sums);
    if constexpr (Corrects)
      Pass<writes, S, R, 2, 4>::run(W, columns, pending, {dy, c}, sums);
    else
      Pass<writes, S, R, 2, 2>::run(W, columns, pending, dy, sums);
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    pending = {{{k1}, {k2}}, {{one.u}, {two.u}}, {}, {}};
    if constexpr (Corrects) {
      sums.second.second.only.add(k1, p.answered[3]);
      add_to(one.dk + first, sums.second.first.only, -one.beta, rows);
      if (!p.lonely) add_to(two.dk + first, sums.second.second.only, -two.beta, rows);
      finish(p, sums.first, k1, k2, first, rows);
    } else {
      finish(p, sums, k1, k2, first, rows);
    }
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Few<Column, 2> dq,
                                         const Column& k1, const Column& k2, Index first,
                                         Index rows) {
    dq.first.only.add(k1, p.answered[0]);
    add_to(p.one.dq + first, dq.first.only, S(1), rows);
    dq.second.only.add(k1, p.answered[1]);
    dq.second.only.add(k2, p.answered[2]);
    if (!p.lonely) add_to(p.two.dq + first, dq.second.only, S(1), rows);
  }
};

/// Gᵀ through a pair, the later token first: what dk_t has of G.
template <class S, int R, bool Corrects> class PanelKeys {
 public:
  static EIGEN_DONT_INLINE void run(S* G, Index columns, const BackwardPair<S>* pairs, Index count,
                                    Index first, Index rows) {
    Pending<S, R, updates> pending;
    visit<Writes::nothing>(G, columns, pairs[0], pending, first, rows);
    for (Index i = 1; i < count; ++i)
      visit<Writes::updates>(G, columns, pairs[i], pending, first, rows);
    Pass<Writes::updates, S, R, updates, 2>::write(G, columns, pending);
  }

 private:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> dk;
    set_zero<S, R>(dk);
    Pass<writes, S, R, updates, 2>::run(G, columns, pending, {{one.u}, {two.u}}, dk);
    const Column q1 = load_part<Column>(one.q + first, 0, rows);
    Column q2 = load_part<Column>(two.q + first, 0, rows);
    if (p.lonely) q2 = Column::all(S(0));
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(-one.beta);
    k2.scale(-two.beta);
    Column &dk1 = dk.first.only, &dk2 = dk.second.only;
    dk2.add(q2, p.answered[2]);
    dk1.add(q2, p.answered[1]);
    if constexpr (Corrects) dk1.add(k2, p.answered[3]);
    dk1.add(q1, p.answered[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.lonely) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (Corrects)
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.c}}, {{two.dy}, {two.c}}}, {}, {}};
    else
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}, {}, {}};
  }
};

/// A sequence and its gradients. Of the sum rule u are the values, c is added to dv, and there is
/// no β.
template <class S> struct BackwardTokens {
  Columns<const S> k, q, dy, u;
  Columns<S> c, dk, dq;
  Columns<S> dv = {}, dbeta = {};
  Columns<const S> beta = {};
};

/// Calls f(pairs, count, the first of them) with some pairs at a time, from the first to the last
/// or back.
template <class S, class F>
void for_pairs(const BackwardTokens<S>& t, Index steps, bool back, const F& f) {
  constexpr Index most = 32;
  BackwardPair<S> pairs[most];
  const Index all = (steps + 1) / 2;
  const auto token = [&](Index i) {
    return typename BackwardPair<S>::One{
        t.k(i),  t.q(i),  t.dy(i), t.u(i),     t.c(i),
        t.dk(i), t.dq(i), t.dv(i), t.dbeta(i), t.beta.data != nullptr ? *t.beta(i) : S(1)};
  };
  for (Index done = 0; done < all;) {
    const Index count = std::min(most, all - done);
    for (Index i = 0; i < count; ++i) {
      const Index at = 2 * (back ? all - 1 - done - i : done + i);
      BackwardPair<S>& p = pairs[i];
      p.lonely = at + 1 == steps;
      p.one = token(at);
      p.two = p.lonely ? p.one : token(at + 1);
      if (p.lonely) p.two.beta = S(0);
    }
    f(pairs, count, back ? all - done - count : done);
    done += count;
  }
}

/// dv_t += β_t c_t, dβ_t += c_t·u_t
template <class S> void correct(const typename BackwardPair<S>::One& one, Index dv) {
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  const Vector c(one.c, dv);
  Vector(one.dv, dv) += one.beta * c;
  *one.dbeta += (c * Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>(one.u, dv)).sum();
}

/// From G of the final state to that of the first, in place, and to those of the tokens. `W` is the
/// first state.
template <bool Corrects, class Matrix, class S>
void backward_pairs(const Matrix& W, Matrix& G, const BackwardTokens<S>& t, Index steps) {
  struct Errors;
  struct Transposed;
  struct Answered;
  const Index dv = W.rows(), dk = W.cols();
  S* const answered = thread_room<S, Answered>(4 * ((steps + 1) / 2));
  Panels<S, Transposed> transposed(dk, dv);
  Panels<S, Errors> errors(dv, dk);
  transposed.copy_in_transposed(G.data(), G.colStride());
  errors.copy_in(G.data(), G.colStride());
  for_pairs(t, steps, true, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) {
      const auto &one = pairs[i].one, &two = pairs[i].two;
      dot_products({one.k, one.k, one.k, two.k}, {two.k, one.q, two.q, two.q}, dk, pairs[i].met);
    }
    errors.each([&](auto packets, const auto& p) {
      PanelErrors<S, packets, Corrects>::run(p.data, dk, pairs, count, p.first, p.rows);
    });
    for (Index i = 0; i < count; ++i) {
      const auto &one = pairs[i].one, &two = pairs[i].two;
      dot_products({one.u, one.u, two.u, one.u},
                   {one.dy, two.dy, two.dy, Corrects ? two.c : two.dy}, dv, pairs[i].answered);
      if constexpr (Corrects) {
        correct<S>(one, dv);
        if (!pairs[i].lonely) correct<S>(two, dv);
      }
      std::copy_n(pairs[i].answered, 4, answered + 4 * (first + count - 1 - i));
    }
    transposed.each([&](auto packets, const auto& p) {
      PanelKeys<S, packets, Corrects>::run(p.data, dv, pairs, count, p.first, p.rows);
    });
  });
  errors.copy_out(G.data(), G.colStride());
  transposed.copy_in_transposed(W.data(), W.colStride());
  for_pairs(t, steps, false, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) std::copy_n(answered + 4 * (first + i), 4, pairs[i].answered);
    transposed.each([&](auto packets, const auto& p) {
      PanelQueries<S, packets, Corrects>::run(p.data, dv, pairs, count, p.first, p.rows);
    });
  });
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
