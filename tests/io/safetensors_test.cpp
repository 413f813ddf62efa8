// The file format: the reader, its error messages, and the writer.

#include "fastweights/io/safetensors.hpp"

#include <Eigen/Core>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "data_folder.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/largest_entry.hpp"
#include "support/temporary_folder.hpp"

namespace {

using fw::io::DType;
using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using fw::io::SafeTensorsWriter;
using fw::io::Shape;
using Bytes = std::vector<std::byte>;
using namespace std::string_literals;

Bytes as_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

// A file that claims the given length of its header, which may be wrong.
Bytes file_claiming(std::uint64_t length, const std::string& header, const std::string& data) {
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>((length >> (8 * i)) & 0xff);
  return as_bytes(prefix + header + data);
}

Bytes file_of(const std::string& header, const std::string& data = "") {
  return file_claiming(header.size(), header, data);
}

Bytes zeros_file(const std::string& header, std::size_t data_bytes) {
  return file_of(header, std::string(data_bytes, '\0'));
}

// A header with the one tensor "w".
std::string entry(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }

template <class F> void check_error(F&& action, const std::vector<std::string>& parts) {
  const std::string message = error_of<SafeTensorsError>(action);
  for (const std::string& part : parts) {
    INFO("message: " << message);
    INFO("should contain: " << part);
    CHECK(message.find(part) != std::string::npos);
  }
}

void check_refused(const Bytes& file, const std::vector<std::string>& parts) {
  check_error([&] { SafeTensors::parse(file, "the file"); }, parts);
  check_error([&] { SafeTensors::parse(file, "the file"); }, {"the file: "});
}

// Reads every byte, so that a sanitizer detects bytes outside of the buffer.
std::size_t sum_of_bytes(const SafeTensors& file) {
  std::size_t sum = 0;
  for (const std::string& name : file.names()) {
    for (const std::byte byte : file.data(name)) sum += std::to_integer<std::size_t>(byte);
  }
  return sum;
}

template <class Dense> Dense counting(Eigen::Index rows, Eigen::Index cols) {
  using S = typename Dense::Scalar;
  Dense dense(rows, cols);
  for (Eigen::Index row = 0; row < rows; ++row) {
    for (Eigen::Index col = 0; col < cols; ++col) {
      dense(row, col) = static_cast<S>(static_cast<float>(row * cols + col) - 2.5f);
    }
  }
  return dense;
}

// Three types, a scalar, an empty tensor and metadata.
Bytes rich_file() {
  SafeTensorsWriter writer;
  writer.add("layer.weight", counting<Eigen::MatrixXf>(3, 5));
  writer.add("layer.bias", counting<Eigen::VectorXd>(3, 1));
  writer.add("step", 7);
  writer.add("empty", Eigen::MatrixXf(0, 4));
  writer.metadata("about", "a test");
  return writer.bytes();
}

std::filesystem::path data_directory() { return FASTWEIGHTS_REFERENCE_DIR; }

template <class Target>
constexpr bool can_copy_to = requires(const SafeTensors& file, Target&& target) {
  file.copy_to("w", target);
};
static_assert(can_copy_to<Eigen::MatrixXf&> && can_copy_to<Eigen::Map<Eigen::VectorXd>>);
static_assert(can_copy_to<Eigen::ArrayXXd&>);
static_assert(!can_copy_to<const Eigen::MatrixXf&> && !can_copy_to<std::vector<float>&>);
static_assert(!can_copy_to<Eigen::Map<const Eigen::VectorXd>>);

template <class Buffer> constexpr bool can_view = requires(Buffer&& buffer) {
  SafeTensors::view(std::forward<Buffer>(buffer));
};
static_assert(can_view<Bytes&> && can_view<const Bytes&> && !can_view<Bytes>);

template <class S> constexpr bool can_read = requires(const SafeTensors& file) {
  file.values<S>("w");
};
static_assert(can_read<float> && can_read<double> && can_read<std::uint8_t> && can_read<long>);
static_assert(!can_read<bool> && !can_read<char> && !can_read<long double>);

}  // namespace

TEST_CASE("safetensors: the reader returns the tensors of the writer", "[safetensors]") {
  const auto file = SafeTensors::parse(rich_file());

  CHECK(file.names() == std::vector<std::string>{"empty", "layer.bias", "layer.weight", "step"});
  CHECK(file.size() == 4);
  CHECK(file.contains("step"));
  CHECK_FALSE(file.contains("Step"));
  CHECK(file.metadata().size() == 1);
  CHECK(file.metadata().at("about") == "a test");

  CHECK(file.dtype("layer.weight") == DType::F32);
  CHECK(file.shape("layer.weight") == Shape{3, 5});
  CHECK(file.matrix<float>("layer.weight") == counting<Eigen::MatrixXf>(3, 5));
  CHECK(file.dtype("layer.bias") == DType::F64);
  CHECK(file.shape("layer.bias") == Shape{3});
  CHECK(file.matrix<double>("layer.bias") == counting<Eigen::VectorXd>(3, 1));
  CHECK(file.dtype("step") == DType::I64);
  CHECK(file.shape("step").empty());
  CHECK(file.values<int>("step") == std::vector<int>{7});
  CHECK(file.shape("empty") == Shape{0, 4});
  CHECK(file.matrix<float>("empty").rows() == 0);
  CHECK(file.matrix<float>("empty").cols() == 4);
}

