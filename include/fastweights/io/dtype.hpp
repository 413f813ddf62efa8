/// Element types of a safetensors file, and their conversion to and from C++ scalars.
///
/// Bytes are little-endian on every machine. One rule for conversions:
///
/// - The same type is copied bit for bit, NaN payloads included.
/// - Another floating-point type of the file (F64, F32, F16, BF16) is converted to the target's,
///   rounded to nearest (F64 to 16 bits by way of float). NaN stays NaN.
/// - An integer type or BOOL is converted to any integer type.
/// - A value that the target cannot hold (a finite double beyond float's range, an integer beyond
///   int's) is an error. It is not wrapped and does not become an infinity.
/// - All else is an error: integers are not read as floating-point numbers, nor these as integers,
///   and 8-bit floats are not read as numbers at all.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fastweights/core/abi.hpp"
#include "fastweights/core/strict_math.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io {

/// The type of a tensor. Spelled as in the file, except Bool: BOOL is a macro on some systems.
enum class DType {
  Bool,         ///< one byte, 0 or 1
  U8,           ///< unsigned, 8 bits
  I8,           ///< signed, 8 bits
  F8_E4M3,      ///< 8 bits: 4 of the exponent, 3 of the fraction
  F8_E5M2,      ///< 8 bits: 5 of the exponent, 2 of the fraction
  F8_E8M0,      ///< 8 bits of the exponent
  F8_E4M3FNUZ,  ///< as F8_E4M3, the exponent bias larger by 1, no −0
  F8_E5M2FNUZ,  ///< as F8_E5M2, the exponent bias larger by 1, no −0, no infinity
  U16,          ///< unsigned, 16 bits
  I16,          ///< signed, 16 bits
  F16,          ///< IEEE, 16 bits
  BF16,         ///< the upper half of an F32
  U32,          ///< unsigned, 32 bits
  I32,          ///< signed, 32 bits
  F32,          ///< IEEE, 32 bits
  U64,          ///< unsigned, 64 bits
  I64,          ///< signed, 64 bits
  F64           ///< IEEE, 64 bits
};

/// Scalars that elements can be read as: float, double, Eigen's 16-bit types, and integers.
template <class S>
concept ReadableScalar = std::same_as<S, float> || std::same_as<S, double> ||
    std::same_as<S, Eigen::half> || std::same_as<S, Eigen::bfloat16> ||
    (std::integral<S>&& requires(S value) { std::in_range<S>(value); } && !std::same_as<S, bool> &&
     !std::same_as<S, char> && !std::same_as<S, wchar_t> && !std::same_as<S, char8_t> &&
     !std::same_as<S, char16_t> && !std::same_as<S, char32_t>);

/// Scalars that can be written: the same ones. std::int8_t becomes I8, other integers I64.
template <class S>
concept WritableScalar = ReadableScalar<S>;

namespace detail {

struct DTypeRow {
  DType type;
  std::string_view name;
  std::size_t width;
};

inline constexpr std::array<DTypeRow, 18> dtype_rows{{{DType::Bool, "BOOL", 1},
                                                      {DType::U8, "U8", 1},
                                                      {DType::I8, "I8", 1},
                                                      {DType::F8_E4M3, "F8_E4M3", 1},
                                                      {DType::F8_E5M2, "F8_E5M2", 1},
                                                      {DType::F8_E8M0, "F8_E8M0", 1},
                                                      {DType::F8_E4M3FNUZ, "F8_E4M3FNUZ", 1},
                                                      {DType::F8_E5M2FNUZ, "F8_E5M2FNUZ", 1},
                                                      {DType::U16, "U16", 2},
                                                      {DType::I16, "I16", 2},
                                                      {DType::F16, "F16", 2},
                                                      {DType::BF16, "BF16", 2},
                                                      {DType::U32, "U32", 4},
                                                      {DType::I32, "I32", 4},
                                                      {DType::F32, "F32", 4},
                                                      {DType::U64, "U64", 8},
                                                      {DType::I64, "I64", 8},
                                                      {DType::F64, "F64", 8}}};

// The enumerator's value is the index of its row.
static_assert([] {
  for (std::size_t i = 0; i < dtype_rows.size(); ++i)
    if (static_cast<std::size_t>(dtype_rows[i].type) != i) return false;
  return dtype_rows.back().type == DType::F64;
}());

}  // namespace detail

