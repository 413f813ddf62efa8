#pragma once

#include <Eigen/Core>
#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fastweights/core/record.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// \file
/// Type-erased arrays and numbers of a record. An `Object` is any member; a `Leaf` is an array or a
/// number. They keep compile times low: a visitor is one ordinary function, and a record type adds
/// a table of functions instead of an instance of every visitor.

namespace fw::inline FASTWEIGHTS_ABI::detail {

using Eigen::Index;

enum class ScalarKind : std::uint8_t {
  float32,
  float64,
  complex128,
  float16,
  bfloat16,
  integer,  // of any width
  other
};

template <class S> constexpr ScalarKind scalar_kind() {
  if constexpr (std::is_same_v<S, float>) return ScalarKind::float32;
  if constexpr (std::is_same_v<S, double>) return ScalarKind::float64;
  if constexpr (std::is_same_v<S, std::complex<double>>) return ScalarKind::complex128;
  if constexpr (std::is_same_v<S, Eigen::half>) return ScalarKind::float16;
  if constexpr (std::is_same_v<S, Eigen::bfloat16>) return ScalarKind::bfloat16;
  if constexpr (std::is_integral_v<S>) return ScalarKind::integer;
  return ScalarKind::other;
}

/// An Eigen matrix, or a number (1×1). Its entries are contiguous.
struct Leaf {
  void* data = nullptr;
  Index rows = 1, cols = 1;
  ScalarKind scalar = ScalarKind::other;
  std::size_t width = 0;   // bytes of a scalar
  bool is_trivial = true;  // the bytes of a scalar are its value
  bool is_signed = true;
  bool is_bool = false;
  bool is_array = false;   // a number otherwise
  bool is_column = false;  // by its type
  bool is_row = false;     // by its type
  bool is_row_major = false;
  void* growing = nullptr;  // the array, if its record says `columns_grow`
  Leaf (*with_columns)(void* growing, Index columns) = nullptr;

  /// True if it may get more columns: its number of columns is part of the state then.
  bool grows() const { return growing != nullptr; }
  /// Gives an array that grows so many columns; new ones are 0.
  void resize(Index columns) {
    if (columns != cols) *this = with_columns(growing, columns);
  }

  Index size() const { return rows * cols; }
  bool is_vector() const { return is_column || is_row; }

  /// The storage index of entry i in row-major order.
  Index from_row_major(Index i) const { return is_row_major ? i : i % cols * rows + i / cols; }

  void* entry(Index i) const { return static_cast<std::byte*>(data) + i * Index(width); }

  /// Sets entry i in storage order. Returns false if a finite x overflows the entry's type.
  bool store(Index i, double x) const;

  /// Reads and writes integers. Return false if the number does not fit.
  bool load_integer(Index i, std::int64_t& x) const;
  bool store_integer(Index i, std::int64_t x) const;

