#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/math/random.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using fw::Domain;
using fw::GaussianShape;
using fw::Index;
using fw::ParabolaShape;
using Complex = std::complex<double>;
using Vector = Eigen::VectorXd;
template <class S> using Gaussians = fw::GaussianBasis<S>;
template <class S> using Slots = fw::RectangularBasis<S>;
template <class S> using Learned = fw::LearnedComponents<S>;
template <class S, class Shape = GaussianShape>
using Density = fw::MixtureDensity<S, Learned<S>, Shape>;

// Calls f(t, weight of t) for quadrature nodes of [lo, hi]. Splits the interval at `cuts`, and into
// pieces whose length grows with the distance from μ.
template <class F>
void quadrature(double lo, double hi, double mu, double width, std::vector<double> cuts,
                const F& f) {
  cuts.insert(cuts.end(), {hi, mu});
  for (double step = width / 8; step < 200; step *= 1.5)
    cuts.insert(cuts.end(), {mu - step, mu + step});
  std::sort(cuts.begin(), cuts.end());
  double last = lo;
  for (const double cut : cuts) {
    if (cut <= last || cut > hi) continue;
    const double middle = 0.5 * (last + cut);
    fw::detail::GaussLegendre::visit(last, middle, f);
    fw::detail::GaussLegendre::visit(middle, cut, f);
    last = cut;
  }
}

double half_width(double v) { return std::cbrt(1.5 * v); }

template <class Shape> double density_at(double mu, double v, double t) {
  if constexpr (std::is_same_v<Shape, GaussianShape>) {
    return std::exp(-0.5 * (t - mu) * (t - mu) / v) / std::sqrt(2 * M_PI * v);
  } else {
    const double a = half_width(v);
    return std::max(0.0, (a * a - (t - mu) * (t - mu)) / (2 * v));
  }
}

// The ends of the density's support, where the quadrature must split intervals.
template <class Shape> std::vector<double> ends(double mu, double v) {
  if constexpr (std::is_same_v<Shape, GaussianShape>)
    return {};
  else
    return {mu - half_width(v), mu + half_width(v)};
}

template <class Shape, class Basis>
Vector by_quadrature(const Basis& basis, Domain domain, double mu, double v) {
  const double lo = domain == Domain::unit ? 0 : -8 - 9 * std::sqrt(v);
  const double hi = domain == Domain::unit ? 1 : 9 + 9 * std::sqrt(v);
  std::vector<double> cuts = ends<Shape>(mu, v);
  for (Index n = 0; n < basis.size(); ++n)
    for (const double k : {-7.0, -4.0, -1.7320508075688772, 0.0, 1.7320508075688772, 4.0, 7.0})
      cuts.push_back(basis.means()[n] + k * std::sqrt(basis.variances()[n]));
  const double width = std::min(std::sqrt(v), half_width(v));
  Vector r = Vector::Zero(basis.size()), psi(basis.size());
  double mass = 0;
  quadrature(lo, hi, mu, width, cuts, [&](double t, double weight) {
    basis.evaluate(t, psi);
    r += weight * density_at<Shape>(mu, v, t) * psi;
    mass += weight * density_at<Shape>(mu, v, t);
  });
  CHECK((domain == Domain::unit || std::abs(mass - 1) <= 1e-12));
  return domain == Domain::unit ? Vector(r / mass) : r;
}

template <class Shape, class Basis, class S>
Eigen::Matrix<S, -1, 1> weights(const Basis& basis, Domain domain, const S& mu, const S& v) {
  Eigen::Matrix<S, -1, 1> r = Eigen::Matrix<S, -1, 1>::Zero(basis.size());
  Shape::add(basis, domain, S(1), mu, v, r);
  return r;
}

constexpr std::array<double, 7> variances{1e-10, 1e-6, 1e-4, 3e-3, 0.04, 0.7, 50};

