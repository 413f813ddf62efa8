#include "layers/attention/long_term_checks.hpp"

namespace {

using namespace long_term_checks;

// The gradients of Σ dy ⊙ out + weight · KL of the last read, for x, queries and parameters.
template <class L, class Z> void check_gradients(L layer, Z twin, Index length, Index queries) {
  fw::Random random(1);
  layer_checks::randomise(layer, random);
  copy_parameters(layer, twin);
  const Matrix<double> x = random_matrix(layer.inputs(), 2 * length, random),
                       q = random_matrix(layer.inputs(), queries, random),
                       dy = random_matrix(layer.outputs(), queries, random);
  Matrix<double> draws(1, layer.draws());
  for (Index m = 0; m < draws.size(); ++m) draws(m) = random.uniform();

  Run<L> run(layer, x, q, draws);
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), x.cols(), NAN),
                 dq = Matrix<double>::Constant(q.rows(), q.cols(), NAN);
  const L ones = layer_checks::ones_like(layer);
  L grad = ones;  // accumulated
  auto dstate = fw::zero_gradient(layer.memory);
  layer.read_backward(q, run.reads, dy, dq, dstate, grad);
  for (std::size_t i = 2; i-- > 0;) {
    const Index first = static_cast<Index>(i) * length;
    layer.write_backward(x.middleCols(first, length), run.writes[i], dstate,
                         dx.middleCols(first, length), grad);
  }

  Matrix<Complex> zx = x.cast<Complex>(), zq = q.cast<Complex>();
  const auto loss = [&]() -> Complex {
    Run<Z> again(twin, zx, zq, draws);
    Complex kl = 0;  // by its definition, because the trace has only the real part
    if constexpr (requires { twin.density.components; }) {
      const double s = layer.kl.sigma0 * layer.kl.sigma0;
      const Index rows = q.rows() / layer.heads, components = twin.density.components.size();
      for (Index h = 0; h < layer.heads; ++h)
        for (Index i = 0; i < queries; ++i) {
          const Eigen::VectorXcd scores = again.reads.keys.middleRows(h * rows, rows).transpose() *
                                          zq.col(i).segment(h * rows, rows) /
                                          std::sqrt(static_cast<double>(rows));
          const auto mixture = twin.density.mixture_of(twin.memory.basis(), scores);
          for (Index c = 0; c < components; ++c) {
            const Complex ratio = mixture.variance[c] / s, offset = mixture.mean[c] - layer.kl.mu0;
            kl += 0.5 * (ratio - std::log(ratio) - 1.0);
            if (layer.kl.mean) kl += 0.5 * offset * offset / s;
          }
        }
      kl /= static_cast<double>(layer.heads * queries * components);
      CHECK(kl.real() == Catch::Approx(run.reads.divergence));
    }
    return (again.out.array() * dy.array()).sum() + layer.kl.weight * kl;
  };
  CHECK(relative_difference(Run<Z>(twin, zx, zq, draws).out.real(), run.out) <= 1e-12);
  CHECK(gradient_error(zx, dx, loss) <= 1e-10);
  CHECK(gradient_error(zq, dq, loss) <= 1e-10);
  fw::for_each_parameter(
      [&](const std::string& path, auto& z, const auto& g, const auto& start) {
        INFO(path);
        CHECK(gradient_error(z, (g - start).eval(), loss) <= 1e-9);
      },
      twin, grad, ones);
}

// Checks one layer in real and complex scalars.
template <template <class> class Gate, template <class> class Kind, class... GateArgs>
void check(const fw::LongTermOptions& o, const Kind<double>& m, const Kind<Complex>& z,
           Index length, Index queries, GateArgs... args) {
  check_gradients(fw::LongTermLayer<Kind<double>, Gate<double>>(o, m, Gate<double>{args...}),
                  fw::LongTermLayer<Kind<Complex>, Gate<Complex>>(o, z, Gate<Complex>{args...}),
                  length, queries);
}

template <class S> using Even = Memory<S>;
template <class S> using Sticky = Memory<S, fw::StickySampling>;

TEST_CASE("LongTermLayer: gradients, with every gate", "[layers][long_term]") {
  const auto m = memory<double>();
  const auto z = memory<Complex>();
  check<fw::NoGate, Even>({.heads = 2}, m, z, 4, 3);
  check<fw::ConvGate, Even>({.heads = 3}, m, z, 5, 1, Index(6));
  check<fw::AffineGate, Even>({.heads = 1}, m, z, 4, 2, Index(4));
  check<fw::StridedConv, Even>({.heads = 2}, m, z, 5, 3, Index(6), Index(2));
}

TEST_CASE("LongTermLayer: gradients of the divergence, outputs of another size",
          "[layers][long_term]") {
  const auto m = memory<double>(6, 3);
  const auto z = memory<Complex>(6, 3);
  for (const bool mean : {false, true})
    check<fw::NoGate, Even>({2, 5, {0.7, 0.2, mean, 0.4}}, m, z, 3, 20);
}

TEST_CASE("LongTermLayer: gradients with a sticky memory and with slots", "[layers][long_term]") {
  check<fw::NoGate, Sticky>({2, 4, {0.1, 0.3, true, 0.5}}, memory<double, fw::StickySampling>(),
                            memory<Complex, fw::StickySampling>(), 4, 3);
  for (const Index rate : {1, 3})
    check<fw::NoGate, Slots>({.heads = 2}, Slots<double>({6, 1, 4, 3, rate}),
                             Slots<Complex>({6, 1, 4, 3, rate}), 4, 3);
  check<fw::StridedConv, Slots>({.heads = 2}, Slots<double>({6, 1, 4, 3, 1}),
                                Slots<Complex>({6, 1, 4, 3, 1}), 5, 3, Index(6), Index(2));
}

}  // namespace
