#include <fastweights/math/random.hpp>
#include <fastweights/networks/operations.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using fw::Index;
using namespace fw::networks;

constexpr Index sizes[] = {1, 3, 17, 63, 65, 100};
constexpr Index tokens[] = {1, 2, 3, 4, 7, 8, 9, 20};
constexpr WeightType storages[] = {WeightType::same, WeightType::bfloat16, WeightType::int8};

template <class S> Matrix<S> random_matrix(Index rows, Index cols, std::uint64_t seed = 1) {
  fw::Random random(seed);
  Matrix<S> m(rows, cols);
  random.fill(m);
  return m;
}

// The allowed error of a stored entry. bfloat16 has 8 significant bits; an 8-bit entry
// is a multiple of 1/127 of the row's largest.
template <class S> Matrix<S> storage_errors(const Matrix<S>& m, WeightType storage) {
  constexpr S some = S(1.01);  // for the rounding of scales
  if (storage == WeightType::bfloat16) return some * S(0x1p-8) * m.cwiseAbs();
  if (storage == WeightType::same) return Matrix<S>::Zero(m.rows(), m.cols());
  return (m.cwiseAbs().rowwise().maxCoeff() * (some / S(254))).replicate(1, m.cols());
}

// |given − M x| ≤ E |x| + the rounding of a sum of products, entry by entry.
template <class S>
void check_product(const Matrix<S>& given, const Matrix<S>& m, const Matrix<S>& x,
                   WeightType storage) {
  const Matrix<double> exact = m.template cast<double>() * x.template cast<double>();
  const S rounding = S(m.cols() + 2) * std::numeric_limits<S>::epsilon();
  const Matrix<S> bound =
      (storage_errors(m, storage) + rounding * m.cwiseAbs()) * x.cwiseAbs() * S(1.001);
  REQUIRE(given.rows() == m.rows());
  const Matrix<double> excess =
      (given.template cast<double>() - exact).cwiseAbs() - bound.template cast<double>();
  CHECK(given.allFinite());
  CHECK(excess.maxCoeff() <= 0);
}

template <class S> void check_products(WeightType storage) {
  for (const Index rows : sizes)
    for (const Index cols : sizes) {
      const Matrix<S> m = random_matrix<S>(rows, cols);
      const QuantisedMatrix<S> quantised(m, storage);
      CHECK(quantised.rows() == rows);
      CHECK(quantised.cols() == cols);
      for (const Index t : tokens) {
        INFO(rows << "×" << cols << ", " << t << " tokens");
        const Matrix<S> x = random_matrix<S>(cols, t, 2);
        Matrix<S> y = Matrix<S>::Constant(rows, t, S(NAN));
        quantised.multiply(x, y);
        check_product(y, m, x, storage);
      }
    }
}

TEST_CASE("quantised products are within the rounding of their storage", "[networks]") {
  for (const WeightType storage : storages) {
    INFO("storage " << int(storage));
    check_products<float>(storage);
    check_products<double>(storage);
  }
}

TEST_CASE("one token and many have the same product but for rounding", "[networks]") {
  for (const WeightType storage : storages) {
    const QuantisedMatrix<float> quantised(random_matrix<float>(65, 63), storage);
    const Matrix<float> x = random_matrix<float>(63, 20, 2);
    Matrix<float> many(65, 20), one(65, 1);
    quantised.multiply(x, many);
    for (Index t = 0; t < x.cols(); ++t) {
      quantised.multiply(x.col(t), one);
      CHECK(largest_entry(one - many.col(t)) <= 1e-5f * largest_entry(many));
    }
  }
}

TEST_CASE("products with some rows are those rows of the product", "[networks]") {
  for (const WeightType storage : storages)
    for (const Index t : {1, 3, 9}) {
      const Matrix<float> m = random_matrix<float>(100, 17), x = random_matrix<float>(17, t, 2);
      const QuantisedMatrix<float> quantised(m, storage);
      for (const Index first : {0, 1, 31, 63, 64, 99})
        for (const Index count : {1, 2, 33, 100}) {
          if (first + count > m.rows()) continue;
          INFO("rows " << first << " to " << first + count << ", " << t << " tokens");
          // Other rows of the buffer are not touched.
          Matrix<float> y = Matrix<float>::Constant(count + 2, t, 7.0f);
          quantised.multiply_rows(first, x, y.middleRows(1, count));
          check_product<float>(y.middleRows(1, count), m.middleRows(first, count), x, storage);
          CHECK((y.row(0).array() == 7.0f).all());
          CHECK((y.row(count + 1).array() == 7.0f).all());
        }
    }
}