// Calls f(basis, domain, μ, v) for all combinations.
template <class F> void everywhere(const F& f) {
  fw::Random random(1);
  const Gaussians<double> wide(9, {0.05, 0.3}), narrow(12, {0.01});
  const Slots<double> slots(7), one(1);
  for (const Domain domain : {Domain::line, Domain::unit})
    for (const double v : variances)
      for (const double mu : {0.0, random.uniform(), random.uniform(), 0.5, 1.0}) {
        INFO("unit " << (domain == Domain::unit) << ", mu " << mu << ", v " << v);
        f(wide, domain, mu, v);
        f(narrow, domain, mu, v);
        f(slots, domain, mu, v);
        f(one, domain, mu, v);
      }
}

template <class Shape> void weights_are_integrals() {
  everywhere([](const auto& basis, Domain domain, double mu, double v) {
    const Vector r = weights<Shape>(basis, domain, mu, v);
    const Vector expected = by_quadrature<Shape>(basis, domain, mu, v);
    CHECK(largest_entry(r - expected) <= 1e-11 * std::max(1.0, expected.cwiseAbs().maxCoeff()));
  });
}

// ∂/∂μ and ∂/∂v of Σ dr·r. They are of order 1/√v and 1/v.
template <class Shape> void slopes_are_exact() {
  fw::Random random(2);
  everywhere([&](const auto& basis, Domain domain, double mu, double v) {
    Vector dr(basis.size());
    random.fill(dr);
    const auto sums = Shape::sums(basis, domain, mu, v, dr);
    const auto twin = basis.template cast<Complex>();
    const auto sum = [&](const Complex& m, const Complex& s) -> Complex {
      return weights<Shape>(twin, domain, m, s).dot(dr.cast<Complex>());
    };
    // The scale of r; p changes on the scale `turn`.
    const double size = dr.cwiseAbs().dot(weights<Shape>(basis, domain, mu, v).cwiseAbs()) + 1e-3;
    const double dmean = std::conj(sum({mu, 1e-30}, v)).imag() / 1e-30;
    const double dvariance = std::conj(sum(mu, {v, 1e-30})).imag() / 1e-30;
    const double turn = std::is_same_v<Shape, GaussianShape> ? std::sqrt(v) : half_width(v);
    CHECK(std::abs(sums.value - sum(mu, v).real()) <= 1e-12 * size);
    CHECK(std::abs(sums.dmean - dmean) <= 1e-11 * size / turn);
    CHECK(std::abs(sums.dvariance - dvariance) <= 1e-11 * size / v);
  });
}

TEST_CASE("weights of a density are its integrals", "[continuous][density]") {
  weights_are_integrals<GaussianShape>();
  weights_are_integrals<ParabolaShape>();
}

TEST_CASE("derivatives of a density's weights are exact", "[continuous][density]") {
  slopes_are_exact<GaussianShape>();
  slopes_are_exact<ParabolaShape>();
}

TEST_CASE("on [0, 1] the weights of slots sum to 1", "[continuous][density]") {
  everywhere([](const auto& basis, Domain, double mu, double v) {
    if constexpr (std::is_same_v<decltype(basis), const Slots<double>&>) {
      CHECK(std::abs(weights<GaussianShape>(basis, Domain::unit, mu, v).sum() - 1) <= 1e-14);
      CHECK(std::abs(weights<ParabolaShape>(basis, Domain::unit, mu, v).sum() - 1) <= 1e-14);
    }
  });
}

