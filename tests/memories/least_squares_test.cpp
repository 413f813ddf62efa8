#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/memories/rules/recursive_least_squares.hpp>
#include <limits>
#include <stdexcept>
#include <utility>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reductions.hpp"

/// \file
/// Recursive least squares: the normal equations, the textbook's recursion in long double, the Mesa
/// memory, and streams that the textbook's recursion does not survive in float.

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using Rls = fw::RecursiveLeastSquares<double>;
using RlsOfFloats = fw::RecursiveLeastSquares<float>;
using Long = Eigen::Matrix<long double, fw::Dynamic, fw::Dynamic>;

// Without a bound for P.
constexpr double infinite = std::numeric_limits<double>::infinity();

// Random keys and values, and decays from `least` to 1.
struct Tokens {
  MatrixXd keys, values, decays;

  Tokens(Index dk, Index dv, Index count, double least) : keys(dk, count), values(dv, count) {
    fw::Random random(11);
    decays.resize(1, count);
    for (double& x : keys.reshaped()) x = random.normal();
    for (double& x : values.reshaped()) x = random.normal();
    for (double& x : decays.reshaped()) x = least + (1 - least) * random.uniform();
  }
  template <class M> auto state_of(const M& m) const {
    auto s = fw::initial_state(m);
    for (Index t = 0; t < keys.cols(); ++t)
      fw::write(m, s, {keys.col(t), values.col(t), decays(0, t)});
    return s;
  }
};

double relative(const MatrixXd& given, const MatrixXd& expected) {
  return largest_entry(given - expected) / largest_entry(expected);
}

template <class F> void for_sizes(const F& f) {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {1, 3}, {3, 1}, {3, 17}, {17, 3}})
    for (const double least : {1.0, 0.9}) {
      INFO("d_k " << dk << " d_v " << dv << " decays from " << least);
      f(dk, dv, least);
    }
}

TEST_CASE("recursive least squares solves the normal equations", "[rls]") {
  for_sizes([](Index dk, Index dv, double least) {
    for (const Index count : {1, 2, 60})
      for (const double ridge : {0.01, 2.0}) {
        const Tokens tokens(dk, dv, count, least);
        const auto s = tokens.state_of(Rls({dk, dv}, {ridge, infinite}));
        VectorXd weights(count);
        double product = 1;
        for (Index t = count - 1; t >= 0; product *= tokens.decays(0, t), --t) weights[t] = product;
        const MatrixXd weighted = tokens.keys * weights.asDiagonal();
        const MatrixXd G =
            weighted * tokens.keys.transpose() + ridge * product * MatrixXd::Identity(dk, dk);
        const MatrixXd W = G.ldlt().solve(weighted * tokens.values.transpose()).transpose();
        CHECK(relative(s.W, W) <= 1e-10);
        CHECK(relative(s.F * s.F.transpose() * G, MatrixXd::Identity(dk, dk)) <= 1e-9);
      }
  });
}

// As the books have it, with P itself.
struct Textbook {
  Long W, P;

  void write(const Long& key, const Long& value, long double decay) {
    const Long product = P * key;
    const Long gain = product / (decay + (key.transpose() * product)(0, 0));
    W += (value - W * key) * gain.transpose();
    P = (P - gain * product.transpose()) / decay;
  }
};

TEST_CASE("recursive least squares is the textbook's recursion, in every token", "[rls]") {
  for_sizes([](Index dk, Index dv, double least) {
    const Tokens tokens(dk, dv, 200, least);
    const Rls m({dk, dv}, {0.5, infinite});
    auto s = fw::initial_state(m);
    Textbook book{Long::Zero(dv, dk), 2 * Long::Identity(dk, dk)};
    double worst = 0;
    for (Index t = 0; t < 200; ++t) {
      fw::write(m, s, {tokens.keys.col(t), tokens.values.col(t), tokens.decays(0, t)});
      book.write(tokens.keys.col(t).cast<long double>(), tokens.values.col(t).cast<long double>(),
                 tokens.decays(0, t));
      keep_worst(worst, relative(s.W, book.W.cast<double>()));
      keep_worst(worst, relative(s.F * s.F.transpose(), book.P.cast<double>()));
    }
    CHECK(worst <= 1e-10);
  });
}