TEST_CASE("safetensors: a matrix of any storage order is written row-major", "[safetensors]") {
  Eigen::Matrix<float, 2, 3> columns;
  columns << 1, 2, 3, 4, 5, 6;
  const Eigen::Matrix<float, 2, 3, Eigen::RowMajor> rows = columns;
  SafeTensorsWriter writer;
  writer.add("columns", columns);
  writer.add("rows", rows);
  writer.add("expression", 2.0f * columns);
  writer.add("array", columns.array());
  writer.add("row vector", Eigen::RowVectorXf::Ones(3));
  writer.add("one column", Eigen::MatrixXf::Ones(3, 1));
  const auto file = SafeTensors::parse(writer.bytes());

  const std::vector<float> in_order{1, 2, 3, 4, 5, 6};
  CHECK(file.values<float>("columns") == in_order);
  CHECK(file.values<float>("rows") == in_order);
  CHECK(file.values<float>("array") == in_order);
  CHECK(file.values<float>("expression") == std::vector<float>{2, 4, 6, 8, 10, 12});
  CHECK(file.shape("row vector") == Shape{1, 3});
  CHECK(file.shape("one column") == Shape{3, 1});
}

TEST_CASE("safetensors: every type is written and read without a change, extremes included",
          "[safetensors]") {
  const auto infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> doubles{0.1, -0.0, 1e308, 5e-324, infinity, std::nan("")};
  const std::vector<float> floats{0.1f, -3e38f, 1e-45f};
  const std::vector<std::int64_t> integers{std::numeric_limits<std::int64_t>::min(), -1, 0,
                                           std::numeric_limits<std::int64_t>::max()};
  const Eigen::Matrix<Eigen::half, 2, 2> halves =
      counting<Eigen::MatrixXf>(2, 2).cast<Eigen::half>();
  const auto brains = counting<Eigen::MatrixXf>(2, 3).cast<Eigen::bfloat16>().eval();
  SafeTensorsWriter writer;
  writer.add("f64", {3, 1, 2}, doubles);
  writer.add("f32", {3}, floats);
  writer.add("i64", {2, 2}, integers);
  writer.add("u8", {2}, std::array<std::uint8_t, 2>{0, 255});
  writer.add("i8", {2}, std::array<std::int8_t, 2>{-128, 127});
  writer.add("f16", halves);
  writer.add("bf16", brains);
  const auto file = SafeTensors::parse(writer.bytes());

  const auto read = file.values<double>("f64");
  CHECK(file.shape("f64") == Shape{3, 1, 2});
  REQUIRE(read.size() == doubles.size());
  CHECK(std::memcmp(read.data(), doubles.data(), 8 * doubles.size()) == 0);
  CHECK(file.values<float>("f32") == floats);
  CHECK(file.values<std::int64_t>("i64") == integers);
  CHECK(file.dtype("u8") == DType::I64);
  CHECK(file.values<std::uint8_t>("u8") == std::vector<std::uint8_t>{0, 255});
  CHECK(file.dtype("i8") == DType::I8);
  CHECK(file.values<std::int8_t>("i8") == std::vector<std::int8_t>{-128, 127});
  CHECK(file.dtype("f16") == DType::F16);
  CHECK(file.matrix<double>("f16") == counting<Eigen::MatrixXd>(2, 2));
  CHECK(file.dtype("bf16") == DType::BF16);
  CHECK(file.matrix<float>("bf16") == counting<Eigen::MatrixXf>(2, 3));
}

TEST_CASE("safetensors: every type is read from its bytes", "[safetensors]") {
  const auto one = [](const std::string& dtype, const std::string& data) {
    return SafeTensors::parse(
        file_of(entry("\"dtype\":\"" + dtype + "\",\"shape\":[],\"data_offsets\":[0," +
                      std::to_string(data.size()) + "]"),
                data));
  };
  const auto integer = [&](const std::string& dtype, const std::string& data) {
    return one(dtype, data).values<std::int64_t>("w").at(0);
  };
  CHECK(integer("BOOL", "\x01") == 1);
  CHECK(integer("U8", "\xfe") == 254);
  CHECK(integer("I8", "\xfe") == -2);
  CHECK(integer("U16", "\x01\xff") == 0xff01);
  CHECK(integer("I16", "\xfe\xff") == -2);
  CHECK(integer("U32", "\x01\x02\x03\xff") == 0xff030201);
  CHECK(integer("I32", "\xfe\xff\xff\xff") == -2);
  CHECK(integer("U64", "\x01\x02\x03\x04\x05\x06\x07\x08"s) == 0x0807060504030201);
  CHECK(integer("I64", "\xfe\xff\xff\xff\xff\xff\xff\xff") == -2);

  const auto real = [&](const std::string& dtype, const std::string& data) {
    return one(dtype, data).values<double>("w").at(0);
  };
  CHECK(real("F64", "\0\0\0\0\0\0\xf8\xbf"s) == -1.5);
  CHECK(real("F32", "\0\0\xc0\xbf"s) == -1.5);
  CHECK(real("F16", "\x00\xbe"s) == -1.5);
  CHECK(real("F16", "\x01\x00"s) == std::ldexp(1.0, -24));  // the smallest denormal
  CHECK(real("F16", "\xff\x7b") == 65504.0);
  CHECK(real("F16", "\x00\x7c"s) == std::numeric_limits<double>::infinity());
  CHECK(real("BF16", "\xc0\xbf") == -1.5);
  CHECK(real("BF16", "\x49\x40") == 3.140625);
  CHECK(std::isnan(real("BF16", "\xc0\x7f")));

  for (const char* name : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}) {
    const auto file = one(name, "\x38");
    CHECK(name_of(file.dtype("w")) == name);
    CHECK(file.data("w").size() == 1);
    check_error([&] { file.values<float>("w"); },
                {"\"w\"", std::string(name) + " cannot be read as floating-point numbers"});
    check_error([&] { file.values<int>("w"); },
                {"\"w\"", std::string(name) + " cannot be read as integers"});
  }
}