// For a narrow density E_p[ψ] ≈ ψ(μ) + ½ Var ψ″(μ), with Var = a²/5 for the parabola and v for the
// normal density.
template <class Shape, class S> void narrow_is_a_point(Domain domain, double tolerance) {
  const Gaussians<double> exact(9, {0.05, 0.3});
  const Gaussians<S> basis = exact.cast<S>();
  for (const double v : {1e-12, 1e-10, 1e-8}) {
    const double mu = 0.37;
    const bool parabola = std::is_same_v<Shape, ParabolaShape>;
    const double variance = parabola ? half_width(v) * half_width(v) / 5 : v;
    Vector psi(9);
    exact.evaluate(mu, psi);
    const Eigen::ArrayXd z2 = (mu - exact.means()).square() / exact.variances();
    const Vector expected = psi.array() * (1 + 0.5 * variance * (z2 - 1) / exact.variances());
    INFO("v " << v << ", unit " << (domain == Domain::unit));
    const auto r = weights<Shape>(basis, domain, S(mu), S(v));
    CHECK(largest_entry(r.template cast<double>() - expected) <= tolerance);
  }
}

TEST_CASE("a density of tiny variance has no cancellation", "[continuous][density]") {
  // The expansion omits terms of order (1.5e-8)^(4/3)/0.05⁴, the fourth moment over σ_min⁴.
  for (const Domain domain : {Domain::line, Domain::unit}) {
    narrow_is_a_point<ParabolaShape, double>(domain, 2e-4);
    narrow_is_a_point<ParabolaShape, float>(domain, 2e-4);
    narrow_is_a_point<GaussianShape, double>(domain, 1e-8);
    narrow_is_a_point<GaussianShape, float>(domain, 5e-6);
  }
}

Learned<double> random_components(Index functions, Index components, bool bias,
                                  fw::Random& random) {
  Learned<double> learned(functions, components, bias, 1e-3);
  learned.initialise(random);
  for (auto* each : {&learned.mean_bias, &learned.variance_bias, &learned.mixing_bias})
    random.fill(*each);
  return learned;
}

TEST_CASE("a mixture is the weighted sum of its parts", "[continuous][density]") {
  fw::Random random(3);
  const Gaussians<double> basis(9, {0.05, 0.3});
  for (const Index components : {2, 3, 8})
    for (const Domain domain : {Domain::line, Domain::unit}) {
      const Density<double> mixture{random_components(9, components, components != 3, random),
                                    domain};
      Vector scores(9), r(9), expected = Vector::Zero(9);
      random.fill(scores);
      const auto at = mixture.mixture_of(basis, scores);
      CHECK(std::abs(at.weight.sum() - 1) <= 1e-15);
      CHECK((at.weight > 0).all());
      mixture.expect(basis, scores, at, r);
      for (Index c = 0; c < components; ++c)
        expected +=
            at.weight[c] * weights<GaussianShape>(basis, domain, at.mean[c], at.variance[c]);
      CHECK(largest_entry(r - expected) <= 1e-14);
    }
}

// Checks ∂/∂s and ∂/∂parameters of Σ dr·r + Σ up·mixture against the complex step.
template <class D, class Z, class Basis>
void gradients_are_exact(const D& density, Z twin, const Basis& basis) {
  fw::Random random(4);
  const auto zbasis = basis.template cast<Complex>();
  Vector scores(basis.size()), dr(basis.size()), ds(basis.size());
  random.fill(scores);
  random.fill(dr);
  D grad = density;
  fw::for_each_leaf(
      [](auto& leaf) {
        if constexpr (requires { leaf.setZero(); }) leaf.setZero();
      },
      grad);
  const auto at = density.mixture_of(basis, scores);
  auto d = density.zero_gradient(at), up = d;
  random.fill(up.mean);
  random.fill(up.variance);
  d = up;
  density.vjp(basis, scores, at, dr, d, ds, grad);
  Eigen::VectorXcd zscores = scores.cast<Complex>();
  const auto loss = [&]() -> Complex {
    const auto mixture = twin.mixture_of(zbasis, zscores);
    Eigen::VectorXcd r(basis.size());
    twin.expect(zbasis, zscores, mixture, r);
    return (r.array() * dr.array()).sum() + (mixture.mean * up.mean).sum() +
           (mixture.variance * up.variance).sum();
  };
  const auto slope = [&](Complex& entry) {
    const Complex kept = entry;
    entry += Complex(0, 1e-30);
    const double by_step = loss().imag() / 1e-30;
    entry = kept;
    return by_step;
  };
  for (Index n = 0; n < ds.size(); ++n) CHECK(std::abs(ds[n] - slope(zscores[n])) <= 1e-12);
  fw::for_each_leaf(
      [&](const auto& g, auto& z) {
        if constexpr (requires { z.setZero(); })
          for (Index i = 0; i < g.size(); ++i)
            CHECK(std::abs(g.data()[i] - slope(z.data()[i])) <= 1e-12);
      },
      grad, twin);
}