// Its ridge stays while that of recursive least squares fades.
TEST_CASE("the Mesa memory has the outputs of recursive least squares", "[rls][mesa]") {
  constexpr Index dk = 6, dv = 3, count = 40;
  const Tokens tokens(dk, dv, count, 0.9);
  const auto rls = make_memory<double>("RecursiveLeastSquares",
                                       {dk, dv, {{"ridge", 0.25}, {"largest", infinite}}});
  const auto mesa = make_memory<double>("MesaMemory", {dk, dv});
  for (const bool forgets : {false, true}) {
    auto a = rls.initial_state(), b = mesa.initial_state();
    auto ridge = leaf(b, "slow.ridge");
    ridge.setConstant(0.25);
    double worst = 0;
    for (Index t = 0; t < count; ++t) {
      const VectorXd key = tokens.keys.col(t), value = tokens.values.col(t),
                     query = tokens.keys.col(count - 1 - t);
      const double decay = forgets ? tokens.decays(0, t) : 1;
      ridge *= decay;
      VectorXd given(dv), expected(dv);
      rls.step(a, {key, value, decay}, {query}, {given});
      mesa.step(b, {key, value, 1.0, decay}, {query}, {expected});
      keep_worst(worst, relative(given, expected));
    }
    CHECK(worst <= 1e-11);
  }
}

TEST_CASE("a write of recursive least squares gives its error", "[rls]") {
  for (const Index dv : {1, 3, 17}) {
    const Tokens tokens(5, dv, 20, 0.9);
    const Rls m({5, dv});
    auto s = fw::initial_state(m), plain = s;
    for (Index t = 0; t < 20; ++t) {
      const VectorXd key = tokens.keys.col(t), value = tokens.values.col(t);
      const VectorXd expected = value - s.W * key;
      VectorXd error = VectorXd::Constant(dv, std::nan(""));
      fw::write(m, s, {key, value, tokens.decays(0, t)}, {error});
      fw::write(m, plain, {key, value, tokens.decays(0, t)});
      CHECK(largest_entry(error - expected) <= 1e-14);
      CHECK(s.W == plain.W);
      CHECK(s.F == plain.F);
    }
    VectorXd wrong(dv + 1);
    CHECK_THROWS_AS(fw::write(m, s, {tokens.keys.col(0), tokens.values.col(0), 1.0}, {wrong}),
                    std::invalid_argument);
    CHECK(s.W == plain.W);
  }
}

// The samples are a sum of their last 8 with weights that change at half time.
TEST_CASE("recursive least squares finds a filter in the noise, and follows a change", "[rls]") {
  constexpr Index taps = 8, count = 2000;
  fw::Random random(5);
  VectorXd filter(taps), window = VectorXd::Zero(taps), error(1), desired(1);
  const fw::RecursiveLeastSquares<double, taps, 1> m({}, {.ridge = 0.01});
  auto s = fw::initial_state(m);
  double squares = 0;
  for (Index t = 0; t < count; ++t) {
    if (t % (count / 2) == 0) {
      for (double& x : filter) x = random.normal();
      squares = 0;
    }
    for (Index i = taps - 1; i > 0; --i) window[i] = window[i - 1];
    window[0] = 0.9 * window[0] + random.normal();  // coloured, which slows NLMS down
    desired[0] = filter.dot(window) + 0.01 * random.normal();
    fw::write(m, s, {window, desired, 0.98}, {error});
    if (t % (count / 2) > 400) squares += error.squaredNorm();
    if (t % (count / 2) == count / 2 - 1) {
      CHECK(largest_entry(s.W.transpose() - filter) <= 0.01);
      CHECK(std::sqrt(squares / 599) <= 0.012);
    }
  }
}