TEST_CASE("safetensors: a value of the same type is copied bit by bit, NaN payloads included",
          "[safetensors]") {
  const auto check = [](const auto& values, const std::string& dtype) {
    using Integer = std::remove_cvref_t<decltype(values[0])>;
    const std::string size = std::to_string(values.size()),
                      bytes = std::to_string(values.size() * sizeof(Integer));
    std::string data(values.size() * sizeof(Integer), '\0');
    for (std::size_t i = 0; i < values.size(); ++i)
      fw::io::detail::store_element(values[i],
                                    reinterpret_cast<std::byte*>(&data[i * sizeof(Integer)]));
    const std::string header = entry("\"dtype\":\"" + dtype + "\",\"shape\":[" + size +
                                     "],\"data_offsets\":[0," + bytes + "]");
    const auto file = SafeTensors::parse(file_of(header, data));
    const auto same = [&]<class S>(S) {
      const std::vector<S> read = file.values<S>("w");
      REQUIRE(read.size() == values.size());
      CHECK(std::memcmp(read.data(), values.data(), data.size()) == 0);
      SafeTensorsWriter writer;
      writer.add("w", {std::ssize(values)}, read);
      const auto again = SafeTensors::parse(writer.bytes()).data("w");
      const auto first = file.data("w");
      CHECK(std::equal(first.begin(), first.end(), again.begin(), again.end()));
    };
    if (dtype == "F16") same(Eigen::half());
    if (dtype == "BF16") same(Eigen::bfloat16());
    if (dtype == "F32") same(float());
    if (dtype == "F64") same(double());
  };
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  check(all, "F16");
  check(all, "BF16");
  check(std::vector<std::uint32_t>{0x7f800001, 0x7fa00000, 0xffc12345, 0x80000000, 1}, "F32");
  check(std::vector<std::uint64_t>{0x7ff0000000000001, 0xfff8000012345678, 1}, "F64");
}

TEST_CASE("safetensors: one floating-point type is converted to another, rounded to nearest",
          "[safetensors]") {
  SafeTensorsWriter writer;
  writer.add("f64", Eigen::Vector3d(0.1, 1 + 0x1p-30, std::nan("")));
  writer.add("f32", Eigen::Vector3f(0.1f, 65519.0f, 1 + 0x1p-9f));
  writer.add("f16", Eigen::Vector2f(0.1f, 65504.0f).cast<Eigen::half>().eval());
  writer.add("bf16", Eigen::Vector2f(0.1f, 3e38f).cast<Eigen::bfloat16>().eval());
  const auto file = SafeTensors::parse(writer.bytes(), "model");

  CHECK(file.values<float>("f64")[0] == 0.1f);
  CHECK(file.values<float>("f64")[1] == 1.0f);
  CHECK(std::isnan(file.values<float>("f64")[2]));
  CHECK(file.values<double>("f32")[0] == 0.1f);
  CHECK(file.values<Eigen::half>("f32")[1] == Eigen::half(65504.0f));
  CHECK(file.values<Eigen::bfloat16>("f32")[2] == Eigen::bfloat16(1.0f));
  CHECK(file.values<float>("f16") == std::vector<float>{0x1.998p-4f, 65504.0f});
  CHECK(file.values<double>("bf16")[0] == 0x1.9ap-4);
  CHECK(file.values<Eigen::bfloat16>("f16")[1] == Eigen::bfloat16(65536.0f));
  check_error([&] { file.values<Eigen::half>("bf16"); },
              {"model: tensor \"bf16\": element 1 is ", "beyond the range"});
}

TEST_CASE("safetensors: elements are little-endian in the file on machines of both orders",
          "[safetensors]") {
  using std::endian;
  const auto bytes_of = []<endian order>(std::integral_constant<endian, order>) {
    std::array<std::byte, 4> bytes{};
    fw::io::detail::store_element<order>(std::uint32_t{0x04030201}, bytes.data());
    CHECK(fw::io::detail::load_element<std::uint32_t, order>(bytes.data()) == 0x04030201);
    return bytes;
  };
  const auto little = bytes_of(std::integral_constant<endian, endian::little>{});
  const auto big = bytes_of(std::integral_constant<endian, endian::big>{});
  CHECK(std::equal(little.begin(), little.end(), big.rbegin()));
  // The machine's own order, whichever it is.
  CHECK(bytes_of(std::integral_constant<endian, endian::native>{}) ==
        std::array{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}});
}