TEST_CASE("gradients of scores and parameters are exact", "[continuous][density]") {
  fw::Random random(5);
  const Gaussians<double> gaussians(6, {0.05, 0.3});
  const Slots<double> slots(6);
  for (const Domain domain : {Domain::line, Domain::unit}) {
    for (const Index components : {1, 3})
      for (const bool bias : {true, false}) {
        const auto learned = random_components(6, components, bias, random);
        const Density<double> normal{learned, domain};
        const Density<double, ParabolaShape> parabola{learned, domain};
        gradients_are_exact(normal, normal.cast<Complex>(), gaussians);
        gradients_are_exact(normal, normal.cast<Complex>(), slots);
        gradients_are_exact(parabola, parabola.cast<Complex>(), gaussians);
        gradients_are_exact(parabola, parabola.cast<Complex>(), slots);
      }
    const fw::MixtureDensity<double, fw::MatchedComponent<double>> moments{{}, domain};
    gradients_are_exact(moments, moments.cast<Complex>(), gaussians);
    gradients_are_exact(moments, moments.cast<Complex>(), slots);
  }
}

TEST_CASE("the mean of a learned component stays within (0, 1), a floored variance has no gradient",
          "[continuous][density]") {
  const Gaussians<double> basis(4, {0.1});
  Density<double> density{Learned<double>(4, 1, true, 0.01)};
  auto& learned = density.components;
  learned.mean_weight.setConstant(1);
  learned.variance_weight.setConstant(1);
  Vector scores(4), r(4), dr = Vector::Ones(4), ds(4);
  for (const double each : {-30.0, -1e-3, 8.0}) {
    scores.setConstant(each);
    const auto at = density.mixture_of(basis, scores);
    CHECK((at.mean[0] >= 0 && at.mean[0] <= 1));
    CHECK(at.mean[0] == Catch::Approx(1 / (1 + std::exp(-4 * each))));
    CHECK(at.variance[0] == Catch::Approx(std::max(0.01, std::log1p(std::exp(4 * each)))));
    CHECK(at.weight[0] == 1);
  }
  scores.setConstant(-2);  // softplus(−8) = 0.0003
  const auto at = density.mixture_of(basis, scores);
  auto d = density.zero_gradient(at);
  Density<double> grad{Learned<double>(4, 1, true, 0.01)};
  density.vjp(basis, scores, at, dr, d, ds, grad);
  CHECK(grad.components.variance_weight.isZero(0));
  CHECK(grad.components.variance_bias[0] == 0);
  CHECK(!grad.components.mean_weight.isZero(0));
}

TEST_CASE("small variances are accurate in float", "[continuous][density]") {
  Learned<double> learned(1, 1, true);
  const Gaussians<double> basis(1, {0.1});
  const Vector none = Vector::Zero(1);
  for (const double bias : {-12.0, -9.3, -5.1, 0.2, 3.0}) {
    learned.variance_bias[0] = bias;
    const double v = learned.mixture_of(basis, none).variance[0];
    CHECK(v == Catch::Approx(std::log1p(std::exp(bias))).epsilon(1e-13));
    const auto narrow = learned.cast<float>();
    const float w = narrow.mixture_of(basis.cast<float>(), none.cast<float>().eval()).variance[0];
    CHECK(w == Catch::Approx(v).epsilon(2e-6));
  }
}

