// Type-erased arrays and numbers, as records hold them, to and from a file.

#include <complex>
#include <cstdint>
#include <fastweights/core/leaves.hpp>
#include <fastweights/io/safetensors.hpp>
#include <limits>
#include <string>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

using fw::io::DType;
using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;
using fw::io::Shape;

template <class T> SafeTensors written(T value) {
  SafeTensorsWriter writer;
  writer.add("x", fw::detail::leaf_of<T>(&value));
  return SafeTensors::parse(writer.bytes(), "file");
}

template <class T> void read(const SafeTensors& file, T& value) {
  file.copy_to("x", fw::detail::leaf_of<T>(&value));
}

// Writes a value, and reads it into another one, `target`.
template <class T> void check_round_trip(const T& value, T target, DType type, const Shape& shape) {
  const SafeTensors file = written(value);
  CHECK(file.dtype("x") == type);
  CHECK(file.shape("x") == shape);
  read(file, target);
  CHECK(target == value);
}

template <class S> using Rows = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

TEST_CASE("leaves: every type of array and number is written and read", "[leaves]") {
  check_round_trip(1.5f, 0.0f, DType::F32, {});
  check_round_trip(0.1, 0.0, DType::F64, {});
  check_round_trip(std::int64_t{7}, std::int64_t{0}, DType::I64, {});
  check_round_trip(std::uint8_t{255}, std::uint8_t{0}, DType::I64, {});
  check_round_trip(std::int8_t{100}, std::int8_t{0}, DType::I8, {});
  check_round_trip(true, false, DType::I64, {});
  check_round_trip(Eigen::half(0.5f), Eigen::half(0.0f), DType::F16, {});
  check_round_trip(Eigen::bfloat16(0.5f), Eigen::bfloat16(0.0f), DType::BF16, {});
  const Eigen::MatrixXf matrix{{1, 2, 3}, {4, 5, 6}};
  check_round_trip(matrix, Eigen::MatrixXf(2, 3), DType::F32, {2, 3});
  check_round_trip(Rows<float>(matrix), Rows<float>(2, 3), DType::F32, {2, 3});
  check_round_trip(Eigen::VectorXd(matrix.row(0).cast<double>()), Eigen::VectorXd(3), DType::F64,
                   {3});
  check_round_trip(Eigen::RowVectorXf(matrix.row(0)), Eigen::RowVectorXf(3), DType::F32, {1, 3});
  check_round_trip(Eigen::MatrixXi(-matrix.cast<int>()), Eigen::MatrixXi(2, 3), DType::I64, {2, 3});
  check_round_trip(Rows<std::int8_t>(-matrix.cast<std::int8_t>()), Rows<std::int8_t>(2, 3),
                   DType::I8, {2, 3});
  check_round_trip(Eigen::MatrixXf(0, 3), Eigen::MatrixXf(0, 3), DType::F32, {0, 3});
}

TEST_CASE("leaves: a file's numbers must fit", "[leaves]") {
  const SafeTensors two = written(Eigen::VectorXf(Eigen::Vector2f(1, 2)));
  float number = 9;
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(two, number); }) ==
        "file: tensor \"x\": expected one number, has 2");
  Eigen::VectorXf three(3);
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(two, three); }) ==
        "file: tensor \"x\": expected shape [3, 1], the file has [2]");
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(1.5), three); }) ==
        "file: tensor \"x\": expected shape [3, 1], the file has []");
  std::int64_t count = 0;
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(std::int64_t{-5}), count); }) ==
        "file: tensor \"x\": expected a count, is -5");
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(1.5), count); }) ==
        "file: tensor \"x\": F64 cannot be read as integers");
  std::uint8_t small = 0;
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(std::int64_t{300}), small); }) ==
        "file: tensor \"x\": element 0 is 300, beyond the range of the type it is read as");
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(std::int64_t{3}), number); }) ==
        "file: tensor \"x\": I64 cannot be read as floating-point numbers");
  CHECK(error_of<fw::io::SafeTensorsError>([&] { read(written(1e300), number); }) ==
        "file: tensor \"x\": element 0 is 1e+300, beyond the range of the type it is read as");
}

TEST_CASE("leaves: a type that a file cannot hold is refused by the writer", "[leaves]") {
  CHECK(error_of<fw::io::SafeTensorsError>([] { written(std::complex<double>(1, 2)); }) ==
        "safetensors: tensor \"x\": numbers of this type cannot be written");
  CHECK(error_of<fw::io::SafeTensorsError>([] {
          written(std::numeric_limits<std::uint64_t>::max());
        }) == "safetensors: tensor \"x\": element beyond the range of I64");
}