TEST_CASE("safetensors: messages are short, whatever is in the file", "[safetensors]") {
  const std::string fields = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";
  const auto file = SafeTensors::parse(
      zeros_file("{\"" + std::string(10'000, 'n') + "\":{" + fields + "}}", 1), "model");
  const std::string name = file.names()[0];
  CHECK(name.size() == 10'000);
  const std::string message = error_of<SafeTensorsError>([&] { file.values<float>(name); });
  CHECK(message == "model: tensor \"" + std::string(60, 'n') +
                       "...\": U8 cannot be read as floating-point numbers");
  CHECK(error_of<SafeTensorsError>([&] { file.fail("w", std::string(1000, 'x')); }).size() == 200);
  // No half of a character.
  std::string accents;
  for (int i = 0; i < 500; ++i) accents += "\u00e9";
  for (const char* before : {"", "x"}) {
    const std::string cut = error_of<SafeTensorsError>([&] { file.fail("w", before + accents); });
    CHECK(cut.size() >= 199);
    CHECK(cut.ends_with("\u00e9..."));
  }
  CHECK(error_of<SafeTensorsError>([&] { file.fail("w", std::string(1000, '\x80')); }).size() <=
        200);
}

TEST_CASE("safetensors: a file of PyTorch's own format says what it is", "[safetensors]") {
  const std::string zip = "PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0archive/data.pkl"s;
  check_refused(as_bytes(zip), {"a zip archive, as torch.save (.pt)", "not safetensors"});
  // The same two bytes begin the length of a good header of 19280 bytes.
  std::string header = "{}";
  header.resize(0x4b50, ' ');
  CHECK(SafeTensors::parse(file_of(header)).size() == 0);
}

TEST_CASE("safetensors: a value the scalar cannot hold is an error", "[safetensors]") {
  SafeTensorsWriter writer;
  writer.add("large", Eigen::Vector2d(1.0, 1e39));
  writer.add("ids", Eigen::Vector3i(1, 300, -1));
  writer.add("scale", 0.5);
  const auto file = SafeTensors::parse(writer.bytes(), "model");

  check_error([&] { file.values<float>("large"); },
              {"model: tensor \"large\": element 1 is 1e+39,"});
  CHECK(file.values<double>("large").at(1) == 1e39);
  check_error([&] { file.values<std::uint8_t>("ids"); }, {"\"ids\": element 1 is 300"});
  check_error([&] { file.values<std::uint64_t>("ids"); }, {"\"ids\": element 2 is -1"});
  check_error([&] { file.values<float>("ids"); },
              {"\"ids\": I64 cannot be read as floating-point numbers"});
  check_error([&] { file.values<int>("scale"); }, {"\"scale\": F64 cannot be read as integers"});
  check_error([&] { file.values<int>("weight"); }, {"\"weight\": not in the file"});
  check_error([&] { file.data("weight"); }, {"\"weight\": not in the file"});
}

TEST_CASE("safetensors: matrices of every rank up to two", "[safetensors]") {
  SafeTensorsWriter writer;
  writer.add("scalar", 1.5f);
  writer.add("vector", {2}, std::vector<float>{1, 2});
  writer.add("row", {1, 2}, std::vector<float>{1, 2});
  writer.add("cube", {1, 2, 1}, std::vector<float>{1, 2});
  const auto file = SafeTensors::parse(writer.bytes());

  CHECK(file.matrix<double>("scalar") == Eigen::MatrixXd::Constant(1, 1, 1.5));
  CHECK(file.matrix<float>("vector") == Eigen::MatrixXf(Eigen::Vector2f(1, 2)));
  CHECK(file.matrix<float>("row") == Eigen::MatrixXf(Eigen::RowVector2f(1, 2)));
  check_error([&] { file.matrix<float>("cube"); }, {"\"cube\": shape [1, 2, 1] has too many axes"});
}

TEST_CASE("safetensors: copy_to fills a target of the right shape and leaves others unchanged",
          "[safetensors]") {
  SafeTensorsWriter writer;
  writer.add("weight", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  writer.add("conv", {2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  writer.add("bias", {1, 3}, std::vector<float>{1, 2, 3});
  writer.add("groups", {2, 2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  writer.add("huge", {3}, std::vector<double>{1, 2, 1e300});
  const auto file = SafeTensors::parse(writer.bytes(), "model");
  const Eigen::MatrixXf weight{{1, 2, 3}, {4, 5, 6}};

  Eigen::MatrixXf matrix(2, 3);
  file.copy_to("conv", matrix);
  CHECK(matrix == weight);
  Eigen::MatrixXf rows_of_rows(4, 3), columns(2, 6);
  file.copy_to("groups", rows_of_rows);
  CHECK(rows_of_rows == Eigen::MatrixXf{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}});
  check_error([&] { file.copy_to("groups", columns); },
              {"expected shape [2, 6], the file has [2, 2, 3]"});
  Eigen::Matrix<double, 2, 3, Eigen::RowMajor> rows;
  file.copy_to("weight", rows);
  CHECK(rows == weight.cast<double>());
  Eigen::Matrix4f frame = Eigen::Matrix4f::Zero();
  file.copy_to("weight", frame.block(1, 1, 2, 3));
  CHECK(frame.block(1, 1, 2, 3) == weight);
  CHECK(frame.sum() == weight.sum());
  std::array<float, 3> storage{};
  file.copy_to("bias", Eigen::Map<Eigen::Vector3f>(storage.data()));
  CHECK(storage == std::array<float, 3>{1, 2, 3});

  Eigen::MatrixXf transposed = Eigen::MatrixXf::Constant(3, 2, 9.0f);
  check_error([&] { file.copy_to("weight", transposed); },
              {"model: tensor \"weight\": expected shape [3, 2], the file has [2, 3]"});
  CHECK(transposed == Eigen::MatrixXf::Constant(3, 2, 9.0f));
  Eigen::Vector3f vector = Eigen::Vector3f::Constant(9.0f);
  check_error([&] { file.copy_to("huge", vector); }, {"\"huge\": element 2"});
  CHECK(vector == Eigen::Vector3f::Constant(9.0f));
  Eigen::MatrixXf unsized;
  check_error([&] { file.copy_to("weight", unsized); }, {"expected shape [0, 0]"});
}

TEST_CASE("safetensors: unusual but valid files are accepted", "[safetensors]") {
  CHECK(SafeTensors::parse(file_of("{}")).size() == 0);
  CHECK(SafeTensors::parse(file_of("{\"__metadata__\":{}}  ")).size() == 0);
  // Two empty tensors on the boundary between others, one with an axis too long for any memory.
  const auto axis =
      sizeof(Eigen::Index) == 8 ? static_cast<Eigen::Index>(4000000000000) : 400000000;
  const auto file = SafeTensors::parse(zeros_file(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},)"
      R"( "none":{"data_offsets":[3,3],"shape":[0,)" +
          std::to_string(axis) +
          R"(],"dtype":"F32"},)"
          R"( "a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
          R"( "end":{"dtype":"F64","shape":[0],"data_offsets":[5,5]}, )"
          R"( "\u00e9\ud83d\ude00\"\u0000":{"dtype":"I8","shape":[1,1,1,1,1],"data_offsets":[5,6]}})",
      6));
  CHECK(file.size() == 5);
  CHECK(file.contains("\u00e9\U0001F600\"\0"s));
  CHECK(file.values<float>("none").empty());
  CHECK(file.matrix<float>("none").cols() == axis);
}

TEST_CASE("safetensors: a borrowed buffer is read in place, a parsed one is shared",
          "[safetensors]") {
  const Bytes bytes = rich_file();
  const auto view = SafeTensors::view(bytes);
  CHECK(view.data("step").data() >= bytes.data());
  CHECK(view.data("step").data() + 8 <= bytes.data() + bytes.size());

  std::vector<SafeTensors> copies;
  {
    const auto original = SafeTensors::parse(bytes);
    copies.push_back(original);
    CHECK(copies[0].data("step").data() == original.data("step").data());
  }
  CHECK(copies[0].values<int>("step") == std::vector<int>{7});
}

TEST_CASE("safetensors: a malformed header is refused", "[safetensors]") {
  check_refused(as_bytes(""), {"holds 0 bytes"});
  check_refused(as_bytes("1234567"), {"holds 7 bytes"});
  check_refused(file_claiming(3, "{}", ""), {"header of 3 bytes, only 2 follow"});
  check_refused(file_claiming(100'000'001, "{}", ""), {"100000001", "limit of 100000000"});
  check_refused(file_claiming(std::numeric_limits<std::uint64_t>::max(), "{}", ""),
                {"18446744073709551615", "limit"});
  check_refused(file_of(""), {"does not start with '{'"});
  check_refused(file_of(" {}"), {"does not start with '{'"});
  check_refused(file_of("[]"), {"does not start with '{'"});
  check_refused(file_of("\xef\xbb\xbf{}"), {"does not start with '{'"});
  check_refused(file_of("{}\n"), {"only spaces may follow", "at 2"});
  check_refused(file_of("{}\0\0"s), {"NUL at byte 2"});
  check_refused(file_of("{}\0}"s), {"NUL at byte 2"});
  check_refused(file_of("{} {}"), {"header: ", "parse error"});
  check_refused(file_of("{}}"), {"header: ", "parse error"});
  check_refused(file_of("{,}"), {"header: ", "parse error"});
  check_refused(file_of("{/**/}"), {"header: ", "parse error"});
  check_refused(file_of("{\"\xff\":{}}"), {"header: ", "UTF-8"});
  check_refused(file_of(R"({"\ud800":{}})"), {"header: ", "parse error"});
}

TEST_CASE("safetensors: an error of syntax names its tensor", "[safetensors]") {
  check_refused(file_of(R"({"w":{"dtype" "F32"}})"), {"tensor \"w\": ", "parse error"});
  check_refused(file_of(R"({"w":})"), {"tensor \"w\": ", "parse error"});
  check_refused(file_of("{\"w\":{\"dtype\":\"\xc3\"}}"), {"tensor \"w\": ", "UTF-8"});
  check_refused(file_of(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]} "v":{}})"),
                {"header: ", "parse error"});
}

TEST_CASE("safetensors: duplicate names are refused", "[safetensors]") {
  const std::string fields = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  check_refused(zeros_file("{\"w\":" + fields + ",\"w\":" + fields + "}", 1),
                {"tensor \"w\": the name appears twice"});
  check_refused(zeros_file("{\"w\":" + fields + ",\"\\u0077\":" + fields + "}", 1),
                {"tensor \"w\": the name appears twice"});
  check_refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"),
                {"__metadata__: the name appears twice"});
  check_refused(file_of(R"({"__metadata__":{"k":"1","k":"2"}})"),
                {"__metadata__: field \"k\" appears twice"});
  for (const char* field : {R"("dtype":"U8")", R"("shape":[1])", R"("data_offsets":[0,1])"}) {
    const std::string name = std::string(field).substr(0, std::string(field).find(':'));
    check_refused(
        zeros_file(entry(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],)"s + field), 1),
        {"tensor \"w\": field " + name + " appears twice"});
  }
}