/// The name a file uses, such as "BF16".
constexpr std::string_view name_of(DType type) {
  return detail::dtype_rows[static_cast<std::size_t>(type)].name;
}

/// The size of an element in bytes.
constexpr std::size_t width_of(DType type) {
  return detail::dtype_rows[static_cast<std::size_t>(type)].width;
}

/// The type with that name, or nothing.
constexpr std::optional<DType> dtype_named(std::string_view name) {
  for (const detail::DTypeRow& row : detail::dtype_rows)
    if (row.name == name) return row.type;
  return std::nullopt;
}

/// The type a scalar is written as.
template <WritableScalar S> constexpr DType dtype_of() {
  if constexpr (std::same_as<S, float>) return DType::F32;
  if constexpr (std::same_as<S, double>) return DType::F64;
  if constexpr (std::same_as<S, Eigen::half>) return DType::F16;
  if constexpr (std::same_as<S, Eigen::bfloat16>) return DType::BF16;
  if constexpr (std::same_as<S, std::int8_t>) return DType::I8;
  return DType::I64;
}

namespace detail {

/// Copies an element of `width` bytes between this machine's order and the file's. The order is a
/// parameter so that tests reach both.
template <std::endian order = std::endian::native>
void copy_element(const std::byte* from, std::size_t width, std::byte* to) {
  if constexpr (order == std::endian::little)
    std::memcpy(to, from, width);
  else
    std::reverse_copy(from, from + width, to);
}

template <class T, std::endian order = std::endian::native> T load_element(const std::byte* from) {
  std::array<std::byte, sizeof(T)> raw;
  copy_element<order>(from, sizeof(T), raw.data());
  return Eigen::numext::bit_cast<T>(raw);
}

template <std::endian order = std::endian::native, class T>
void store_element(T value, std::byte* to) {
  const auto raw = Eigen::numext::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  copy_element<order>(raw.data(), sizeof(T), to);
}

// Only float types are read as floats, and only integer types as integers. 8-bit floats cannot be
// read.
inline bool is_float(DType type) {
  return type == DType::F16 || type == DType::BF16 || type == DType::F32 || type == DType::F64;
}
inline bool is_integer(DType type) { return !is_float(type) && name_of(type)[0] != 'F'; }

/// An element of a floating-point tensor. Double holds each of them exactly.
inline double load_float(DType type, const std::byte* from) {
  switch (type) {
    case DType::F16:
      return static_cast<float>(load_element<Eigen::half>(from));
    case DType::BF16:
      return static_cast<float>(load_element<Eigen::bfloat16>(from));
    case DType::F32:
      return load_element<float>(from);
    default:
      return load_element<double>(from);
  }
}

/// An element of an integer tensor: its sign, and 64 bits in two's complement.
struct Integer {
  std::uint64_t bits;
  bool is_negative;

  template <std::integral S> bool fits() const {
    return is_negative ? std::in_range<S>(static_cast<std::int64_t>(bits)) : std::in_range<S>(bits);
  }
  std::string text() const {
    return is_negative ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
  }
};

inline Integer load_integer(DType type, const std::byte* from) {
  const auto load = [from]<class T>(T) {
    const T value = load_element<T>(from);
    return Integer{static_cast<std::uint64_t>(value), std::is_signed_v<T> && value < T(0)};
  };
  switch (type) {
    case DType::I8:
      return load(std::int8_t{});
    case DType::I16:
      return load(std::int16_t{});
    case DType::I32:
      return load(std::int32_t{});
    case DType::I64:
      return load(std::int64_t{});
    case DType::U16:
      return load(std::uint16_t{});
    case DType::U32:
      return load(std::uint32_t{});
    case DType::U64:
      return load(std::uint64_t{});
    default:
      return load(std::uint8_t{});
  }
}

}  // namespace detail
}  // namespace fw::io