TEST_CASE("discrete moments are the moments of the weighted mixture", "[continuous][density]") {
  fw::Random random(6);
  const Gaussians<double> basis(7, {0.05, 0.3});
  Vector scores(7), psi(7);
  random.fill(scores, 3);
  const Eigen::ArrayXd a = scores.array().exp() / scores.array().exp().sum();
  double mass = 0, first = 0, second = 0;
  std::vector<double> cuts;
  for (int i = -200; i < 250; ++i) cuts.push_back(i / 50.0);
  quadrature(-4, 5, 0.5, 0.05, cuts, [&](double t, double weight) {
    basis.evaluate(t, psi);
    const double p = weight * (a * psi.array()).sum();
    mass += p;
    first += p * t;
    second += p * t * t;
  });
  const auto at = fw::MatchedComponent<double>{}.mixture_of(basis, scores);
  CHECK(std::abs(mass - 1) <= 1e-12);
  CHECK(std::abs(at.mean[0] - first) <= 1e-12);
  CHECK(std::abs(at.variance[0] - (second - first * first)) <= 1e-12);
  CHECK(fw::MatchedComponent<double>{7}.mixture_of(basis, scores).variance[0] == 7);
  scores.array() += 1e4;  // no overflow
  CHECK(fw::MatchedComponent<double>{}.mixture_of(basis, scores).mean[0] ==
        Catch::Approx(at.mean[0]).epsilon(1e-10));
}

TEST_CASE("the Gibbs density over slots is softmax", "[continuous][density]") {
  fw::Random random(7);
  for (const Index n : {1, 2, 7, 40}) {
    const Slots<double> basis(n);
    const fw::GibbsDensity<double> density(basis);
    Vector scores(n), r(n), dr(n), ds(n);
    random.fill(scores, 2);
    random.fill(dr);
    density.expect(basis, scores, {}, r);
    const Vector softmax = scores.array().exp() / scores.array().exp().sum();
    CHECK(largest_entry(r - softmax) <= 1e-15);
    fw::GibbsDensity<double>::Mixture unused_mixture;
    fw::GibbsDensity<double> unused = density;
    density.vjp(basis, scores, {}, dr, unused_mixture, ds, unused);
    const Vector expected = softmax.array() * (dr.array() - softmax.dot(dr));
    CHECK(largest_entry(ds - expected) <= 1e-15);
    Vector histogram = Vector::Zero(n), halves = Vector::Zero(2 * n);
    density.add_mass(basis, scores, {}, histogram);
    density.add_mass(basis, scores, {}, halves);
    CHECK(largest_entry(histogram - softmax) <= 1e-13);
    for (Index i = 0; i < n; ++i) CHECK(std::abs(halves[2 * i] - 0.5 * softmax[i]) <= 1e-13);
    scores.array() += 1e3;
    density.expect(basis, scores, {}, r);
    CHECK(largest_entry(r - softmax) <= 1e-12);
  }
}

