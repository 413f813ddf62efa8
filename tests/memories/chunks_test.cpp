#include <fastweights/algorithms/scan.hpp>

#include "support/catch.hpp"

/// \file
/// Chunks with several members, as a user's memory may have them: no memory of the library has.

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using fw::Dynamic;
using fw::Extents;
using fw::Index;
using fw::Owned;

// Chunks of two tokens: keys with values, and queries with scales.
struct PairedChunks {
  template <class C> struct Write {
    fw::mat<C, Dynamic, Dynamic> keys, values;
    static constexpr auto names = fw::names("keys", "values");
  };
  template <class C> struct Read {
    fw::mat<C, Dynamic, Dynamic> queries, scales;
    static constexpr auto names = fw::names("queries", "scales");
  };
  template <class C> struct Out {
    fw::mat<C, Dynamic, Dynamic> output;
    static constexpr auto names = fw::names("output");
  };
  Write<Extents> write() const { return {{3, 2, true}, {3, 2, true}}; }
  Read<Extents> read() const { return {{3, 2, true}, {1, 2, true}}; }
  Out<Extents> out() const { return {{3, 2, true}}; }
};

// W += V Kᵀ, Y = W Q diag(scales).
struct SumOfChunks {
  using Scalar = double;
  using Signature = PairedChunks;
  static constexpr std::string_view name = "SumOfChunks";
  template <class C> struct State {
    fw::mat<C, Dynamic, Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<double>>;

  Signature signature() const { return {}; }
  State<Extents> state_extents() const { return {{3, 3}}; }
  void write(OwnedState& s, const fw::WriteToken<SumOfChunks>& t) const {
    s.W += t.values * t.keys.transpose();
  }
  void read(const OwnedState& s, const fw::ReadToken<SumOfChunks>& t,
            fw::OutToken<SumOfChunks> y) const {
    y.output = s.W * t.queries * t.scales.row(0).asDiagonal();
  }
};

// Scans three tokens, in chunks of two and one, with these numbers of columns.
struct Columns {
  Index keys = 3, values = 3, queries = 3, scales = 3, outputs = 3;
};
MatrixXd scanned(const Columns& n) {
  const SumOfChunks m;
  auto state = fw::initial_state(m);
  const MatrixXd keys = MatrixXd::Ones(3, n.keys), values = MatrixXd::Ones(3, n.values),
                 queries = MatrixXd::Ones(3, n.queries), scales = MatrixXd::Ones(1, n.scales);
  MatrixXd outputs = MatrixXd::Zero(3, n.outputs);
  try {
    fw::scan(m, state, {keys, values}, {queries, scales}, {outputs});
  } catch (...) {
    CHECK(state.W.isZero(0));
    throw;
  }
  return outputs;
}

TEST_CASE("chunks with several members: the last chunk is short in all of them", "[chunks]") {
  const MatrixXd y = scanned({});
  CHECK(y.leftCols(2).isConstant(6));  // two tokens are written, of three rows
  CHECK(y.rightCols(1).isConstant(9));
  for (const Columns& wrong : {Columns{.values = 4}, Columns{.keys = 4}})
    CHECK_THROWS_WITH(scanned(wrong), ContainsSubstring("SumOfChunks: values has") &&
                                          ContainsSubstring("the rest of the chunk"));
  for (const Columns& wrong :
       {Columns{.queries = 4, .outputs = 4}, Columns{.scales = 4, .outputs = 4}})
    CHECK_THROWS_WITH(scanned(wrong), ContainsSubstring("SumOfChunks: scales has") &&
                                          ContainsSubstring("the rest of the chunk"));
}

}  // namespace
