#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/layer_checks.hpp"

/// \file
/// FastWeightLayer around memories of other signatures. One of the memories is not in the library.

using Catch::Matchers::ContainsSubstring;
using fw::Dynamic;
using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

// Writes two keys and values per token, with one strength per value row.
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
    s.W += t.strength.asDiagonal() * t.value * t.key.transpose();
  }
  void read(const fw::StateOf<PairMemory>& s, fw::ReadToken<PairMemory> t,
            fw::OutToken<PairMemory> y) const {
    y.output = s.W * t.query;
  }
  void write_vjp(const fw::StateOf<PairMemory>&, fw::WriteToken<PairMemory> t,
                 fw::StateOf<PairMemory>& ds, fw::WriteGradToken<PairMemory> dt) const {
    const Eigen::Matrix<S, Dynamic, Dynamic> dvalue = ds.W * t.key;
    dt.strength += dvalue.cwiseProduct(t.value).rowwise().sum();
    dt.value += t.strength.asDiagonal() * dvalue;
    dt.key += ds.W.transpose() * t.strength.asDiagonal() * t.value;
  }
  void read_vjp(const fw::StateOf<PairMemory>& s, fw::ReadToken<PairMemory> t,
                fw::OutGradToken<PairMemory> dy, fw::StateOf<PairMemory>& ds,
                fw::ReadGradToken<PairMemory> dt) const {
    ds.W += dy.output * t.query.transpose();
    dt.query += s.W.transpose() * dy.output;
  }
};

template <class S>
using Sum =
    fw::FastWeightLayer<fw::LinearAttention<S, 5, 3, fw::AttentionNormaliser<S>>, fw::EluPlusOne>;
template <class S> using Pair = fw::FastWeightLayer<PairMemory<S>, fw::EluPlusOne>;

template <class S> Sum<S> sum_layer() {
  using M = fw::LinearAttention<S, 5, 3, fw::AttentionNormaliser<S>>;
  return Sum<S>({.d_model = 6, .heads = 2}, M({.key_size = 5, .value_size = 3}, {S(1e-3)}));
}

}  // namespace

TEST_CASE("FastWeightLayer: sum rule with its normaliser", "[layers]") {
  check_layer(sum_layer<double>(), sum_layer<Complex>(), {1, 9});
  CHECK(parameter_names(sum_layer<double>()) ==
        "write.key.weight\nwrite.value.weight\nread.query.weight\noutput.weight\n");
}

TEST_CASE("FastWeightLayer, SummedHeads: a memory that writes chunks is refused", "[layers]") {
  using M = fw::CompressiveMemory<double>;
  const std::string refused =
      ": CompressiveMemory takes chunks of 4 tokens, expected one token at ";
  CHECK_THROWS_WITH(fw::FastWeightLayer<M>({.d_model = 6}, M({.d = 3, .chunk = 4})),
                    ContainsSubstring("FastWeightLayer" + refused));
  CHECK_THROWS_WITH(fw::SummedHeads<M>({.d_model = 6}, M({.d = 3, .chunk = 4})),
                    ContainsSubstring("SummedHeads" + refused));
  // With chunks of one token every split gives the same result.
  layer_checks::check_streaming(fw::FastWeightLayer<M>({.d_model = 6}, M({.d = 3})), 9);
}

TEST_CASE("FastWeightLayer: a user's memory with two keys per token", "[layers]") {
  check_layer(Pair<double>({.d_model = 6, .heads = 2}, {.dk = 4, .dv = 3}),
              Pair<Complex>({.d_model = 6, .heads = 2}, {.dk = 4, .dv = 3}), {1, 9});
  const Pair<double> layer({.d_model = 6, .heads = 2}, {.dk = 4, .dv = 3});
  CHECK(parameter_names(layer) ==
        "write.value.weight\nwrite.key.weight\nwrite.strength.weight\nread.query.weight\n"
        "output.weight\n");
  CHECK(layer.write.key.weight.rows() == 2 * 2 * 4);
}
