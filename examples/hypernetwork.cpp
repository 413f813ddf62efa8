// A linear transformer block that computes a hypernetwork, A σ(ω(z) x) with ω(z) = Σ_m z^(m) Θ^(m).
// The weights of the block are constructed, not trained. The program measures its error for random
// Θ, A, z and x of many sizes: in full and causal form, with the sum rule and the delta rule, with
// several nonlinearities, in double and in float. Errors are relative to the largest entry of the
// exact answers to a batch of random (x, z), which are evaluated in long double. The program fails
// if an error exceeds 1e-12 in double or 1e-5 in float.
//
//   build/release/examples/hypernetwork [--quick] [--sizes 200] [--seed 2]

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "hypernetwork/problem.hpp"
#include "report/command_line.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"
#include "training/progress.hpp"

namespace {

constexpr double double_limit = 1e-12, float_limit = 1e-5;

struct Settings {
  std::string output = "build/hypernetwork";
  long sizes = 200;
  ProblemSizes problem;
  std::uint64_t seed = 1;
};

struct Result {
  Index d, programs, hidden, outputs, width;
  std::string nonlinearity;
  double in_double, in_float;
};

Result measure(const Problem& p, const std::string& nonlinearity) {
  return {.d = p.x.rows(),
          .programs = p.z.rows(),
          .hidden = p.a.cols(),
          .outputs = p.a.rows(),
          .width = block_width(p),
          .nonlinearity = nonlinearity,
          .in_double = worst_error<double>(p, nonlinearity),
          .in_float = worst_error<float>(p, nonlinearity)};
}

std::vector<Result> measure_all(const Settings& s) {
  fw::Random random(s.seed);
  std::vector<Result> results;
  Progress progress("hypernetwork", s.sizes);
  for (long i = 0; i < s.sizes; ++i) {
    const Problem p(s.problem, random);
    results.push_back(measure(p, i % 3 == 0 ? "tanh" : i % 3 == 1 ? "relu" : "sigmoid"));
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
  // M d h multiplications of ω(z) x, and h o of A.
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
  app.add_positive("--largest", s.problem.largest, "of d, M, h and o");
  app.add_positive("--batch", s.problem.batch, "random (x, z) of each size");
  app.add_option("--seed", s.seed, "of sizes and entries").show_default();
  app.add_flag("--quick", quick, "100 sizes up to 32").excludes({"--sizes", "--largest"});
  app.add_flag("--smoke", smoke, "100 sizes up to 8, to see that it runs").excludes({"--quick"});
  app.parse(argc, argv);
  use_own_folder(app, s.output, quick || smoke);
  if (quick) s.sizes = 100, s.problem.largest = 32;
  if (smoke) s.sizes = 100, s.problem.largest = 8;
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
  std::cout << s.sizes << " random sizes, d, M, h and o from 1 to " << s.problem.largest << ", "
            << s.problem.batch << " inputs each; full and causal, sum rule and delta rule\n";
  std::printf("worst relative error: double %.2e float %.2e\n", in_double, in_float);
  return in_double <= double_limit && in_float <= float_limit ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "hypernetwork: " << error.what() << "\n";
  return 1;
}
