#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;

// The laws that need no other scalar than double, and the gradients.
template <class M> void obeys(std::initializer_list<std::pair<Index, Index>> sizes) {
  static_assert(fw::assert_memory<M>());
  for (const auto& [dk, dv] : sizes) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    const laws::MakeRun make = laws::runs_of(M({dk, dv}), false);
    laws::step_is_write_and_read(make);
    laws::scan_is_steps(make);
    laws::state_is_a_value(make);
    laws::wrong_sizes_are_refused(make);
  }
  laws::gradients_are_exact(M({5, 4}), 17, false);
  laws::gradients_are_exact(M({1, 3}), 6, false);
}

TEST_CASE("the second gated delta rule obeys the laws", "[laws][gated_delta_rule_2]") {
  obeys<fw::GatedDeltaRule2<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("the gated Oja rule obeys the laws", "[laws][gated_oja_rule]") {
  obeys<fw::GatedOjaRule<double>>({{1, 1}, {3, 4}, {65, 2}});
}
TEST_CASE("Longhorn obeys the laws", "[laws][longhorn]") {
  obeys<fw::Longhorn<double>>({{1, 1}, {3, 17}, {65, 4}});
  obeys<fw::Longhorn<double, Dynamic, Dynamic, fw::LonghornForm::exact>>({{3, 17}});
}
TEST_CASE("the preconditioned delta rule obeys the laws", "[laws][preconditioned_delta_rule]") {
  obeys<fw::PreconditionedDeltaRule<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("RWKV-6 obeys the laws", "[laws][rwkv6]") {
  obeys<fw::Rwkv6<double>>({{1, 1}, {3, 17}, {65, 4}});
}
TEST_CASE("the memory of Titans obeys the laws", "[laws][titans]") {
  obeys<fw::TitansMemory<double>>({{1, 1}, {3, 17}, {65, 4}});
}

}  // namespace
