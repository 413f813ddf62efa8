#pragma once

#include <fastweights/math/products.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// KᵀQ with the entries of later keys (below the diagonal) set to zero: C×C, entry (i, t) is
/// k_i·q_t for i ≤ t.
template <class S, class K, class Q>
Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> causal_products(const K& keys, const Q& queries) {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> products(keys.cols(), queries.cols());
  set_product(products, keys.transpose(), queries);
  products.template triangularView<Eigen::StrictlyLower>().setZero();
  return products;
}

/// The system of a chunk of a delta rule, u_t = f(t, v_t − Σ_{i<t} u_i p_it) with p_it = b_i·a_t,
/// is solved in place. Rounding errors fade by 1 − β a·b per write of the same key. Writes with
/// β a·b > 1 reflect: an error of p does not fade, but adds up over all writes of a key; with 2,
/// outputs after T writes are within 4 T units of rounding, here as in scan. With such a write a
/// chunk in float takes its products and sums in double, and is then as exact as steps. Calls
/// solve(U, P) with matrices of one scalar; `decay_products(P)` applies decays.
template <class K, class L, class B, class U, class Decay, class Solve>
void solve_chunk(const K& keys, const L& lookups, const B& betas, U& updates,
                 const Decay& decay_products, const Solve& solve) {
  using S = typename U::Scalar;
  auto products = causal_products<S>(keys, lookups);
  if constexpr (std::is_same_v<S, float>) {
    const auto factors = betas.colwise().maxCoeff().cwiseProduct(products.diagonal().transpose());
    if (factors.size() > 0 && factors.maxCoeff() > 1) {
      const Eigen::MatrixXd exact_keys = keys.template cast<double>(),
                            exact_lookups = lookups.template cast<double>();
      auto exact_products = causal_products<double>(exact_keys, exact_lookups);
      decay_products(exact_products);
      Eigen::MatrixXd exact = updates.template cast<double>();
      solve(exact, exact_products);
      updates = exact.cast<float>();
      return;
    }
  }
  decay_products(products);
  solve(updates, products);
}

/// W X diag(γ), as W (X diag(γ)): a product with the undecayed W may be too large for S.
template <class S, class To, class W, class X, class D>
void set_decayed_product(To& to, const W& w, const X& x, const Eigen::MatrixBase<D>& decays) {
  const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> decayed = x * decays.asDiagonal();
  set_product(to, w, decayed);
}

/// W += U Kᵀ. A compensated W is rounded every 16 tokens, because the product itself is a plain
/// sum.
template <class Sum, class State, class U, class K>
void add_writes(State& s, const U& updates, const K& keys) {
  const Eigen::Index steps = keys.cols(), block = Sum::compensated ? 16 : steps;
  for (Eigen::Index t = 0; t < steps; t += block) {
    const Eigen::Index count = std::min(block, steps - t);
    Sum::add(s.W, s.sum, [&](auto& sum) {
      add_product(sum, updates.middleCols(t, count), keys.middleCols(t, count).transpose());
    });
  }
}

}  // namespace fw::detail
