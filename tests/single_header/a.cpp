// Three sources include the single header. They use all parts of the library, and two agree.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "uses.hpp"

namespace {

bool report(const char* what, bool right) {
  std::printf("%-18s %s\n", what, right ? "passed" : "FAILED");
  return right;
}

template <std::size_t N> bool nontrivial(const std::array<double, N>& numbers) {
  return std::ranges::all_of(numbers, [](double x) { return std::isfinite(x) && x != 0; });
}

}  // namespace

int main() {
  std::printf("version %s\n", fw::version);
  const auto scanned = scan_and_backward();
  const auto losses = training("single_header.safetensors");
  bool right = report("scan and backward", nontrivial(scanned));
  right &= report("two sources", steps() == steps_in_b());
  right &= report("steps", nontrivial(steps()));
  right &= report("continuous memory", nontrivial(continuous()));
  right &= report("training", nontrivial(losses) && losses[1] < losses[0]);
  right &= report("files", losses[2] == losses[1]);
  return right ? 0 : 1;
}