TEST_CASE("a copied row has the stored entries", "[networks]") {
  for (const WeightType storage : storages)
    for (const Index rows : sizes) {
      const Matrix<double> m = random_matrix<double>(rows, 17);
      const Matrix<double> errors = storage_errors(m, storage);
      const QuantisedMatrix<double> quantised(m, storage);
      for (Index i = 0; i < rows; ++i) {
        Eigen::VectorXd row = Eigen::VectorXd::Constant(17, NAN);
        quantised.copy_row(i, row);
        CHECK(((row.transpose() - m.row(i)).array().abs() <= errors.row(i).array()).all());
      }
    }
}

TEST_CASE("rows of zeros and of tiny or large numbers", "[networks]") {
  Matrix<float> m = random_matrix<float>(70, 5);
  m.row(0).setZero();
  m.row(69).setZero();
  m.row(3) *= 1e-44f;
  m.row(4) *= 1e37f;
  m.row(5) << 127, -127, 1, 0, 64;  // exact in 8 bits
  for (const WeightType storage : storages)
    for (const Index t : {1, 9}) {
      const QuantisedMatrix<float> quantised(m, storage);
      const Matrix<float> x = Matrix<float>::Identity(5, 5).replicate(1, 2).leftCols(t);
      Matrix<float> y = Matrix<float>::Constant(70, t, NAN);
      quantised.multiply(x, y);
      CHECK(y.allFinite());
      CHECK((y.row(0).array() == 0.0f).all());
      CHECK((y.row(69).array() == 0.0f).all());
      CHECK(largest_entry(y.row(3)) <= 2 * largest_entry(m.row(3)));
      CHECK(largest_entry(y.row(4) - (m * x).row(4)) <= 0.01f * largest_entry(m.row(4)));
      CHECK(y.row(5) == (m * x).row(5));
    }
}

TEST_CASE("a quantised matrix takes fewer bytes", "[networks]") {
  const Matrix<float> m = random_matrix<float>(128, 64);
  const auto bytes = [&](WeightType storage) { return QuantisedMatrix<float>(m, storage).bytes(); };
  CHECK(bytes(WeightType::same) == 128 * 64 * 4);
  CHECK(bytes(WeightType::bfloat16) == 128 * 64 * 2);
  CHECK(bytes(WeightType::int8) == 128 * 64 + 128 * 4);
}

// Linear maps and an embedding; the weights of the norm and the bias stay.
Network<float> model() {
  Builder<float> builder;
  Value<float> x = embedding(builder, "embed", 20, 33);
  x = rms_norm(x + linear(tanh(linear(x, "up", 65, true)), "down", 33), "norm", {});
  Network<float> network = builder.build(linear(x, "embed", 20));
  fw::Random random(1);
  fw::initialise(network, random);
  for (auto& weight : network.weights) random.fill(weight.value, 0.3);
  return network;
}

TEST_CASE("a quantised network computes nearly what it did before", "[networks]") {
  const Network<float> exact = model();
  for (const WeightType storage : storages) {
    Network<float> quantised = exact;
    quantised.quantise(storage);
    for (std::size_t i = 0; i < exact.weights.size(); ++i) {
      const bool is_matrix = exact.weights[i].cols() > 1;
      INFO(exact.weights[i].name);
      CHECK((quantised.weights[i].quantised != nullptr) == is_matrix);
      CHECK((quantised.weights[i].value.size() == 0) == is_matrix);
    }
    for (const std::vector<int>& ids : {std::vector<int>{3}, {0, 19}, std::vector<int>(15, 7)}) {
      const Index n = Index(ids.size());
      Matrix<float> y(20, n), expected(20, n);
      State a = exact.initial_state(), b = quantised.initial_state();
      Network<float>::Trace trace_a, trace_b;
      exact.forward(a, fw::Symbols(ids), expected, trace_a);
      quantised.forward(b, fw::Symbols(ids), y, trace_b);
      const float limit = storage == WeightType::same ? 1e-5f : 0.02f;
      CHECK(largest_entry(y - expected) <= limit * largest_entry(expected));
    }
    quantised.quantise(storage);  // a second time changes nothing
    CHECK(quantised.weights[0].quantised != nullptr);
  }
}

}  // namespace
