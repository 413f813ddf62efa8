// Draws the medians of a Google Benchmark result (JSON) with gnuplot: time per token against d,
// with the machine's limits, and scaling with the length and with threads.
//
//     benchmark_picture results.json results.png

#include <functional>
#include <iostream>

#include "report/plot.hpp"
#include "results.hpp"

namespace {

using Results = std::vector<Result>;
using Value = std::function<double(const Result&)>;

/// True if r is of this operation and memory. Leaves out dynamic sizes that are measured fixed too.
bool chosen(const Result& r, const char* operation, const std::string& memory) {
  return r.operation == operation && r.memory == memory && r.scalar == "float" &&
         r.word("size").empty();
}

double counter(const Result& r, const char* name) {
  const auto found = r.counters.find(name);
  return found == r.counters.end() ? 0 : found->second;
}

double time(const Result& r) { return counter(r, "ns_per_token_head"); }

/// The time at a limit. The counter is the fraction of the limit that was reached; 0 without one.
Value limit(const char* name) {
  return [name](const Result& r) { return time(r) * counter(r, name); };
}

/// One panel: the points of its curves and gnuplot's commands.
struct Panel {
  const Results& results;
  std::string data, curves;

  void add(const std::string& title, const std::string& style, const char* x, const Value& y,
           const std::function<bool(const Result&)>& of) {
    static int count = 0;
    std::string points;
    for (const Result& r : results)
      if (of(r) && y(r) > 0)
        points += std::to_string(r.number(x)) + " " + std::to_string(y(r)) + "\n";
    if (points.empty()) return;
    const std::string block = "$curve" + std::to_string(++count);
    data += block + " << EOD\n" + points + "EOD\n";
    curves += (curves.empty() ? "" : ", ") + block + " using 1:2 with " + style + " title '" +
              title + "'";
  }

  std::string commands(const std::string& settings) const {
    if (curves.empty()) return "set multiplot next\n";
    return data + settings + "plot " + curves + "\n";
  }
};

constexpr const char* against_d =
    "set logscale xy 2\nset xlabel 'd'\nset ylabel 'ns per token and head'\n";

/// Time against d: the memories, the naive expression and the limits.
std::string sizes(const Results& results, const char* operation, long steps) {
  Panel panel{results, "", ""};
  const auto of = [=](const char* memory) {
    return [=](const Result& r) {
      return chosen(r, operation, memory) && r.number("H") == 8 && r.number("T") == steps &&
             r.number("threads") == 1;
    };
  };
  panel.add("sum rule", "linespoints lc 1 pt 7", "d", time, of("linear_attention"));
  panel.add("delta rule", "linespoints lc 2 pt 7", "d", time, of("delta_rule"));
  panel.add("gated delta rule", "linespoints lc 3 pt 7", "d", time, of("gated_delta"));
  panel.add("delta rule in Eigen", "linespoints lc 'gray50' pt 6", "d", limit("speedup_over_eigen"),
            of("delta_rule"));
  panel.add("4 d² at FMA peak", "lines lc 1 dt 2", "d", limit("fma_peak_fraction"),
            of("linear_attention"));
  panel.add("6 d² at FMA peak", "lines lc 2 dt 2", "d", limit("fma_peak_fraction"),
            of("delta_rule"));
  panel.add("W at bandwidth", "lines lc 'black' dt 3", "d", limit("bandwidth_fraction"),
            of("delta_rule"));
  return panel.commands(std::string("set title '") + operation + ", float, 8 heads'\n" + against_d);
}

/// Time against the length of the sequence.
std::string lengths(const Results& results) {
  Panel panel{results, "", ""};
  for (const long d : {64, 128}) {
    const std::string size = "d = " + std::to_string(d), colour = d == 64 ? "1" : "2";
    const auto of = [=](const char* operation) {
      return [=](const Result& r) {
        return chosen(r, operation, "delta_rule") && r.number("H") == 8 && r.number("d") == d &&
               r.number("threads") == 1;
      };
    };
    panel.add("scan, " + size, "linespoints pt 7 lc " + colour, "T", time, of("scan"));
    panel.add("backward, " + size, "linespoints pt 6 lc " + colour, "T", time, of("backward"));
    panel.add("scan at FMA peak", "lines dt 2 lc " + colour, "T", limit("fma_peak_fraction"),
              of("scan"));
  }
  return panel.commands(std::string("set title 'delta rule, float, 8 heads'\n") + against_d +
                        "set xlabel 'T'\n");
}

/// Speed-up against threads, and the speed-up of multiply-adds alone.
std::string threads(const Results& results) {
  Panel panel{results, "", ""};
  const auto speed = [](const char* name) {
    return [name](const Result& r) { return r.number("threads") == 1 ? 1 : counter(r, name); };
  };
  for (const long d : {64, 128})
    for (const char* operation : {"scan", "backward"})
      panel.add(std::string(operation) + ", d = " + std::to_string(d),
                std::string("linespoints lc ") + (d == 64 ? "1" : "2") +
                    (*operation == 's' ? " pt 7" : " pt 6"),
                "threads", speed("speedup_over_one_thread"), [=](const Result& r) {
                  return chosen(r, operation, "delta_rule") && r.number("d") == d &&
                         r.number("T") == 4096;
                });
  panel.add("FMA peak", "lines lc 'black' dt 2", "threads", speed("fma_peak_over_one_thread"),
            [](const Result& r) {
              return chosen(r, "scan", "delta_rule") && r.number("d") == 128 &&
                     r.number("T") == 4096;
            });
  return panel.commands(
      "unset logscale\nset title 'delta rule, float, 8 heads'\nset xlabel 'threads'\n"
      "set ylabel 'speed-up'\nset xtics 1\nset yrange [0:*]\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: benchmark_picture RESULTS.json PICTURE.png");
  const Results results = medians(argv[1]);
  plot(argv[2],
       "set encoding utf8\nset grid\nset key below\nset multiplot layout 2,2\n" +
           sizes(results, "scan", 4096) + sizes(results, "step", 1) + lengths(results) +
           threads(results) + "unset multiplot\n",
       1200, 1000);
} catch (const std::exception& error) {
  std::cerr << "benchmark_picture: " << error.what() << '\n';
  return 1;
}