  /// All entries in storage order. S must be the type that `scalar` names.
  template <class S> auto entries() const {
    return Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>(static_cast<S*>(data), size());
  }
};

struct ObjectType;

/// A member of a record, or a record itself.
struct Object {
  std::string_view name;
  void* address = nullptr;
  const ObjectType* type = nullptr;
};

/// Access to the parts of an object. All three are null for a type that is neither record, list nor
/// leaf.
struct ObjectType {
  std::size_t (*count)(const void*) = nullptr;   // members of a record, elements of a list
  Object (*part)(void*, std::size_t) = nullptr;  // one of these; elements of a list have no name
  Leaf (*leaf)(void*) = nullptr;
};

/// A record whose members are known only at run time: `part_count()`, and `part(i)` with a name.
template <class T>
concept DynamicRecord = requires(T& record) {
  { record.part_count() } -> std::same_as<std::size_t>;
  { record.part(std::size_t()) } -> std::same_as<Object>;
};

/// A record, whose members may be known only at run time, as those of an AnyState.
template <class T>
concept AnyRecord = Record<T> || DynamicRecord<T>;

/// True if T is a std::vector of records, whose members may be known only at run time.
template <class T> inline constexpr bool is_object_list = is_record_list<T>;
template <DynamicRecord R, class A> inline constexpr bool is_object_list<std::vector<R, A>> = true;

template <class T> inline constexpr bool is_array = std::is_base_of_v<Eigen::PlainObjectBase<T>, T>;
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || scalar_kind<T>() != ScalarKind::other;

template <class S> Leaf leaf_of_scalar(void* data, Index rows = 1, Index cols = 1) {
  Leaf leaf;
  leaf.data = data;
  leaf.rows = rows;
  leaf.cols = cols;
  leaf.scalar = scalar_kind<S>();
  leaf.width = sizeof(S);
  leaf.is_trivial = std::is_trivially_copyable_v<S>;
  leaf.is_signed = !std::is_unsigned_v<S>;
  leaf.is_bool = std::is_same_v<S, bool>;
  return leaf;
}

template <class T> Leaf leaf_of(void* address) {
  if constexpr (is_array<T>) {
    T& array = *static_cast<T*>(address);
    Leaf leaf = leaf_of_scalar<typename T::Scalar>(array.data(), array.rows(), array.cols());
    leaf.is_array = true;
    leaf.is_column = T::ColsAtCompileTime == 1;
    leaf.is_row = T::RowsAtCompileTime == 1 && T::ColsAtCompileTime != 1;
    leaf.is_row_major = bool(T::IsRowMajor);
    return leaf;
  } else {
    return leaf_of_scalar<T>(address);
  }
}

/// Gives an array so many columns; new ones are 0.
template <class T> void resize_columns(T& array, Index columns) {
  const Index before = array.cols();
  array.conservativeResize(Eigen::NoChange, columns);
  if (columns > before) array.rightCols(columns - before).setZero();
}

// An array that may get more columns, of a record with `columns_grow`.
template <class T> Leaf growing_leaf_of(void* address) {
  Leaf leaf = leaf_of<T>(address);
  leaf.growing = address;
  leaf.with_columns = [](void* growing, Index columns) {
    resize_columns(*static_cast<T*>(growing), columns);
    return growing_leaf_of<T>(growing);
  };
  return leaf;
}

template <class R> Object member_of(void* record, std::size_t i);
template <class List> Object element_of(void* list, std::size_t i);

template <class T> constexpr ObjectType make_object_type() {
  if constexpr (DynamicRecord<T>)
    return {[](const void* record) { return static_cast<const T*>(record)->part_count(); },
            [](void* record, std::size_t i) { return static_cast<T*>(record)->part(i); }, nullptr};
  else if constexpr (Record<T>)
    return {[](const void*) { return member_count<T>; }, &member_of<T>, nullptr};
  else if constexpr (is_object_list<T>)
    return {[](const void* list) { return static_cast<const T*>(list)->size(); }, &element_of<T>,
            nullptr};
  else if constexpr (is_array<T> || is_number<T>)
    return {nullptr, nullptr, &leaf_of<T>};
  else
    return {};
}

template <class T> inline constexpr ObjectType object_type = make_object_type<T>();

/// Discards const: pass a const object only to visitors that do not write.
template <class T> Object object(T& value, std::string_view name = {}) {
  using Plain = std::remove_const_t<T>;
  return {name, const_cast<Plain*>(std::addressof(value)), &object_type<Plain>};
}

/// A record whose arrays may get more columns, as those of a cache of tokens.
template <class R>
concept GrowingRecord = requires {
  requires R::columns_grow;
};

template <class T> inline constexpr ObjectType growing_type{nullptr, nullptr, &growing_leaf_of<T>};

template <class R, class T> Object member_object(T& member, std::string_view name) {
  Object part = object(member, name);
  if constexpr (GrowingRecord<R> && is_array<T>) part.type = &growing_type<T>;
  return part;
}

template <class R> Object member_of(void* record, std::size_t i) {
  constexpr std::size_t n = member_count<R>;
  if constexpr (n > 0) {
    auto& r = *static_cast<R*>(record);
    const std::array<Object, n> parts = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<Object, n>{member_object<R>(std::get<I>(members(r)), R::names[I])...};
    }
    (std::make_index_sequence<n>{});
    return parts[i];
  } else {
    return {};
  }
}

template <class List> Object element_of(void* list, std::size_t i) {
  return object((*static_cast<List*>(list))[i]);
}

/// The position of a leaf in its record; text() returns it as "blocks.0.norm.weight".
struct LeafPath {
  const LeafPath* parent = nullptr;
  std::string_view name;
  std::size_t index = 0;  // in a list, where `name` is empty

  std::string text() const;
};

/// A reference to a function of the leaves at one path, one leaf per visited record.
class LeafVisitor {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, LeafVisitor>)
      LeafVisitor(F&& f)  // NOLINT: implicit by design
      : context_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* context, const Leaf* leaves, const LeafPath& path) {
          (*static_cast<std::remove_reference_t<F>*>(context))(leaves, path);
        }) {}
  void operator()(const Leaf* leaves, const LeafPath& path) const { call_(context_, leaves, path); }

 private:
  void* context_;
  void (*call_)(void*, const Leaf*, const LeafPath&);
};

/// Calls visit(leaves, path) for every leaf of `count` objects in lockstep, at most 4. The objects
/// must have the same members, and lists of the same lengths. Does not allocate.
void visit_leaves(const Object* objects, std::size_t count, const LeafVisitor& visit,
                  const LeafPath& path = {});

template <class... Records> void visit_all_leaves(const LeafVisitor& visit, Records&... records) {
  static_assert(sizeof...(Records) <= 4);
  const std::array<Object, sizeof...(Records)> objects{object(records)...};
  visit_leaves(objects.data(), objects.size(), visit);
}

/// Gives the arrays of `object` that grow as many columns as those of `other`, which has the same
/// members.
void set_columns(const Object& object, const Object& other);

/// Calls move(part) for the parts of a message with the numbers of a record, by which they are sent
/// or received: the columns of every array that grows, which it then gets, and at last the record.
template <class Move> void move_record(const Object& record, const Move& move) {
  visit_leaves(&record, 1, [&](const Leaf* leaf, const LeafPath&) {
    if (!leaf->grows()) return;
    Index columns = leaf->cols;
    move(object(columns));
    Leaf(*leaf).resize(columns);
  });
  move(record);
}

/// True if two objects have lists of the same lengths and arrays of the same shapes; with
/// `any_growth`, arrays that grow may have other columns.
bool same_shapes(const Object& a, const Object& b, bool any_growth = false);

/// True if two objects of the same type have the same shapes and equal numbers.
bool equal(const Object& a, const Object& b);

/// True if all entries of the arrays of an object are 0.
bool is_zero(const Object& object);

/// Copies the numbers of an object into one with the same members and shapes, whatever the scalars
/// are. Arrays that grow get the columns of those in `from`. A complex number loses its imaginary
/// part in a real one.
void convert(const Object& from, const Object& to);

}  // namespace fw::detail

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/leaves.hpp>
#endif
