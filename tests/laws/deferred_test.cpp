#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::bfloat16;
using Eigen::half;
using fw::Deferred;
using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv>
using Vector = fw::GatedDeltaRule<double, Dk, Dv, fw::KeyValueBetaVectorDecay>;

template <class Make> void at_all_sizes(const Make& make, bool positive = false) {
  for (const Index d : laws::sizes) laws::all(make(d, d), positive);
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}})
    laws::all(make(dk, dv), positive);
}

TEST_CASE("deferred delta rule obeys the laws", "[laws][deferred]") {
  at_all_sizes([](Index dk, Index dv) { return Deferred(fw::DeltaRule<double>({dk, dv})); });
}

TEST_CASE("deferred delta rule with a normaliser obeys the laws", "[laws][deferred]") {
  using M = fw::DeltaRule<double, Dynamic, Dynamic, fw::AttentionNormaliser<double>>;
  at_all_sizes([](Index dk, Index dv) { return Deferred<M, 5>(M({dk, dv})); }, true);
}

TEST_CASE("deferred gated delta rule obeys the laws", "[laws][deferred]") {
  using One = fw::GatedDeltaRule<double>;
  at_all_sizes([](Index dk, Index dv) { return Deferred<One, 1>(One({dk, dv})); });
  at_all_sizes([](Index dk, Index dv) { return Deferred(Vector<Dynamic, Dynamic>({dk, dv})); });
}

TEST_CASE("deferred memories whose keys differ, or with several writes per token, obey the laws",
          "[laws][deferred]") {
  const auto check = [](const auto& deferred) {
    at_all_sizes([&](Index dk, Index dv) { return deferred(fw::Sizes<Dynamic, Dynamic>{dk, dv}); });
  };
  check([](auto sizes) { return Deferred(fw::Comba<double>(sizes)); });
  check([](auto sizes) {
    return Deferred<fw::GatedDeltaRule2<double>, 3>(fw::GatedDeltaRule2<double>(sizes));
  });
  check([](auto sizes) { return Deferred(fw::GatedDeltaProduct<double, 3>(sizes)); });
  check([](auto sizes) { return Deferred(fw::LowRankRule<double>(sizes)); });
}

TEST_CASE("deferred memories whose last tokens can be taken back obey the laws",
          "[laws][deferred]") {
  at_all_sizes([](Index dk, Index dv) {
    using M = Vector<Dynamic, Dynamic>;
    return Deferred<M, 4, double, 3>(M({dk, dv}));
  });
  at_all_sizes([](Index dk, Index dv) {
    using M = fw::GatedDeltaProduct<double, 2>;
    return Deferred<M, 3, double, 1>(M({dk, dv}));
  });
  at_all_sizes(
      [](Index dk, Index dv) {
        using M = fw::DeltaRule<double, Dynamic, Dynamic, fw::AttentionNormaliser<double>>;
        return Deferred<M, 2, double, 5>(M({dk, dv}));
      },
      true);
}

TEST_CASE("deferred memories in fixed sizes", "[laws][deferred]") {
  const auto check = [](const auto& fixed, const auto& dynamic) {
    laws::fixed_is_dynamic(Deferred(fixed), Deferred(dynamic), false);
  };
  check(fw::DeltaRule<double, 7, 1>(), fw::DeltaRule<double>({.key_size = 7, .value_size = 1}));
  check(Vector<1, 65>(), Vector<Dynamic, Dynamic>({.key_size = 1, .value_size = 65}));
  using Fixed = Deferred<Vector<1, 17>, 4, double, 3>;
  using Any = Deferred<Vector<Dynamic, Dynamic>, 4, double, 3>;
  laws::fixed_is_dynamic(Fixed(Vector<1, 17>()),
                         Any(Vector<Dynamic, Dynamic>({.key_size = 1, .value_size = 17})), false);
}

TEST_CASE("deferred memories in 16 and 8 bits: states are values, scans agree with steps",
          "[laws][deferred]") {
  const auto check = [](const auto& m) {
    static_assert(fw::assert_memory<std::remove_cvref_t<decltype(m)>>());
    const laws::MakeRun make = laws::runs_of(m, false);
    laws::state_is_a_value(make);
    laws::scan_is_steps(make);
    laws::wrong_sizes_are_refused(make);
  };
  for (const Index d : {3, 33, 64}) {
    check(Deferred<fw::DeltaRule<float>, 8, bfloat16>(fw::DeltaRule<float>({.key_size = d})));
    check(Deferred<fw::GatedDeltaRule<float>, 4, half>(fw::GatedDeltaRule<float>({.key_size = d})));
    check(Deferred<fw::DeltaRule<float>, 4, half, 2>(fw::DeltaRule<float>({.key_size = d})));
    check(Deferred<fw::DeltaRule<float>, 8, std::int8_t>(fw::DeltaRule<float>({.key_size = d})));
    check(Deferred<fw::DeltaRule<float>, 3, std::int8_t, 2>(fw::DeltaRule<float>({.key_size = d})));
  }
}

}  // namespace
