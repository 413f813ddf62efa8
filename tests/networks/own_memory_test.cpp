// The layer around a memory that is not in the library, and around one that writes chunks.

#include <fastweights/any_memory/table/attention.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/summed_heads.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
using fw::Dynamic;

// Writes two keys and values per token, with one strength per value row. Its products are lazy, for
// which Eigen compiles no blocked ones.
struct PairSignature {
  Index dk, dv;
  template <class C> struct Write {
    fw::mat<C, Dynamic, 2> value;
    fw::mat<C, Dynamic, 2> key;
    fw::vec<C, Dynamic> strength;
    static constexpr auto names = fw::names("value", "key", "strength");
    static constexpr auto roles = fw::roles(fw::Role::value, fw::Role::key, fw::Role::strength);
  };
  template <class C> struct Read {
    fw::vec<C, Dynamic> query;
    static constexpr auto names = fw::names("query");
    static constexpr auto roles = fw::roles(fw::Role::key);
  };
  template <class C> struct Out {
    fw::vec<C, Dynamic> output;
    static constexpr auto names = fw::names("output");
  };
  Write<fw::Extents> write() const { return {{dv, 2}, {dk, 2}, {dv, 1}}; }
  Read<fw::Extents> read() const { return {{dk, 1}}; }
  Out<fw::Extents> out() const { return {{dv, 1}}; }
};

template <class S> struct PairMemory {
  using Scalar = S;
  using Signature = PairSignature;
  static constexpr std::string_view name = "PairMemory";
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  Index dk, dv;

  Signature signature() const { return {.dk = dk, .dv = dv}; }
  State<fw::Extents> state_extents() const { return {{dv, dk}}; }
  void write(fw::StateOf<PairMemory>& s, fw::WriteToken<PairMemory> t) const {
    s.W += (t.strength.asDiagonal() * t.value).lazyProduct(t.key.transpose());
  }
  void read(const fw::StateOf<PairMemory>& s, fw::ReadToken<PairMemory> t,
            fw::OutToken<PairMemory> y) const {
    y.output = s.W.lazyProduct(t.query);
  }
  void write_vjp(const fw::StateOf<PairMemory>&, fw::WriteToken<PairMemory> t,
                 fw::StateOf<PairMemory>& ds, fw::WriteGradToken<PairMemory> dt) const {
    const Eigen::Matrix<S, Dynamic, Dynamic> dvalue = ds.W.lazyProduct(t.key);
    dt.strength += dvalue.cwiseProduct(t.value).rowwise().sum();
    dt.value += t.strength.asDiagonal() * dvalue;
    dt.key += ds.W.transpose().lazyProduct(t.strength.asDiagonal() * t.value);
  }
  void read_vjp(const fw::StateOf<PairMemory>& s, fw::ReadToken<PairMemory> t,
                fw::OutGradToken<PairMemory> dy, fw::StateOf<PairMemory>& ds,
                fw::ReadGradToken<PairMemory> dt) const {
    ds.W += dy.output.lazyProduct(t.query.transpose());
    dt.query += s.W.transpose().lazyProduct(dy.output);
  }
};

TEST_CASE("fast weights: a user's memory with two keys per token", "[networks]") {
  const Function f = [](const auto& x) {
    return fast_weights(x, "mixer", PairMemory<ScalarOf<decltype(x)>>{.dk = 4, .dv = 3},
                        {.heads = 2}, fw::EluPlusOne());
  };
  check_operation(6, f);
  Net network = network_of(6, f);
  CHECK(names_of_weights(network) ==
        "mixer.write.value.weight\nmixer.write.key.weight\nmixer.write.strength.weight\n"
        "mixer.read.query.weight\nmixer.output.weight\n");
  CHECK(weight(network, "mixer.write.key.weight").rows() == 2 * 2 * 4);
}

TEST_CASE("layers around memories: a memory that writes chunks is refused", "[networks]") {
  using M = fw::CompressiveMemory<double>;
  const auto chunks = ContainsSubstring(
      "mixer: CompressiveMemory takes chunks of 4 tokens, expected one at a time");
  const M memory({.d = 3, .chunk = 4});
  Builder<double> net;
  const auto x = net.input(6);
  CHECK_THROWS_WITH(fast_weights(x, "mixer", memory), chunks);
  CHECK_THROWS_WITH(summed_heads(x, "mixer", memory), chunks);
  // With chunks of one token every split gives the same result.
  check_streaming(network_of(
      6, [](const Value<double>& in) { return fast_weights(in, "mixer", M({.d = 3})); }));
}

}  // namespace
