#include <fastweights/algorithms/checked.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

// What MatrixRule derives from the corrections of a user's own rules.
namespace {

using fw::Dynamic;
using fw::Index;
using Inputs = fw::KeyValueBeta<Dynamic, Dynamic>;

// A delta rule with a strength per row, β over the number of the row; or whose answers and
// retrieved values are scaled.
enum class Kind { row_strengths, half_read, doubled_lookup };

template <class S, Kind kind> class OwnDelta : public fw::MatrixRule<OwnDelta<S, kind>, S, Inputs> {
  using Base = fw::MatrixRule<OwnDelta<S, kind>, S, Inputs>;

 public:
  using Base::Base;
  using typename Base::OwnedState;
  static constexpr std::string_view name = "OwnDelta";
  static constexpr auto decay_kind = fw::DecayKind::none;
  static constexpr bool has_delta_term = true, key_bounds_strength = true;
  static constexpr Index key_buffers = 0, value_buffers = 1;
  template <class T> auto cast() const { return OwnDelta<T, kind>(Base::signature().sizes()); }

  void write(OwnedState& s, const fw::WriteToken<OwnDelta>& t) const {
    const Eigen::Matrix<S, Dynamic, 1> error = t.value - retrieved * (s.W * t.key);
    s.W += strengths(t).cwiseProduct(error) * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<OwnDelta>& t, fw::OutToken<OwnDelta> y) const {
    y.output.noalias() = answered * (s.W * t.query);
  }
  void read_vjp(const OwnedState&, const fw::ReadToken<OwnDelta>&,
                const fw::OutGradToken<OwnDelta>&, OwnedState&,
                fw::ReadGradToken<OwnDelta>) const = delete;
  template <class State>
  void correction(State&, const fw::WriteToken<OwnDelta>& t, const fw::ReadToken<OwnDelta>&, Index,
                  S* buffer, fw::Correction<S>& c) const {
    c.coefficients.beta = t.beta;
    c.coefficients.retrieved_scale = retrieved;
    c.coefficients.read_scale = answered;
    if constexpr (kind == Kind::row_strengths) {
      Eigen::Map<Eigen::Matrix<S, Dynamic, 1>>(buffer, t.value.size()) = strengths(t);
      c.betas = buffer;
    }
  }

 private:
  static constexpr S retrieved = kind == Kind::doubled_lookup ? S(2) : S(1),
                     answered = kind == Kind::half_read ? S(0.5) : S(1);
  Eigen::Matrix<S, Dynamic, 1> strengths(const fw::WriteToken<OwnDelta>& t) const {
    Eigen::Matrix<S, Dynamic, 1> beta(t.value.size());
    for (Index i = 0; i < beta.size(); ++i)
      beta[i] = kind == Kind::row_strengths ? t.beta / S(i + 1) : t.beta;
    return beta;
  }
};

template <class M> void check_forms(const M& m) {
  fw::Random random(3);
  const auto all = fw::testing::random_sequences(m, 20, random);
  const auto in = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  auto stepped = all, scanned = all, chunked = all;
  auto steps = fw::testing::random_state(m, 5, random), scan = steps, chunk = steps;
  for (Index t = 0; t < 20; ++t) {
    const auto column = [t](auto& x) { return x.col(t); };
    m.write(steps, {column(in.key), column(in.value), in.beta.col(t)[0]});
    m.read(steps, {column(queries.query)}, {stepped.outputs.output.col(t)});
  }
  fw::scan(m, scan, in, queries, fw::view<fw::OutSequence<M>>(scanned.outputs));
  fw::chunked_scan(m, chunk, in, queries, fw::view<fw::OutSequence<M>>(chunked.outputs), 7);
  const auto difference = [&](const auto& a) {
    return largest_entry(a.outputs.output - stepped.outputs.output);
  };
  CHECK(difference(scanned) <= 1e-14);
  CHECK(difference(chunked) <= 1e-14);
  CHECK(largest_entry(chunk.W - steps.W) <= 1e-14);
}

TEST_CASE("a rule's own corrections: strengths per row, scaled answers and look-ups",
          "[matrix_rule]") {
  check_forms(OwnDelta<double, Kind::row_strengths>({4, 3}));
  check_forms(OwnDelta<double, Kind::half_read>({4, 3}));
  check_forms(OwnDelta<double, Kind::doubled_lookup>({4, 3}));
}

TEST_CASE("a rule's own corrections: no segment of strengths per row that it does not declare",
          "[matrix_rule]") {
  using M = OwnDelta<double, Kind::row_strengths>;
  const M m({2, 2});
  auto segment = m.empty_segment();
  const Eigen::VectorXd x = Eigen::VectorXd::Ones(2);
  const double beta = 0.5;
  CHECK_THROWS_WITH(m.extend(segment, {x, x, beta}),
                    Catch::Matchers::ContainsSubstring("row_strengths"));
}

TEST_CASE("a rule's own corrections: the condition of stability counts what a look-up is scaled by",
          "[matrix_rule]") {
  const Eigen::VectorXd key = Eigen::VectorXd::Unit(2, 0);
  const double weak = 0.9, strong = 1.1;
  const OwnDelta<double, Kind::doubled_lookup> m({2, 2});
  static_assert(fw::StabilityCondition<OwnDelta<double, Kind::doubled_lookup>>);
  CHECK_FALSE(m.violation({key, key, weak}));
  CHECK(m.violation({key, key, strong}));
  CHECK_FALSE(OwnDelta<double, Kind::half_read>({2, 2}).violation({key, key, strong}));
}

// A rule with a state of its own has none of the derived members.
class Counting : public fw::MatrixRule<Counting, double, Inputs> {
  using Base = fw::MatrixRule<Counting, double, Inputs>;

