// A signature of one's own, as core/signatures.hpp describes it.

#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/testing/gradient_check.hpp>

#include "support/catch.hpp"

namespace {

using fw::Dynamic, fw::Index;

template <int Dk, int Dv> struct KeyValueNovelty : fw::QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    fw::vec<C, Dk> key;
    fw::vec<C, Dv> value;
    fw::num<C> novelty;
    static constexpr auto names = fw::names("key", "value", "novelty");
    static constexpr auto roles = fw::roles(fw::Role::key, fw::Role::value, fw::Role::strength);
  };
  Write<fw::Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}}; }
  template <int NewDk> using with_keys_of = KeyValueNovelty<NewDk, Dv>;
};

/// W += novelty v kᵀ, y = W q.
template <class S> struct NovelSum {
  using Scalar = S;
  using Signature = KeyValueNovelty<Dynamic, Dynamic>;
  static constexpr std::string_view name = "NovelSum";
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<S>>;

  Index dk, dv;
  Signature signature() const { return {{.dk = dk, .dv = dv}}; }
  State<fw::Extents> state_extents() const { return {{dv, dk}}; }
  template <class T> NovelSum<T> cast() const { return {dk, dv}; }

  void write(OwnedState& s, const fw::WriteToken<NovelSum>& t) const {
    s.W += t.novelty * t.value * t.key.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<NovelSum>& t, fw::OutToken<NovelSum> y) const {
    y.output.noalias() = s.W * t.query;
  }
  void write_vjp(const OwnedState&, const fw::WriteToken<NovelSum>& t, OwnedState& ds,
                 fw::WriteGradToken<NovelSum> d) const {
    d.value += t.novelty * (ds.W * t.key);
    d.key += t.novelty * (ds.W.transpose() * t.value);
    d.novelty += (t.value.transpose() * ds.W * t.key).value();
  }
  void read_vjp(const OwnedState& s, const fw::ReadToken<NovelSum>& t,
                const fw::OutGradToken<NovelSum>& dy, OwnedState& ds,
                fw::ReadGradToken<NovelSum> d) const {
    ds.W += dy.output * t.query.transpose();
    d.query += s.W.transpose() * dy.output;
  }
};
static_assert(fw::assert_memory<NovelSum<float>>());

}  // namespace

TEST_CASE("A rule with a signature of its own has gradients and feature maps") {
  const NovelSum<double> rule{.dk = 3, .dv = 5};
  CHECK(fw::testing::gradient_error(rule, 17).worst < 1e-12);
  const fw::FeatureMapped<NovelSum<double>, fw::EluPlusOne> mapped(rule, 3);
  CHECK(fw::testing::gradient_error(mapped, 17).worst < 1e-12);
}
