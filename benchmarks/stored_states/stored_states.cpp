// States with W in float, 16 bits and 8 bits: the bytes of a stream, the error of its answers over
// 10^5 tokens, and the time of a step. Gated delta rule, decay 0.99, W written once in N tokens.
//
//     build/release/benchmarks/stored_states

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>

#include "compare.hpp"
#include "machine.hpp"
#include "stream.hpp"

namespace {

using stream::Index;
using stream::Rule;
using stream::Stream;
constexpr Index heads = 32;

// The norm of the error over the norm of the rule's own answers, over all tokens. Keys and queries
// are random unit vectors, values normal, β uniform.
template <class M> double error_of(Index d) {
  const Rule rule({.key_size = d});
  const M m(rule);
  auto exact = fw::initial_state(rule);
  auto state = fw::initial_state(m);
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  Eigen::VectorXf key(d), value(d), query(d), y(d), wanted(d);
  double squares = 0, all = 0;
  for (int t = 0; t < 100000; ++t) {
    for (auto* x : {&key, &value, &query})
      for (float& entry : *x) entry = normal(bits);
    key.normalize();
    query.normalize();
    float beta = uniform(bits), decay = 0.99f;
    fw::step(rule, exact, {key, value, beta, decay}, {query}, {wanted});
    fw::step(m, state, {key, value, beta, decay}, {query}, {y});
    squares += double((y - wanted).squaredNorm());
    all += double(wanted.squaredNorm());
  }
  return std::sqrt(squares / all);
}

template <int N, class Stored> void print(Index d, const char* type) {
  using M = fw::Deferred<Rule, N, Stored>;
  const auto over_rule = [&](Index count) {
    Stream<Rule> plain(d, count);
    Stream<M> stored(d, count);
    return machine::time_ratio(
        machine::processor_clock, [&] { plain.step(); }, [&] { stored.step(); });
  };
  Stream<Rule> plain(d, 1);
  Stream<M> stored(d, 1);
  const auto kib = [](auto& s) { return double(heads * stream::bytes_of(s.states[0])) / 1024; };
  // 2 GiB of float states are in no cache.
  const Index many = (Index(1) << 29) / (d * d);
  std::printf("| %td | %s, %d | %.0f | %.2f | %.1e | %.2f | %.2f |\n", d, type, N, kib(stored),
              kib(stored) / kib(plain), error_of<M>(d), over_rule(8), over_rule(many));
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::printf(
      "| d | W in, N | KiB of %td heads | over float | error | step of 8 heads over the rule's | "
      "of "
      "many heads |\n|---:|---|---:|---:|---:|---:|---:|\n",
      heads);
  for (const Index d : {64, 128, 256}) {
    print<8, float>(d, "float");
    print<8, Eigen::bfloat16>(d, "bfloat16");
    print<8, Eigen::half>(d, "half");
    print<8, std::int8_t>(d, "8 bits");
    print<16, std::int8_t>(d, "8 bits");
  }
}
