#pragma once

#include <fastweights/layers/hypernetwork.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "hypernetwork/problem.hpp"

/// \file
/// Defines worst_error, for the sources that instantiate it.

template <class S> fw::Hypernetwork<S> hypernetwork(const Problem& p, bool causal) {
  std::vector<Matrix<S>> cast;
  for (const auto& each : p.theta) cast.push_back(each.cast<S>());
  return fw::Hypernetwork<S>(std::move(cast), p.a.cast<S>(), {.causal = causal});
}

// A σ(ω(z) x) for the whole batch.
template <class F> Matrix<long double> evaluate(const Problem& p, const F& f) {
  using Long = long double;
  Matrix<Long> u = Matrix<Long>::Zero(p.a.cols(), p.x.cols());
  for (Index m = 0; m < p.z.rows(); ++m)
    u += p.theta[static_cast<std::size_t>(m)].cast<Long>() * p.x.cast<Long>() *
         p.z.row(m).cast<Long>().asDiagonal();
  return p.a.cast<Long>() * u.unaryExpr([&](Long each) { return f.value(each); });
}

template <class S>
double error(const Problem& p, const fw::Hypernetwork<S>& net,
             const fw::networks::Network<S>& block, const Matrix<long double>& exact) {
  typename fw::networks::Network<S>::Trace trace;
  Matrix<S> Y(net.width(), 2);
  double worst = 0;
  for (Index i = 0; i < p.x.cols(); ++i) {
    auto state = block.initial_state();
    block.forward(state, net.tokens(p.x.col(i).cast<S>(), p.z.col(i).cast<S>()), Y, trace);
    const Matrix<long double> difference =
        net.output(Y).template cast<long double>() - exact.col(i);
    keep_worst(worst, static_cast<double>(difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>()));
  }
  const auto largest = static_cast<double>(exact.cwiseAbs().maxCoeff());
  return largest > 0 ? worst / largest : worst;
}

template <class S, class F> double worst_error_with(const Problem& p, const F& f) {
  const Matrix<long double> exact = evaluate(p, f);
  double worst = 0;
  for (const bool causal : {true, false}) {
    const auto net = hypernetwork<S>(p, causal);
    const auto sum =
        net.template block<F>(fw::LinearAttention<S>({.key_size = 1, .value_size = net.hidden()}));
    const auto delta =
        net.template block<F>(fw::DeltaRule<S>({.key_size = 1, .value_size = net.hidden()}));
    for (const double each : {error(p, net, sum, exact), error(p, net, delta, exact)})
      keep_worst(worst, each);
  }
  return worst;
}

template <class S> double worst_error(const Problem& p, const std::string& nonlinearity) {
  if (nonlinearity == "tanh") return worst_error_with<S>(p, fw::Tanh{});
  if (nonlinearity == "relu") return worst_error_with<S>(p, fw::Relu{});
  return worst_error_with<S>(p, fw::Sigmoid{});
}
