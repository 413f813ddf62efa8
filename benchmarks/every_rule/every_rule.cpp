// Prints a Markdown table of every rule: the time of a scan a token and head, and the fraction of
// the FMA peak; or of every rule with a backward pass by the kernels, and its time over that of a
// scan. Rounds take turns between rules, and the peak is measured again before every scan.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>

#include "every_rule/time.hpp"
#include "machine.hpp"

namespace every_rule {

namespace {

std::string text_of(const measure::Flops& flops) {
  std::string all;
  const auto add = [&](double factor, const char* power) {
    char term[32];
    std::snprintf(term, sizeof term, "%s%.4g %s", all.empty() ? "" : " + ", factor, power);
    if (factor != 0) all += term;
  };
  add(flops.cubes, "d³");
  add(flops.squares, "d²");
  add(flops.lines, "d");
  return *flops.also == '\0' ? all : all + " and " + flops.also;
}

using Rules = std::vector<Rule>;

struct Options {
  Index d = 128, heads = 8, length = 4096;
  int rounds = 5;
  bool backward = false;
  std::string only;
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Times a scan of every rule, in float and on one thread.");
  app.add_option("--size", o.d, "d = d_k = d_v")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rounds", o.rounds, "Takes medians of so many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", o.only, "Measures rules whose names contain this text");
  app.add_flag("--backward", o.backward, "Measures backward passes by the kernels");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return o;
}

Rules chosen_rules(const Options& o) {
  Rules rules = all_rules(o.d);
  const auto is_other = [&](const Rule& r) {
    return r.name.find(o.only) == std::string::npos ||
           (o.backward && !r.memory.can().traced_backward);
  };
  rules.erase(std::remove_if(rules.begin(), rules.end(), is_other), rules.end());
  return rules;
}

/// Fewer tokens of rules with many flops: at most 10⁹ of a head, but 16 tokens.
Index length_of(const Rule& rule, const Options& o) {
  Index length = o.length;
  while (length > 16 && rule.flops.at(o.d) * static_cast<double>(length) > 1e9) length /= 2;
  return length;
}

struct Measured {
  std::vector<double> nanoseconds, of_peak;  ///< per round
  std::vector<double> of_functions;  ///< the time of its functions alone over that of a scan
  std::vector<double> backward_nanoseconds, over_scan;
};

void measure(const Rule& rule, const Options& o, std::vector<double>& peaks, Measured& to) {
  const Index length = length_of(rule, o);
  peaks.push_back(machine::fma_peak<float>());
  const double seconds =
      scan_seconds(rule, o.heads, length) / static_cast<double>(o.heads * length);
  to.nanoseconds.push_back(1e9 * seconds);
  to.of_peak.push_back(rule.flops.at(o.d) / seconds / peaks.back());
  if (rule.functions.kind != Functions::none)
    to.of_functions.push_back(function_seconds(rule.functions.kind) * rule.functions.at(o.d) /
                              seconds);
  if (!o.backward) return;
  const double backward =
      backward_seconds(rule, o.heads, length) / static_cast<double>(o.heads * length);
  to.backward_nanoseconds.push_back(1e9 * backward);
  to.over_scan.push_back(backward / seconds);
}

void print_backward(const Rules& rules, const std::vector<Measured>& measured) {
  std::printf("| rule | scan, ns a token and head | backward, ns | backward over scan |\n");
  std::printf("|---|---:|---:|---:|\n");
  for (std::size_t i = 0; i < rules.size(); ++i)
    std::printf("| %s | %.0f | %.0f | %.2f |\n", rules[i].name.c_str(),
                machine::median(measured[i].nanoseconds),
                machine::median(measured[i].backward_nanoseconds),
                machine::median(measured[i].over_scan));
}

void print(const Rules& rules, const std::vector<Measured>& measured, const Options& o) {
  if (o.backward) return print_backward(rules, measured);
  std::printf("| rule | flops a token | tokens | ns a token and head | of the FMA peak |\n");
  std::printf("|---|---|---:|---:|---:|\n");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::printf("| %s | %s | %td | %.0f | %.2f", rules[i].name.c_str(),
                text_of(rules[i].flops).c_str(), length_of(rules[i], o),
                machine::median(measured[i].nanoseconds), machine::median(measured[i].of_peak));
    if (!measured[i].of_functions.empty())
      std::printf("; its functions alone %.2f of its time",
                  machine::median(measured[i].of_functions));
    std::printf(" |\n");
  }
}

void run(const Options& o) {
  const Rules rules = chosen_rules(o);
  if (rules.empty()) throw std::runtime_error("no rule's name contains '" + o.only + "'");
  std::vector<Measured> measured(rules.size());
  std::vector<double> peaks;
  machine::use_threads(1);
  for (int round = 0; round < o.rounds; ++round)
    for (std::size_t i = 0; i < rules.size(); ++i) try {
        measure(rules[i], o, peaks, measured[i]);
      } catch (const std::exception& error) {
        throw std::runtime_error(rules[i].name + ": " + error.what());
      }
  print(rules, measured, o);
  std::printf(
      "\n%s of %td heads with d = %td, float, one thread; fewer than %td tokens of rules "
      "with many flops. Medians of %d rounds. The FMA peak is %.1f GFLOP/s.\n",
      o.backward ? "Scans and backward passes" : "Scans", o.heads, o.d, o.length, o.rounds,
      machine::median(peaks) / 1e9);
}

}  // namespace
}  // namespace every_rule

int main(int argc, char** argv) {
  try {
    every_rule::run(every_rule::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "every_rule: %s\n", error.what());
    return 1;
  }
}