TEST_CASE("safetensors: missing, unknown and ill-typed fields are refused", "[safetensors]") {
  check_refused(file_of(entry(R"("shape":[0],"data_offsets":[0,0])")),
                {"tensor \"w\": field \"dtype\" is missing"});
  check_refused(file_of(entry(R"("dtype":"U8","data_offsets":[0,0])")),
                {"tensor \"w\": field \"shape\" is missing"});
  check_refused(file_of(entry(R"("dtype":"U8","shape":[0])")),
                {"tensor \"w\": field \"data_offsets\" is missing"});
  check_refused(file_of(entry(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"stride":[1])")),
                {"tensor \"w\": unknown field \"stride\""});
  check_refused(file_of(entry(R"("dtype":"F33")")), {"tensor \"w\": unknown dtype \"F33\""});
  check_refused(file_of(entry(R"("dtype":"f32")")), {"tensor \"w\": unknown dtype \"f32\""});

  for (const char* value : {"null", "true", "4", "-4", "4.5", "[]", "{}"}) {
    check_refused(file_of(entry(R"("dtype":)"s + value)),
                  {"tensor \"w\": dtype must be a string, found "});
  }
  for (const char* value : {"null", "true", "4", "-4", "4.5", "\"4\"", "{}"}) {
    check_refused(file_of(entry(R"("shape":)"s + value)),
                  {"tensor \"w\": shape must be an array, found "});
    check_refused(file_of(entry(R"("data_offsets":)"s + value)),
                  {"tensor \"w\": data_offsets must be an array, found "});
    check_refused(file_of(R"({"w":)"s + (value == "{}"s ? "[]" : value) + "}"),
                  {"tensor \"w\": expected an object, found "});
  }
  for (const char* value :
       {"null", "true", "-1", "-0", "1.0", "1e0", "18446744073709551616", "\"1\"", "[1]", "{}"}) {
    check_refused(file_of(entry(R"("shape":[1,)"s + value + "]")),
                  {"tensor \"w\": shape holds non-negative integers, found "});
    check_refused(file_of(entry(R"("data_offsets":[0,)"s + value + "]")),
                  {"tensor \"w\": data_offsets hold non-negative integers, found "});
  }
  check_refused(file_of(entry(R"("shape":[1e999])")),
                {"tensor \"w\": shape holds non-negative integers, found 1e999"});
  for (const char* offsets : {"[]", "[0]", "[0,0,0]"}) {
    check_refused(file_of(entry(R"("dtype":"U8","shape":[0],"data_offsets":)"s + offsets)),
                  {"tensor \"w\": data_offsets must be [begin, end]"});
  }
}

TEST_CASE("safetensors: metadata must map text to text", "[safetensors]") {
  for (const char* value : {"null", "true", "4", "-4", "4.5", "[]", "{}"}) {
    check_refused(file_of(R"({"__metadata__":{"k":)"s + value + "}}"),
                  {"__metadata__: \"k\" must be a string, found "});
  }
  check_refused(file_of(R"({"__metadata__":"text"})"),
                {"__metadata__: expected an object, found a string"});
  check_refused(file_of(R"({"__metadata__":null})"),
                {"__metadata__: expected an object, found null"});
}

TEST_CASE("safetensors: nesting is refused at the first bracket that is too deep",
          "[safetensors]") {
  const std::string deep(1'000'000, '[');
  check_refused(file_of("{\"w\":" + deep + "}"), {"tensor \"w\": expected an object"});
  check_refused(file_of("{\"w\":{\"shape\":" + deep + "}"), {"tensor \"w\": shape holds"});
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  check_refused(file_of(objects + "}"), {"tensor \"a\": unknown field \"a\""});
}

TEST_CASE("safetensors: shapes that overflow are refused", "[safetensors]") {
  const auto shaped = [](const std::string& dtype, const std::string& shape) {
    return file_of(
        entry("\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[0,0]"));
  };
  // 2^32 · 2^32 wraps to 0 in 64 bits, and so does 2^61 · 8: unchecked, the shape would fit no
  // data.
  check_refused(shaped("U8", "[4294967296,4294967296]"), {"tensor \"w\": shape", "overflows"});
  check_refused(shaped("F64", "[2305843009213693952]"), {"tensor \"w\": shape", "overflows"});
  check_refused(shaped("U8", "[9223372036854775808]"), {"tensor \"w\": shape overflows"});
  check_refused(shaped("U8", "[18446744073709551615]"), {"tensor \"w\": shape overflows"});
  check_refused(shaped("U8", "[4294967296,4294967296,0]"), {"tensor \"w\": shape", "overflows"});
  check_refused(shaped("U8", "[0,4294967296,4294967296]"), {"tensor \"w\": shape", "overflows"});
}

TEST_CASE("safetensors: offsets that do not fit are refused", "[safetensors]") {
  const auto placed = [](const std::string& offsets, std::size_t data_bytes) {
    return zeros_file(entry(R"("dtype":"F32","shape":[2,3],"data_offsets":)" + offsets),
                      data_bytes);
  };
  CHECK(SafeTensors::parse(placed("[0,24]", 24)).size() == 1);
  check_refused(placed("[24,0]", 24), {"tensor \"w\": data_offsets [24, 0] begin after their end"});
  check_refused(placed("[0,24]", 23), {"tensor \"w\": data_offsets [0, 24] reach beyond the 23"});
  const std::string too_far = sizeof(std::size_t) == 8 ? "reach beyond the 24" : "offset overflows";
  check_refused(placed("[0,18446744073709551615]", 24), {"tensor \"w\"", too_far});
  check_refused(placed("[18446744073709551615,18446744073709551615]", 24),
                {"tensor \"w\"", too_far});
  check_refused(placed("[0,20]", 20),
                {"tensor \"w\": data_offsets [0, 20] hold 20 bytes, F32 of shape [2, 3] needs 24"});
  check_refused(placed("[0,28]", 28), {"tensor \"w\"", "hold 28 bytes", "needs 24"});
}

TEST_CASE("safetensors: holes, overlaps and trailing bytes are refused", "[safetensors]") {
  const auto two = [](const std::string& first, const std::string& second, std::size_t bytes) {
    const std::string fields = R"({"dtype":"U8","shape":[4],"data_offsets":)";
    return zeros_file("{\"v\":" + fields + first + "},\"w\":" + fields + second + "}}", bytes);
  };
  CHECK(SafeTensors::parse(two("[4,8]", "[0,4]", 8)).size() == 2);
  check_refused(two("[0,4]", "[5,9]", 9), {"tensor \"w\": data_offsets [5, 9] leave a hole after"});
  check_refused(two("[1,5]", "[5,9]", 9), {"tensor \"v\": data_offsets [1, 5] leave a hole after"});
  check_refused(two("[0,4]", "[3,7]", 7), {"tensor \"w\": data_offsets [3, 7] overlap"});
  check_refused(two("[0,4]", "[0,4]", 4), {"tensor \"w\": data_offsets [0, 4] overlap"});
  check_refused(two("[4,8]", "[0,4]", 11), {"last tensor \"v\": 3 trailing bytes"});
  check_refused(file_of("{}", "x"), {"no tensors: 1 trailing bytes"});
  // An empty tensor inside another one, rather than between two.
  check_refused(zeros_file(R"({"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                           R"("w":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                           4),
                {"tensor \"w\": data_offsets [2, 2] overlap"});
}

TEST_CASE("safetensors: every truncation and every added byte is refused", "[safetensors]") {
  const Bytes whole = rich_file();
  REQUIRE(sum_of_bytes(SafeTensors::parse(whole)) > 0);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    // The allocation has exactly this length, so that a sanitizer detects any read beyond it.
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    INFO("the first " << length << " of " << whole.size() << " bytes");
    CHECK_THROWS_AS(SafeTensors::view(part), SafeTensorsError);
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  check_refused(longer, {"1 trailing bytes"});
}

TEST_CASE("safetensors: a corrupt header is refused or stays within the buffer", "[safetensors]") {
  const Bytes whole = rich_file();
  const std::size_t header_end =
      8 + std::to_integer<std::size_t>(whole[0]) + 256 * std::to_integer<std::size_t>(whole[1]);
  std::mt19937 random(20240607);
  int refused = 0;
  int accepted = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    Bytes corrupt = whole;
    corrupt[random() % header_end] = static_cast<std::byte>(random() % 256);
    try {
      sum_of_bytes(SafeTensors::view(corrupt));
      ++accepted;
    } catch (const SafeTensorsError&) {
      ++refused;  // anything else thrown fails the test
    }
  }
  CHECK(refused > 4000);
  CHECK(accepted > 0);  // changes in a name or in the metadata
}

TEST_CASE("safetensors: the writer's bytes do not depend on the order of calls", "[safetensors]") {
  SafeTensorsWriter forward;
  forward.add("a", 1.0f);
  forward.add("b", 2.0);
  forward.add("c", 3.0f);
  forward.metadata("x", "1");
  forward.metadata("y", "2");
  SafeTensorsWriter backward;
  backward.metadata("y", "2");
  backward.metadata("x", "1");
  backward.add("c", 3.0f);
  backward.add("b", 2.0);
  backward.add("a", 1.0f);
  CHECK(forward.bytes() == backward.bytes());

  const Bytes bytes = forward.bytes();
  const auto file = SafeTensors::view(bytes);
  CHECK(file.info("b").begin == 0);  // the widest first, so that each is aligned
  CHECK(file.info("a").begin == 8);
  CHECK(file.info("c").begin == 12);
  CHECK((file.data("b").data() - bytes.data()) % 8 == 0);
  CHECK(SafeTensors::parse(SafeTensorsWriter().bytes()).size() == 0);
}

TEST_CASE("safetensors: the header is padded to the next multiple of 8 bytes", "[safetensors]") {
  CHECK(SafeTensorsWriter().bytes() == file_of("{}      "));
  for (std::size_t length = 1; length <= 8; ++length) {
    SafeTensorsWriter writer;
    writer.add(std::string(length, 'w'), 1.0f);
    const Bytes bytes = writer.bytes();
    const auto header = bytes.begin() + 8, data = bytes.end() - 4;
    const auto brace =
        std::find(std::reverse_iterator(data), std::reverse_iterator(header), std::byte('}'));
    const auto unpadded = brace.base() - header;
    CHECK(data - header == (unpadded + 7) / 8 * 8);
  }
}

TEST_CASE("safetensors: the writer refuses names and shapes that no reader accepts",
          "[safetensors]") {
  SafeTensorsWriter writer;
  writer.add("w", 1.0f);
  const Bytes before = writer.bytes();
  check_error([&] { writer.add("w", 2.0); }, {"tensor \"w\": added twice"});
  check_error([&] { writer.add("__metadata__", 2.0); }, {"\"__metadata__\": the name is reserved"});
  check_error([&] { writer.add("\xff", 2.0); }, {"not valid UTF-8"});
  check_error(
      [&] {
        writer.add("v", {2, 2}, std::vector<float>(3));
      },
      {"tensor \"v\": 3 values do not fill shape [2, 2]"});
  check_error([&] { writer.add("v", {-1}, std::vector<float>(1)); }, {"do not fill shape [-1]"});
  check_error([&] { writer.add("v", std::numeric_limits<std::uint64_t>::max()); },
              {"tensor \"v\": element beyond the range of I64"});
  check_error([&] { writer.add("v", fw::io::Shape(65, 1), std::vector<float>(1)); },
              {"tensor \"v\": more than 64 axes"});
  check_error([&] { writer.metadata("k", "\xff"); }, {"metadata \"k\": not valid UTF-8"});
  CHECK(writer.bytes() == before);
  writer.metadata("k", "1");
  check_error([&] { writer.metadata("k", "2"); }, {"metadata \"k\": added twice"});
  CHECK(SafeTensors::parse(writer.bytes()).metadata().at("k") == "1");
  writer.add("v", fw::io::Shape(64, 1), std::vector<float>(1));
  for (int i = 1; i < 4096; ++i) writer.metadata("k" + std::to_string(i), "");
  check_error([&] { writer.metadata("l", ""); }, {"metadata \"l\": more than 4096 entries"});
  CHECK(SafeTensors::parse(writer.bytes()).metadata().size() == 4096);
}

TEST_CASE("safetensors: files are written completely or not at all", "[safetensors]") {
  const TemporaryFolder directory;
  const auto path = directory / "model.safetensors";
  SafeTensorsWriter writer;
  writer.add("w", 1.0f);
  writer.write(path);
  writer.add("v", 2.0f);
  writer.write(path);  // replaces the file
  CHECK(SafeTensors::read(path).names() == std::vector<std::string>{"v", "w"});
  CHECK(directory.entries().size() == 1);

  // The rename fails because of a directory with this name. The temporary file is removed.
  std::filesystem::create_directories(directory / "taken" / "inside");
  check_error([&] { writer.write(directory / "taken"); }, {"taken", "cannot be written"});
  CHECK(directory.entries().size() == 2);
  check_error([&] { writer.write(directory / "absent" / "model"); },
              {"model", "cannot be written: No such file"});
}

TEST_CASE("safetensors: errors of a file begin with its path", "[safetensors]") {
  const TemporaryFolder directory;
  const auto path = directory / "broken.safetensors";
  std::ofstream(path) << "too short";
  check_error([&] { SafeTensors::read(path); }, {path.string() + ": header of"});
  check_error([&] { SafeTensors::read(directory / "absent"); }, {"absent: "});
  check_error([&] { SafeTensors::read(directory / "."); }, {": "});
}

TEST_CASE("safetensors: a file of the PyTorch ecosystem is read", "[safetensors]") {
  const auto file = SafeTensors::read(data_directory() / "pytorch_linear.safetensors");
  CHECK(file.metadata().at("about").find("torch") != std::string::npos);
  CHECK(file.dtype("head.weight") == DType::BF16);
  CHECK(file.dtype("head_f16.weight") == DType::F16);
  CHECK(file.shape("ffn.up.weight") == Shape{24, 12});
  // The reference is PyTorch's conversion of its 16-bit floats, bit for bit.
  CHECK(file.values<float>("head.weight") == file.values<float>("head.expected"));
  CHECK(file.values<float>("head_f16.weight") == file.values<float>("head_f16.expected"));

  // The block, one token a column. Names and orientation of the weights are PyTorch's.
  const auto vector = [&](const char* name) { return Eigen::VectorXd(file.matrix<double>(name)); };
  const Eigen::MatrixXd input = file.matrix<double>("input").transpose();
  Eigen::MatrixXd normed = input.rowwise() - input.colwise().mean();
  const Eigen::RowVectorXd variance = normed.array().square().colwise().mean();
  normed.array().rowwise() /= (variance.array() + 1e-5).sqrt();
  normed = (vector("norm.weight").asDiagonal() * normed).colwise() + vector("norm.bias");
  Eigen::MatrixXd hidden =
      (file.matrix<double>("ffn.up.weight") * normed).colwise() + vector("ffn.up.bias");
  hidden = hidden.unaryExpr([](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  const Eigen::MatrixXd output =
      input +
      ((file.matrix<double>("ffn.down.weight") * hidden).colwise() + vector("ffn.down.bias"));
  const Eigen::MatrixXd expected = file.matrix<double>("output").transpose();
  CHECK(largest_entry(output - expected) < 1e-6);
}
