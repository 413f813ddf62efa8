#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "kernels/compare.hpp"

// Rules of scan_rows. Tokens go in batches of 64, or one by one if a write depends on all rows.
namespace {

template <class S> void check_rules(Index dk, Index dv, Index steps) {
  check(fw::Yaad<S>({dk, dv}), steps);
  check(fw::MirasMemory<S>({dk, dv}), steps);
  if (dv > 1) check(fw::FastWeightMemory<S>({dk, dv}), steps);  // outputs of one row are 0
  check(fw::TitansMemory<S>({dk, dv}), steps);
  check(fw::Longhorn<S>({dk, dv}), steps);
  check(fw::SelectiveScan<S>({dk, dv}), steps);
}

TEST_CASE("row scan: square memories", "[kernels]") {
  for (const Index d : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 100, 128})
    check_rules<double>(d, d, 7);
}

TEST_CASE("row scan: d_v differs from d_k", "[kernels]") {
  for (const Index dv : {1, 17, 65})
    for (const Index dk : {1, 3, 40}) check_rules<double>(dk, dv, 5);
}

TEST_CASE("row scan: sequences of every length", "[kernels]") {
  for (const Index steps : {1, 2, 3, 63, 64, 65, 66, 128, 129, 200})
    check_rules<double>(19, 18, steps);
}

TEST_CASE("row scan: float", "[kernels]") {
  for (const Index d : {3, 16, 65}) check_rules<float>(d, d, 70);
}

// A small key cancels a large step: their product with W or v comes last.
TEST_CASE("row scan: Longhorn is finite where its steps are", "[kernels]") {
  using M = fw::Longhorn<float>;
  struct Case {
    float key, beta, value, W;
  };
  const float large = std::numeric_limits<float>::max() / 64;
  for (const Case& c : {Case{0, 1e30f, 1e10f, 1}, Case{1e-22f, 1e30f, 1e10f, 1},
                        Case{1e-3f, 1000, 1, large}, Case{-1e-3f, 1000, -1, large}}) {
    const M m({.key_size = 19, .value_size = 19});
    Run<M> stepped(m, 3), scanned(m, 3);
    for (auto* run : {&stepped, &scanned}) {
      run->all.inputs.key.setConstant(c.key);
      run->all.inputs.beta.setConstant(c.beta);
      run->all.inputs.value.setConstant(c.value);
      run->state.W.setConstant(c.W);
    }
    stepped.each(m, [&](const auto& w, const auto& r, const auto& y) {
      fw::step(m, stepped.state, w, r, y);
    });
    fw::scan(m, scanned.state, scanned.in(), scanned.queries(), scanned.out());
    INFO("key " << c.key);
    REQUIRE(stepped.state.W.allFinite());
    CHECK(difference(scanned.state.W, stepped.state.W) <= 1e-6);
  }
}

}  // namespace
