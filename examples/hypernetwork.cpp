// A linear transformer block that runs a hypernetwork: for random Θ, A, z and x of many sizes,
// how far is what the block answers from A σ(ω(z) x), ω(z) = Σ_m z^(m) Θ^(m)? The block is built,
// not trained, and run in full and causally, by the sum rule and by the delta rule, with several
// nonlinearities, in double and in float. Errors are relative to the largest entry of the answers
// to a batch of random (x, z), evaluated directly in long double. Fails where they exceed 1e-12 in
// double or 1e-5 in float.
//
//   build/release/examples/hypernetwork [--quick] [--sizes 200] [--seed 2]

#include <cmath>
#include <cstdio>
#include <fastweights/fastweights.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "report/command_line.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"
#include "training/progress.hpp"

namespace {

using fw::Index;
template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

constexpr double double_limit = 1e-12, float_limit = 1e-5;

// Once an error is NaN, the worst stays NaN.
void keep_worst(double& worst, double error) {
  if (error > worst || std::isnan(error)) worst = error;
}

struct Settings {
  std::string output = "build/hypernetwork";
  long sizes = 200, largest = 64, batch = 16;
  std::uint64_t seed = 1;
};

// A random hypernetwork and a batch of inputs, one a column. Entries are floats, so that both
// precisions compute the same.
struct Problem {
  std::vector<Matrix<float>> theta;
  Matrix<float> a, x, z;

  Problem(const Settings& s, fw::Random& random) {
    // Small sizes are as frequent as large ones.
    const auto size = [&] {
      return static_cast<Index>(std::pow(static_cast<double>(s.largest + 1), random.uniform()));
    };
    const Index d = size(), h = size(), o = size(), programs = size();
    const auto fill = [&](Index rows, Index cols, Index terms) {
      Matrix<float> m(rows, cols);
      random.fill(m, 1 / std::sqrt(static_cast<double>(terms)));
      return m;
    };
    for (Index m = 0; m < programs; ++m) theta.push_back(fill(h, d, d));
    a = fill(o, h, h);
    x = fill(d, s.batch, 1);
    z = fill(programs, s.batch, programs);
  }

