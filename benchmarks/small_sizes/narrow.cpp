#include "small_sizes/narrow.hpp"

#include <cstdio>
#include <memory>

#include "small_sizes/measure.hpp"

namespace small_sizes {
namespace {

struct Tokens {
  static constexpr Index count = 64;
  Eigen::MatrixXf keys, values, queries, outputs;

  Tokens(Index dk, Index dv) : outputs(dv, count) {
    std::srand(1);  // which Eigen's random numbers use
    keys.setRandom(dk, count).colwise().normalize();
    values.setRandom(dv, count);
    queries.setRandom(dk, count);
  }
};

template <class M> EIGEN_DONT_INLINE void writes(const M& m, fw::StateOf<M>& state, Tokens& t) {
  for (Index i = 0; i < Tokens::count; ++i)
    fw::write(m, state, {t.keys.col(i), t.values.col(i), 0.5f});
}
template <class M> EIGEN_DONT_INLINE void steps(const M& m, fw::StateOf<M>& state, Tokens& t) {
  for (Index i = 0; i < Tokens::count; ++i)
    fw::step(m, state, {t.keys.col(i), t.values.col(i), 0.5f}, {t.queries.col(i)},
             {t.outputs.col(i)});
}

template <int Dk, int Dv> void print_row() {
  using Fixed = fw::DeltaRule<float, Dk, Dv>;
  const fw::DeltaRule<float> dynamic({Dk, Dv});
  const Fixed fixed;
  Tokens t(Dk, Dv);
  auto state = fw::initial_state(dynamic);
  const auto fixed_state = std::make_unique<fw::StateOf<Fixed>>(fw::initial_state(fixed));
  const auto [write, step, fixed_write, fixed_step] = shortest(
      Tokens::count, [&] { writes(dynamic, state, t); }, [&] { steps(dynamic, state, t); },
      [&] { writes(fixed, *fixed_state, t); }, [&] { steps(fixed, *fixed_state, t); });
  std::printf("| %d × %d | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f |\n", Dk, Dv,
              write, step, fixed_write, fixed_step, write / step, fixed_write / fixed_step,
              write / fixed_write, step / fixed_step);
  std::fflush(stdout);
}

template <int Dv> void print_rows() {
  print_row<16, Dv>();
  print_row<64, Dv>();
  print_row<256, Dv>();
}

}  // namespace

void print_narrow() {
  std::printf(
      "\ndelta rule, float: a write and a step, ns\n\n"
      "| d_k × d_v | write | step | fixed write | fixed step | write / step | fixed | write, "
      "dynamic / fixed | step |\n|---|---|---|---|---|---|---|---|---|\n");
  print_rows<1>();
  print_rows<2>();
  print_rows<4>();
  print_rows<8>();
  print_rows<16>();
  print_rows<64>();
}

}  // namespace small_sizes
