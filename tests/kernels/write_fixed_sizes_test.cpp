#include <fastweights/memories/rules/delta_rule.hpp>

#include "kernels/write_checks.hpp"

namespace {

// The tokens are those of the rule with sizes at run time, so that a size that is fixed compiles
// little more than the write.
template <class M> void check_fixed(const M& m) {
  using S = typename M::Scalar;
  const auto sizes = m.signature().sizes();
  INFO("d_v " << sizes.value_size << " d_k " << sizes.key_size);
  const fw::DeltaRule<S> dynamic({sizes.key_size, sizes.value_size});
  Run<fw::DeltaRule<S>> run(dynamic, 4);
  auto state = fw::initial_state(m), plain = fw::initial_state(m);
  state.W = plain.W = run.state.W;
  run.each(dynamic, [&](const auto& w, const auto&, const auto&) {
    const AnyMatrix<S> expected = error_of<S>(state.W, w.value, w.key);
    AnyMatrix<S> given = AnyMatrix<S>::Constant(sizes.value_size, 1, S(NAN));
    fw::write(m, state, {w.key, w.value, w.beta}, {given});
    fw::write(m, plain, {w.key, w.value, w.beta});
    check_equal<S>(given, expected);
    check_equal<S>(state.W, plain.W);
  });
}

TEST_CASE("a write gives its error: fixed sizes", "[kernels][write]") {
  check_fixed(fw::DeltaRule<float, 1, 1>());
  check_fixed(fw::DeltaRule<float, 5, 1>());
  check_fixed(fw::DeltaRule<float, 256, 1>());
  check_fixed(fw::DeltaRule<double, 64, 2>());
  check_fixed(fw::DeltaRule<float, 16, 2>());
  check_fixed(fw::DeltaRule<float, 40, 3>());
  check_fixed(fw::DeltaRule<float, 64, 4>());
}

TEST_CASE("a read is W q: fixed sizes", "[kernels][read]") {
  check_read(fw::DeltaRule<float, 5, 1>());
  check_read(fw::DeltaRule<double, 64, 2>());
  check_read(fw::DeltaRule<float, 16, 2>());
  check_read(fw::DeltaRule<float, 40, 3>());
  check_read(fw::DeltaRule<float, 64, 4>());
}

}  // namespace
