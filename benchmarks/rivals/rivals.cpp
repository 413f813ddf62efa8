// Times the gated delta rule for script/bench rivals, which takes turns with other engines: float,
// 8 heads, one thread. Reads lines "operation d" and answers each with nanoseconds a token and
// head. A scan has 4096 tokens; training is a scan that keeps what its backward pass needs, and
// that pass.

#include <iostream>
#include <map>
#include <string>

#include "machine.hpp"
#include "rules.hpp"

namespace {

using measure::Index;

class Timer {
 public:
  explicit Timer(Index d)
      : long_(measure::dynamic_heads("GatedDeltaRule")(d, measure::length, measure::heads)),
        short_(measure::dynamic_heads("GatedDeltaRule")(d, 1, measure::heads)) {}

  double nanoseconds(const std::string& operation) {
    if (operation == "step") return time(1, steps, [&] { short_->step(); });
    return time(measure::length, 1, [&] {
      for (Index h = 0; h < measure::heads; ++h) {
        if (operation == "scan") long_->scan(h);
        if (operation == "train") long_->prepare_backward(h), long_->backward(h);
      }
    });
  }

 private:
  static constexpr int steps = 2000;

  template <class F> static double time(Index tokens, int times, const F& f) {
    const double start = machine::wall_clock();
    for (int i = 0; i < times; ++i) f();
    return (machine::wall_clock() - start) * 1e9 / (double(tokens) * times * measure::heads);
  }

  measure::HeadsPointer long_, short_;
};

}  // namespace

int main() {
  std::map<Index, Timer> timers;
  std::string operation;
  for (Index d = 0; std::cin >> operation >> d;) {
    if (d < 1 || (operation != "scan" && operation != "step" && operation != "train")) return 1;
    Timer& timer = timers.try_emplace(d, d).first->second;
    std::cout << timer.nanoseconds(operation) << std::endl;
  }
}