 public:
  using Base::Base;
  static constexpr std::string_view name = "Counting";
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    fw::vec<C, Dynamic> seen;
    static constexpr auto names = fw::names("W", "seen");
  };
  using OwnedState = State<fw::Owned<double>>;
  static constexpr auto decay_kind = fw::DecayKind::none;
  static constexpr bool has_delta_term = false;
  State<fw::Extents> state_extents() const { return {{dv(), dk()}, {dk(), 1}}; }
  template <class T> Counting cast() const { return *this; }
  void write(OwnedState& s, const fw::WriteToken<Counting>& t) const {
    s.W += t.value * t.key.transpose();
    s.seen += t.key;
  }
  void write_vjp(const OwnedState&, const fw::WriteToken<Counting>&, OwnedState&,
                 fw::WriteGradToken<Counting>) const {}
  void read(const OwnedState& s, const fw::ReadToken<Counting>& t, fw::OutToken<Counting> y) const {
    y.output = s.W * t.query;
  }
  void read_vjp(const OwnedState&, const fw::ReadToken<Counting>&,
                const fw::OutGradToken<Counting>&, OwnedState&, fw::ReadGradToken<Counting>) const {
  }
  template <class AnyState>
  fw::TokenCoefficients<double> coefficients(AnyState& s, const fw::WriteToken<Counting>& t,
                                             const fw::ReadToken<Counting>&) const {
    s.seen += t.key;
    return {};
  }
};
static_assert(fw::assert_memory<Counting>());
static_assert(!fw::Chunkable<Counting> && !fw::Mergeable<Counting>);

TEST_CASE("values whose columns meet each other are not outputs", "[matrix_rule]") {
  using M = OwnDelta<double, Kind::half_read>;
  const M m({3, 3});
  fw::Random random(3);
  const auto all = fw::testing::random_sequences(m, 9, random);
  const auto in = fw::view<fw::WriteSequence<M>>(all.inputs);
  Eigen::VectorXd signal = Eigen::VectorXd::LinSpaced(11, 0, 1);
  Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>> windows(signal.data(), 3, 9,
                                                               Eigen::OuterStride<>(1));
  auto state = fw::initial_state(m);
  CHECK_THROWS_WITH(fw::scan(m, state, {in.key, windows, in.beta}, {in.key}, {windows}),
                    Catch::Matchers::ContainsSubstring("output overlaps value"));
}

}  // namespace
