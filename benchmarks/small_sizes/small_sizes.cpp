// Prints the time of a step, and of a scan of 64 tokens, divided by that of the same rule as an
// Eigen loop, for sizes up to 64; and writes and steps of the delta rule for d_v ≠ d_k.
#include <cstdio>

#include "small_sizes/measure.hpp"
#include "small_sizes/narrow.hpp"

namespace small_sizes {

// Instantiated in generated sources.
#define SMALL_SIZES_RULE(Rule)                            \
  extern template AllTimes dynamic_sizes<Rule, float>();  \
  extern template AllTimes fixed_sizes<Rule, float>();    \
  extern template AllTimes dynamic_sizes<Rule, double>(); \
  extern template AllTimes fixed_sizes<Rule, double>()
SMALL_SIZES_RULE(Sum);
SMALL_SIZES_RULE(Hebbian);
SMALL_SIZES_RULE(GatedSum);
SMALL_SIZES_RULE(Delta);
SMALL_SIZES_RULE(GatedDelta);

struct Column {
  const char* rule;
  AllTimes times;
};

template <class S> std::vector<Column> dynamic_columns() {
  return {{"sum", dynamic_sizes<Sum, S>()},
          {"Hebbian", dynamic_sizes<Hebbian, S>()},
          {"gated sum", dynamic_sizes<GatedSum, S>()},
          {"delta", dynamic_sizes<Delta, S>()},
          {"gated delta", dynamic_sizes<GatedDelta, S>()}};
}
template <class S> std::vector<Column> fixed_columns() {
  return {{"sum", fixed_sizes<Sum, S>()},
          {"Hebbian", fixed_sizes<Hebbian, S>()},
          {"gated sum", fixed_sizes<GatedSum, S>()},
          {"delta", fixed_sizes<Delta, S>()},
          {"gated delta", fixed_sizes<GatedDelta, S>()}};
}

void print(const char* title, const std::vector<Column>& columns) {
  std::printf("\n%s: step / scan, relative to the Eigen loop\n\n| d |", title);
  for (const Column& c : columns) std::printf(" %s |", c.rule);
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  for (std::size_t row = 0; row < columns[0].times.size(); ++row) {
    std::printf("\n| %td |", columns[0].times[row].d);
    for (const Column& c : columns) {
      const Times& t = c.times[row];
      std::printf(" %.2f / %.2f |", t.step / t.hand, t.scan / t.hand);
    }
  }
  std::printf("\n| largest |");
  for (const Column& c : columns) {
    double step = 0, scan = 0;
    for (const Times& t : c.times) {
      step = std::max(step, t.step / t.hand);
      scan = std::max(scan, t.scan / t.hand);
    }
    std::printf(" %.2f / %.2f |", step, scan);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace small_sizes

int main() {
  using namespace small_sizes;
  print("float, dynamic sizes", dynamic_columns<float>());
  print("float, fixed sizes", fixed_columns<float>());
  print("double, dynamic sizes", dynamic_columns<double>());
  print("double, fixed sizes", fixed_columns<double>());
  print_narrow();
}
