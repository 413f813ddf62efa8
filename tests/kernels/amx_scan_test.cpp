#include <cstring>
#include <fastweights/memories/adaptors/amx_scan.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"
#include "support/emulated_tiles.hpp"
#include "support/sizes.hpp"

// The scan with emulated tiles against the rule's scan in double.
namespace {

using fw::AmxPrecision;
using fw::Index;
using Narrow = fw::DeltaRule<float>;
using Wide = fw::DeltaRule<double>;

struct Inputs {
  Eigen::MatrixXf K, V, Q;
  Eigen::VectorXf beta;
  Eigen::MatrixXf W;

  /// Keys and queries have length 1, β is in (0, 1), and the initial state is random. `alike` near
  /// 1 makes all keys and queries similar to one direction.
  Inputs(Index dk, Index dv, Index steps, double alike = 0) {
    fw::Random random(11);
    const auto drawn = [&](Index rows, Index columns) {
      Eigen::MatrixXf x(rows, columns);
      random.fill(x, 1.0);
      return x;
    };
    const Eigen::VectorXf one = drawn(dk, 1).col(0).normalized();
    const auto directions = [&] {
      Eigen::MatrixXf x = drawn(dk, steps).colwise().normalized();
      x = float(1 - alike) * x + float(alike) * one.replicate(1, steps);
      x.colwise().normalize();
      return x;
    };
    K = directions();
    V = drawn(dv, steps);
    Q = directions();
    beta =
        Eigen::VectorXf::NullaryExpr(steps, [&] { return float(0.05 + 0.94 * random.uniform()); });
    W = drawn(dv, dk) / std::sqrt(float(dk));
  }
};

template <class M> struct Result {
  fw::StateOf<M> state;
  Eigen::Matrix<typename M::Scalar, fw::Dynamic, fw::Dynamic> Y;

  template <class F>
  Result(const M& m, const Inputs& in, const F& scan) : state(fw::initial_state(m)) {
    using S = typename M::Scalar;
    const auto K = in.K.cast<S>().eval(), V = in.V.cast<S>().eval(), Q = in.Q.cast<S>().eval();
    const auto beta = in.beta.cast<S>().eval();
    state.W = in.W.cast<S>();
    Y.setConstant(in.V.rows(), in.V.cols(), S(NAN));
    scan(m, state, fw::WriteSequence<M>{K, V, beta}, fw::ReadSequence<M>{Q}, fw::OutSequence<M>{Y});
  }
};

Result<Wide> exact(const Inputs& in) {
  return {Wide({in.K.rows(), in.V.rows()}), in,
          [](const auto& m, auto& s, const auto& writes, const auto& reads, const auto& out) {
            fw::scan(m, s, writes, reads, out);
          }};
}

Result<Narrow> by_tiles(const Inputs& in, AmxPrecision precision) {
  return {Narrow({in.K.rows(), in.V.rows()}), in,
          [&](const auto& m, auto& s, const auto& writes, const auto& reads, const auto& out) {
            fw::detail::tile_scan<EmulatedTiles>(m, s, writes, reads, out, precision);
          }};
}

// Bounds of the relative errors of outputs and state, in the Frobenius norm.
struct Bounds {
  double Y, W;
};
void check(const Inputs& in, AmxPrecision precision, Bounds bounds) {
  const auto expected = exact(in);
  const auto given = by_tiles(in, precision);
  INFO("d_v " << in.V.rows() << " d_k " << in.K.rows() << " T " << in.K.cols()
              << (precision == AmxPrecision::bf16 ? " bf16" : " split"));
  CHECK((given.Y.cast<double>() - expected.Y).norm() <= bounds.Y * expected.Y.norm());
  // The reference norm is at least that of a state with one written value.
  const double size = std::max(expected.state.W.norm(), std::sqrt(double(in.V.rows())));
  CHECK((given.state.W.cast<double>() - expected.state.W).norm() <= bounds.W * size);
}

// Rounding of a factor has a relative error of at most 2⁻⁸, 1.6e-3 on average. An output takes four
// products, which gives about 4e-3. The error does not grow with the sequence, since the rule
// corrects its own errors. For small d_k, keys are often similar, and for d_k = 1 always; then
// errors add up over a chunk. Two planes have 2⁸ times smaller errors.
void check(Index dk, Index dv, Index steps) {
  const Inputs in(dk, dv, steps);
  const double few = dk == 1 ? 8 : dk < 32 ? 1.5 : 1;
  check(in, AmxPrecision::bf16, {6e-3 * few, 6e-3 * few});
  check(in, AmxPrecision::split, {1.2e-5 * few, 1.2e-5 * few});
}

TEST_CASE("amx_scan: sizes and lengths", "[amx]") {
  for (const Index d : sizes({1, 17, 32, 64, 100, 128}, {1, 17, 64, 100}))
    for (const Index steps : sizes({1, 63, 64, 65, 200}, {1, 65})) check(d, d, steps);
}

TEST_CASE("amx_scan: d_v differs from d_k", "[amx]") {
  for (const Index dv : {1, 31, 33, 128})
    for (const Index dk : {1, 16, 65}) check(dk, dv, 97);
}

// Cosines of 0.5 and 0.99 between any two keys: the linear system is far from I, and its solution
// is a sum of large terms that cancel.
TEST_CASE("amx_scan: similar keys", "[amx]") {
  for (const Index d : sizes({17, 64, 128}, {17}))
    for (const Index steps : {65, 200}) {
      check({d, d, steps, 0.5}, AmxPrecision::bf16, {1.5e-2, 1.5e-2});
      check({d, d, steps, 0.5}, AmxPrecision::split, {3e-5, 3e-5});
      check({d, d, steps, 0.9}, AmxPrecision::bf16, {2.5e-2, 4e-2});
      check({d, d, steps, 0.9}, AmxPrecision::split, {5e-5, 8e-5});
    }
}

template <int Dk, int Dv> void check_fixed(Index steps) {
  using M = fw::DeltaRule<float, Dk, Dv>;
  const Inputs in(Dk, Dv, steps);
  const auto run = [](const auto& m, auto& s, const auto& w, const auto& r, const auto& y) {
    fw::detail::tile_scan<EmulatedTiles>(m, s, w, r, y, AmxPrecision::split);
  };
  const Result<M> fixed(M(), in, run);
  const auto dynamic = by_tiles(in, AmxPrecision::split);
  CHECK(fixed.Y == dynamic.Y);
  CHECK(fixed.state.W == dynamic.state.W);
}

TEST_CASE("amx_scan: sizes fixed at compile time", "[amx]") {
  check_fixed<64, 64>(70);
  check_fixed<1, 5>(70);
  check_fixed<5, 1>(70);
}

// A split at the end of a chunk gives the same bits. Any other split keeps the error bound.
TEST_CASE("amx_scan: a sequence in two parts", "[amx]") {
  const Inputs in(50, 40, 200);
  const Narrow m({.key_size = 50, .value_size = 40});
  const auto whole = by_tiles(in, AmxPrecision::split);
  const auto expected = exact(in);
  for (const Index cut : sizes({0, 1, 37, 64, 100, 128, 199, 200}, {0, 37, 64, 200})) {
    INFO("cut at " << cut);
    const Result<Narrow> parts(
        m, in, [&](const auto& rule, auto& s, const auto& w, const auto& r, const auto& y) {
          const auto part = [&](Index first, Index count) {
            const auto some = [&](const auto& views, const auto& extents) {
              return fw::detail::steps(views, extents, first, count);
            };
            const auto signature = rule.signature();
            fw::detail::tile_scan<EmulatedTiles>(rule, s, some(w, signature.write()),
                                                 some(r, signature.read()),
                                                 some(y, signature.out()), AmxPrecision::split);
          };
          part(0, cut);
          part(cut, 200 - cut);
        });
    if (cut % 64 == 0) {
      CHECK(parts.Y == whole.Y);
      CHECK(parts.state.W == whole.state.W);
    }
    CHECK((parts.Y.cast<double>() - expected.Y).norm() <= 1.2e-5 * expected.Y.norm());
    CHECK(parts.Y.allFinite());
  }
}

// One of several heads: the column stride is larger than the number of rows.
TEST_CASE("amx_scan: accesses only the rows of its head", "[amx]") {
  const Inputs in(3, 5, 70);
  const Narrow m({.key_size = 3, .value_size = 5});
  const auto alone = by_tiles(in, AmxPrecision::bf16);
  const auto among = [](const auto& part) {
    Eigen::MatrixXf whole = Eigen::MatrixXf::Constant(part.rows() + 4, part.cols(), NAN);
    whole.middleRows(2, part.rows()) = part;
    return whole;
  };
  const Eigen::MatrixXf K = among(in.K), V = among(in.V), Q = among(in.Q);
  Eigen::MatrixXf betas = Eigen::MatrixXf::Constant(3, 70, NAN);
  betas.row(1) = in.beta.transpose();
  Eigen::MatrixXf Y = Eigen::MatrixXf::Constant(9, 70, -1);
  auto state = fw::initial_state(m);
  state.W = in.W;
  fw::detail::tile_scan<EmulatedTiles, Narrow>(
      m, state, {K.middleRows(2, 3), V.middleRows(2, 5), betas.row(1)}, {Q.middleRows(2, 3)},
      {Y.middleRows(2, 5)}, AmxPrecision::bf16);
  CHECK(Y.middleRows(2, 5) == alone.Y);
  CHECK((Y.topRows(2).array() == -1).all());
  CHECK((Y.bottomRows(2).array() == -1).all());
}

TEST_CASE("amx_scan: equals scan where AMX is not permitted", "[amx]") {
  const bool permitted = fw::amx_permitted();
  CHECK(fw::amx_permitted() == permitted);
  const Inputs in(20, 48, 130);
  const Narrow m({.key_size = 20, .value_size = 48});
  const Result<Narrow> plain(
      m, in, [](const auto& rule, auto& s, const auto& w, const auto& r, const auto& y) {
        fw::scan(rule, s, w, r, y);
      });
  for (const auto precision : {AmxPrecision::bf16, AmxPrecision::split}) {
    const Result<Narrow> given(
        m, in, [&](const auto& rule, auto& s, const auto& w, const auto& r, const auto& y) {
          fw::amx_scan(rule, s, w, r, y, precision);
        });
    if (permitted) {
      CHECK((given.Y - plain.Y).norm() <= 6e-3f * plain.Y.norm());
      CHECK((given.state.W - plain.state.W).norm() <= 6e-3f * plain.state.W.norm());
    } else {
      CHECK(given.Y == plain.Y);
      CHECK(given.state.W == plain.state.W);
    }
  }
}

TEST_CASE("amx_scan: a wrong size throws and changes nothing", "[amx]") {
  const Inputs in(3, 4, 9);
  const Narrow m({.key_size = 3, .value_size = 4});
  auto state = fw::initial_state(m);
  Eigen::MatrixXf Y = Eigen::MatrixXf::Zero(4, 8);
  CHECK_THROWS_WITH(fw::amx_scan(m, state, {in.K, in.V, in.beta}, {in.Q}, {Y}, AmxPrecision::bf16),
                    Catch::Matchers::ContainsSubstring("output has 8 columns"));
  CHECK_THROWS_WITH(fw::amx_scan(m, state, {in.V, in.V, in.beta}, {in.Q}, {Y}, AmxPrecision::bf16),
                    Catch::Matchers::ContainsSubstring("key has 4 rows"));
  CHECK(state.W.isZero(0));
  CHECK(Y.isZero(0));
}

TEST_CASE("bf16: rounds to nearest even; infinity and NaN stay", "[amx]") {
  const auto rounded = [](std::uint32_t bits) {
    return fw::detail::bf16_bits(std::bit_cast<float>(bits));
  };
  CHECK(rounded(0x3f808000u) == 0x3f800000u);  // half way, to even
  CHECK(rounded(0x3f818000u) == 0x3f820000u);
  CHECK(rounded(0x3f808001u) == 0x3f810000u);
  CHECK(rounded(0x3f807fffu) == 0x3f800000u);
  CHECK(rounded(0xbfffffffu) == 0xc0000000u);  // carry into the exponent
  CHECK(rounded(0x80000000u) == 0x80000000u);
  CHECK(rounded(0x7f800000u) == 0x7f800000u);
  CHECK(rounded(0xff800000u) == 0xff800000u);
  CHECK(std::isnan(std::bit_cast<float>(rounded(0x7f800001u))));
  CHECK(std::isnan(std::bit_cast<float>(rounded(0xffffffffu))));
  CHECK(fw::detail::bf16_pair<false>(1.0f, -2.0f) == 0xc0003f80u);
  CHECK(fw::detail::bf16_pair<true>(1.0f, 1.00390625f) == 0x3b800000u);
}

}  // namespace