TEST_CASE("P of recursive least squares grows to its bound, and forgetting stops", "[rls]") {
  for (const double decay : {0.99, 0.5, 0.0}) {
    const Rls m({3, 2}, {.ridge = 0.5, .largest = 100});
    auto s = fw::initial_state(m);
    const VectorXd zero = VectorXd::Zero(3), key = VectorXd::Unit(3, 1), value = VectorXd::Ones(2);
    for (Index t = 0; t < 2000; ++t) {
      fw::write(m, s, {t % 2 ? zero : key, value, decay});
      CHECK(s.F.squaredNorm() <= 600 * (1 + 1e-12));
    }
    CHECK(s.F.squaredNorm() >= 590);
    CHECK(largest_entry(s.W.col(1) - value) <= 1e-2);
    CHECK(s.W.col(0).isZero());
  }
}

// All keys are in a plane, so that P would overflow without a bound, and have rounding errors as
// large as its smallest eigenvalues.
TEST_CASE("recursive least squares stays exact over a million tokens in float", "[rls]") {
  for (const float decay : {1.0f, 0.9999f, 0.99f, 0.9f}) {
    INFO("decay " << decay);
    const RlsOfFloats m({4, 1});
    auto s = fw::initial_state(m);
    fw::Random random(2);
    Eigen::Matrix<float, 4, 2> plane;
    for (float& x : plane.reshaped()) x = float(random.normal());
    const Eigen::Vector4f filter(1, -2, 3, 0.5f);
    Eigen::Matrix<float, 1, 1> desired, error;
    float largest = 0;
    for (Index t = 0; t < 1000000; ++t) {
      const Eigen::Vector4f key =
          plane * Eigen::Vector2f(float(random.normal()), float(random.normal()));
      desired[0] = filter.dot(key);
      fw::write(m, s, {key, desired, decay}, {error});
      if (t >= 1000)
        largest = std::max(largest, std::isfinite(error[0]) ? std::abs(error[0]) : 1e9f);
    }
    CHECK(largest <= 1e-2f);
    CHECK(s.F.allFinite());
    CHECK(s.F.squaredNorm() <= 4.001e4f);
  }
}

TEST_CASE("recursive least squares takes keys of any size", "[rls]") {
  const RlsOfFloats m({3, 2});
  for (const float size : {1e-30f, 1e-15f, 1e15f, 1e30f}) {
    auto s = fw::initial_state(m);
    for (Index t = 0; t < 100; ++t) {
      const Eigen::VectorXf key = size * Eigen::VectorXf::Unit(3, t % 3),
                            ones = Eigen::VectorXf::Ones(2);
      fw::write(m, s, {key, ones, t % 7 ? 0.9f : 0.0f});
      CHECK((s.F.allFinite() && s.W.allFinite()));
      // The key is much longer than √δ, or much shorter.
      const Eigen::VectorXf found = s.W * key;
      CHECK((found - (size > 1 ? 1.0f : 0.0f) * ones).cwiseAbs().maxCoeff() < 1e-5f);
    }
  }
}

TEST_CASE("recursive least squares refuses a ridge and a bound that are out of range", "[rls]") {
  const auto error = [](const char* option, double value) {
    return error_of([&] {
      make_memory<double>("RecursiveLeastSquares", {3, 2, {{option, value}}});
    });
  };
  CHECK(error("ridge", 0) == "RecursiveLeastSquares: ridge is 0, expected 1e-30 to 1e30");
  for (const double ridge : {-1.0, 1e-31, 1e31, std::nan(""), infinite})
    CHECK(error("ridge", ridge).ends_with("expected 1e-30 to 1e30"));
  CHECK(error("largest", 0.5) == "RecursiveLeastSquares: largest is 0.5, expected at least 1");
  CHECK(error("largest", std::nan("")).ends_with("expected at least 1"));
  CHECK(error("largest", infinite) == "no error");
}

}  // namespace
