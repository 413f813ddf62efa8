#pragma once

#include <fastweights/algorithms/step.hpp>

#include "kernels/compare.hpp"

/// \file
/// fw::write of one token, with and without its error, and fw::read. check() of compare.hpp has the
/// state of all rules.

using Eigen::Matrix;
using fw::Dynamic;

// Of any size, so that what is expected is compiled once for all sizes that are fixed.
template <class S> using AnyMatrix = Matrix<S, Dynamic, Dynamic>;
template <class S> using AnyVector = Matrix<S, Dynamic, 1>;

template <class S> AnyMatrix<S> error_of(AnyMatrix<S> W, AnyVector<S> value, AnyVector<S> key) {
  return value - W * key;
}
template <class S> void check_equal(AnyMatrix<S> given, AnyMatrix<S> expected) {
  CHECK(difference(given, expected) <= 100 * double{std::numeric_limits<S>::epsilon()});
}
template <class S> void check_product(AnyMatrix<S> W, AnyVector<S> query, AnyVector<S> given) {
  const Eigen::VectorXd expected = W.template cast<double>() * query.template cast<double>();
  const double limit = 10 * double{std::numeric_limits<S>::epsilon()} * double(query.size());
  CHECK((given.template cast<double>() - expected).cwiseAbs().maxCoeff() <= limit);
}

// Against error(m, state, token), an expression of the state before the write.
template <class M, class F> void check_errors(const M& m, const F& error) {
  using S = typename M::Scalar;
  Run<M> run(m, 4), plain(m, 4);
  const auto sizes = m.signature().sizes();
  INFO(M::name << " d_v " << sizes.value_size << " d_k " << sizes.key_size);
  Index t = 0;
  run.each(m, [&](const auto& w, const auto&, const auto&) {
    INFO("t " << t++);
    const AnyMatrix<S> expected = error(run.state, w);
    AnyMatrix<S> given(w.value.rows(), w.value.cols());
    given.setConstant(S(NAN));
    fw::write(m, run.state, w, {given});
    fw::write(m, plain.state, w);
    check_equal<S>(given, expected);
    check_equal<S>(run.state.W, plain.state.W);
  });
}

template <class M> void check_delta(const M& m) {
  check_errors(m, [](const auto& s, const auto& w) {
    return error_of<typename M::Scalar>(s.W, w.value, w.key);
  });
}

// Reads of few rows have a product of their own.
template <class M> void check_read(const M& m) {
  using S = typename M::Scalar;
  const auto sizes = m.signature().sizes();
  INFO("d_v " << sizes.value_size << " d_k " << sizes.key_size);
  auto state = fw::initial_state(m);
  state.W = AnyMatrix<S>::Random(sizes.value_size, sizes.key_size);
  const AnyVector<S> query = AnyVector<S>::Random(sizes.key_size);
  AnyVector<S> y = AnyVector<S>::Constant(sizes.value_size, S(NAN));
  fw::read(m, state, {query}, {y});
  check_product<S>(state.W, query, y);
}
