#pragma once

#include <fastweights/kernels/pair.hpp>

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

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