  template <class S> fw::Hypernetwork<S> net(bool causal) const {
    std::vector<Matrix<S>> cast;
    for (const auto& each : theta) cast.push_back(each.cast<S>());
    return fw::Hypernetwork<S>(std::move(cast), a.cast<S>(), {.causal = causal});
  }
};

// A σ(ω(z) x) for the whole batch.
template <class F> Matrix<long double> evaluate(const Problem& p, const F& f) {
  using Long = long double;
  Matrix<Long> u = Matrix<Long>::Zero(p.a.cols(), p.x.cols());
  for (Index m = 0; m < p.z.rows(); ++m)
    u += p.theta[static_cast<std::size_t>(m)].cast<Long>() * p.x.cast<Long>() *
         p.z.row(m).cast<Long>().asDiagonal();
  return p.a.cast<Long>() * u.unaryExpr([&](Long each) { return f.value(each); });
}

template <class S, class Block>
double error(const Problem& p, const fw::Hypernetwork<S>& net, const Block& block,
             const Matrix<long double>& exact) {
  typename Block::Trace trace;
  Matrix<S> Y(net.width(), 2);
  double worst = 0;
  for (Index i = 0; i < p.x.cols(); ++i) {
    auto state = block.initial_state();
    block.forward(state, net.tokens(p.x.col(i).cast<S>(), p.z.col(i).cast<S>()), Y, trace);
    const Matrix<long double> difference =
        net.answer(Y).template cast<long double>() - exact.col(i);
    keep_worst(worst, static_cast<double>(difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>()));
  }
  const auto largest = static_cast<double>(exact.cwiseAbs().maxCoeff());
  return largest > 0 ? worst / largest : worst;
}

// The worst of full and causal, sum rule and delta rule.
template <class S, class F> double worst_error(const Problem& p, const F& f) {
  using Activation = fw::Elementwise<F>;
  const Matrix<long double> exact = evaluate(p, f);
  double worst = 0;
  for (const bool causal : {true, false}) {
    const auto net = p.net<S>(causal);
    const auto sum = net.template block<Activation>(fw::LinearAttention<S>(net.hidden(), 1));
    const auto delta = net.template block<Activation>(fw::DeltaRule<S>(net.hidden(), 1));
    for (const double each : {error(p, net, sum, exact), error(p, net, delta, exact)})
      keep_worst(worst, each);
  }
  return worst;
}

struct Result {
  Index d, programs, hidden, outputs, width;
  std::string nonlinearity;
  double in_double, in_float;
};

template <class F> Result measure(const Problem& p, const std::string& nonlinearity) {
  return {p.x.rows(),
          p.z.rows(),
          p.a.cols(),
          p.a.rows(),
          p.net<double>(true).width(),
          nonlinearity,
          worst_error<double>(p, F{}),
          worst_error<float>(p, F{})};
}

std::vector<Result> measure_all(const Settings& s) {
  fw::Random random(s.seed);
  std::vector<Result> results;
  Progress progress("hypernetwork", s.sizes);
  for (long i = 0; i < s.sizes; ++i) {
    const Problem p(s, random);
    results.push_back(i % 3 == 0   ? measure<fw::Tanh>(p, "tanh")
                      : i % 3 == 1 ? measure<fw::Relu>(p, "relu")
                                   : measure<fw::Sigmoid>(p, "sigmoid"));
    char note[64];
    std::snprintf(note, sizeof note, "double %.1e  float %.1e", results.back().in_double,
                  results.back().in_float);
    progress.show(i + 1, note);
  }
  return results;
}

void write_csv(const Settings& s, const std::vector<Result>& results) {
  std::ofstream csv = open_to_write(std::filesystem::path(s.output) / "errors.csv");
  csv << "d,M,h,o,d_model,nonlinearity,double,float\n";
  for (const Result& r : results)
    csv << r.d << "," << r.programs << "," << r.hidden << "," << r.outputs << "," << r.width << ","
        << r.nonlinearity << "," << r.in_double << "," << r.in_float << "\n";
}

void draw(const Settings& s) {
  const auto folder = std::filesystem::path(s.output);
  const std::string file = quoted(folder / "errors.csv");
  // Each of the MdH products of ω(z) x, and then A.
  const std::string size = " using ($1*$2*$3+$3*$4):";
  plot(folder / "errors.png",
       "set datafile separator ','\nset logscale xy\nset format y '10^{%T}'\nset xlabel "
       "'multiplications of A σ(ω(z) x): M d h + h o'\nset ylabel 'worst relative error'\nset "
       "grid\nset key outside right\nplot [][1e-17:1e-4] " +
           file + size + "8 skip 1 with points pt 7 ps 0.6 title 'float', " + file + size +
           "7 skip 1 with points pt 7 ps 0.6 title 'double', 1e-5 with lines dt 2 lc 'gray40' "
           "title 'limit, float', 1e-12 with lines dt 3 lc 'gray40' title 'limit, double', 1.3e-15 "
           "with lines "
           "dt 4 lc 'black' title 'the note, double'\n");
}

Settings parse(int argc, char** argv) {
  Settings s;
  bool quick = false, smoke = false;
  CommandLine app("A linear transformer block that computes what a hypernetwork computes");
  app.add_option("--output", s.output, "folder of the table and the picture").show_default();
  app.add_positive("--sizes", s.sizes, "how many random sizes");
  app.add_positive("--largest", s.largest, "of d, M, h and o");
  app.add_positive("--batch", s.batch, "random (x, z) of each size");
  app.add_option("--seed", s.seed, "of sizes and entries").show_default();
  app.add_flag("--quick", quick, "100 sizes up to 32").excludes({"--sizes", "--largest"});
  app.add_flag("--smoke", smoke, "100 sizes up to 8, to see that it runs").excludes({"--quick"});
  app.parse(argc, argv);
  use_own_folder(app, s.output, quick || smoke);
  if (quick) s.sizes = 100, s.largest = 32;
  if (smoke) s.sizes = 100, s.largest = 8;
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  make_folder(s.output);
  const std::vector<Result> results = measure_all(s);
  write_csv(s, results);
  draw(s);
  double in_double = 0, in_float = 0;
  for (const Result& r : results) {
    keep_worst(in_double, r.in_double);
    keep_worst(in_float, r.in_float);
  }
  std::cout << s.sizes << " random sizes, d, M, h and o from 1 to " << s.largest << ", " << s.batch
            << " inputs each; full and causal, sum rule and delta rule\n";
  std::printf("worst relative error: double %.2e float %.2e\n", in_double, in_float);
  return in_double <= double_limit && in_float <= float_limit ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "hypernetwork: " << error.what() << "\n";
  return 1;
}