TEST_CASE("the Gibbs density over Gaussians is its integral", "[continuous][density]") {
  fw::Random random(8);
  for (const std::vector<double>& widths : {std::vector{0.05, 0.3}, {0.2}, {0.013}, {2.0}}) {
    const Gaussians<double> basis(9, widths);
    const fw::GibbsDensity<double> density(basis);
    const double narrowest = *std::min_element(widths.begin(), widths.end());
    // The scale of the scores makes K(t) of order 1 where one Gaussian dominates.
    Vector scores(9), psi(9), r(9), expected = Vector::Zero(9), dr(9), ds(9);
    random.fill(scores, 2 * narrowest);
    random.fill(dr);
    constexpr Index bins = 20;
    Vector histogram = Vector::Zero(bins), mass = Vector::Zero(bins);
    for (Index b = 0; b < bins; ++b)
      for (int part = 0; part < 40; ++part) {
        const double from = (double(b) + part / 40.0) / bins, to = from + 1.0 / 40 / bins;
        fw::detail::GaussLegendre::visit(from, to, [&](double t, double weight) {
          basis.evaluate(t, psi);
          const double p = weight * std::exp(scores.dot(psi));
          expected += p * psi;
          mass[b] += p;
        });
      }
    expected /= mass.sum();
    mass /= mass.sum();
    density.expect(basis, scores, {}, r);
    INFO("narrowest " << narrowest);
    CHECK(largest_entry(r - expected) <= 1e-9 * expected.cwiseAbs().maxCoeff());
    density.add_mass(basis, scores, {}, histogram);
    CHECK(std::abs(histogram.sum() - 1) <= 1e-14);
    CHECK(largest_entry(histogram - mass) <= 5e-3);

    fw::GibbsDensity<double>::Mixture unused_mixture;
    fw::GibbsDensity<double> unused = density;
    density.vjp(basis, scores, {}, dr, unused_mixture, ds, unused);
    const auto twin = density.cast<Complex>();
    Eigen::VectorXcd z = scores.cast<Complex>(), zr(9);
    for (Index n = 0; n < 9; ++n) {
      const Complex kept = z[n];
      z[n] += Complex(0, 1e-30);
      twin.expect(basis.cast<Complex>(), z, {}, zr);
      z[n] = kept;
      const double slope = (zr.array() * dr.array()).sum().imag() / 1e-30;
      CHECK(std::abs(ds[n] - slope) <= 1e-11 * std::max(1.0, std::abs(slope)));
    }
  }
}

template <class Shape> void histogram_is_the_mass() {
  const Gaussians<double> basis(4, {0.1});
  constexpr Index bins = 9;
  const Vector none = Vector::Zero(4);
  for (const Domain domain : {Domain::line, Domain::unit})
    for (const double v : {1e-4, 3e-3, 0.7})
      for (const double mu : {0.0, 0.03, 0.41, 1.0}) {
        Density<double, Shape> density{Learned<double>(4), domain};
        auto at = density.mixture_of(basis, none);
        at.mean[0] = mu;
        at.variance[0] = v;
        Vector histogram = Vector::Zero(bins), mass(bins);
        density.add_mass(basis, none, at, histogram);
        for (Index b = 0; b < bins; ++b) {
          mass[b] = 0;
          quadrature(double(b) / bins, double(b + 1) / bins, mu, std::sqrt(v), ends<Shape>(mu, v),
                     [&](double t, double w) { mass[b] += w * density_at<Shape>(mu, v, t); });
        }
        if (domain == Domain::unit) mass /= mass.sum();
        INFO("mu " << mu << ", v " << v << ", unit " << (domain == Domain::unit));
        // The outer bins include the mass in a margin of 10⁻⁶ beyond [0, 1].
        CHECK(largest_entry(histogram - mass) <= 5e-5);
        CHECK(largest_entry((histogram - mass).segment(1, bins - 2)) <=
              (domain == Domain::unit ? 5e-5 : 1e-13));
      }
}

TEST_CASE("the histogram has the mass of a density in every bin", "[continuous][density]") {
  histogram_is_the_mass<GaussianShape>();
  histogram_is_the_mass<ParabolaShape>();
}

TEST_CASE("components and mixtures with invalid sizes throw", "[continuous][density]") {
  CHECK_THROWS_WITH(Learned<double>(3, 9),
                    Catch::Matchers::ContainsSubstring("LearnedComponents: 3 functions, 9 comp"));
  CHECK_THROWS_AS(Learned<double>(0), std::invalid_argument);
  CHECK_THROWS_AS(Learned<double>(3, 0), std::invalid_argument);
  CHECK_THROWS_AS(Learned<double>(3, 1, true, -1), std::invalid_argument);
  CHECK_THROWS_AS(Learned<double>(3, 1, true, NAN), std::invalid_argument);
}

}  // namespace
