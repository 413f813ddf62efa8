#pragma once

#include <fastweights/core/leaves.hpp>
#include <memory>
#include <string>
#include <utility>

/// \file
/// Values of a memory that is chosen at run time: its state, the checkpoints of a scan, a segment
/// of composed writes. Each is a value: a copy is independent.

namespace fw::inline FASTWEIGHTS_ABI {

using Eigen::Index;

namespace detail {

// A value of a type that only its memory knows.
class ErasedValue {
 public:
  explicit ErasedValue(const void* tag) : type(tag) {}
  virtual ~ErasedValue() = default;
  virtual std::unique_ptr<ErasedValue> copy() const = 0;
  // Takes the numbers of a value of the same type; does not allocate if the sizes are equal.
  virtual void assign(const ErasedValue& other) = 0;
  // The members, or none.
  virtual Object object() = 0;

  const void* const type;  // of the value; no function, because every step asks
};

template <class T> inline constexpr char type_tag = 0;

template <class T> class ErasedValueOf final : public ErasedValue {
 public:
  explicit ErasedValueOf(T initial) : ErasedValue(&type_tag<T>), value(std::move(initial)) {}
  std::unique_ptr<ErasedValue> copy() const override {
    return std::make_unique<ErasedValueOf>(value);
  }
  void assign(const ErasedValue& other) override {
    value = static_cast<const ErasedValueOf&>(other).value;
  }
  Object object() override {
    if constexpr (Record<T>)
      return detail::object(value);
    else
      return {};
  }

  T value;
};

// A value that owns an ErasedValue, or nothing.
class AnyValue {
 public:
  AnyValue() = default;
  explicit AnyValue(std::unique_ptr<ErasedValue> value) : value_(std::move(value)) {}
  AnyValue(AnyValue&&) noexcept = default;
  AnyValue& operator=(AnyValue&&) noexcept = default;
  AnyValue(const AnyValue& other) : value_(other.value_ ? other.value_->copy() : nullptr) {}
  AnyValue& operator=(const AnyValue& other) {
    if (this == &other) return *this;
    if (value_ && other.value_ && value_->type == other.value_->type)
      value_->assign(*other.value_);
    else
      value_ = other.value_ ? other.value_->copy() : nullptr;
    return *this;
  }

  // The value as a T, or null if it is of another type.
  template <class T> T* get() {
    if (!value_ || value_->type != &type_tag<T>) return nullptr;
    return &static_cast<ErasedValueOf<T>&>(*value_).value;
  }
  template <class T> const T* get() const { return const_cast<AnyValue*>(this)->get<T>(); }

  const void* type() const { return value_ ? value_->type : nullptr; }
  Object object() const { return value_ ? value_->object() : Object{}; }

 private:
  std::unique_ptr<ErasedValue> value_;
};

}  // namespace detail

/// The state of an AnyMemory<S>: a value. Copying into a state of the same sizes does not allocate.
/// It is a record whose members are known at run time, so it is saved and loaded as others are:
///
///     fw::io::add_state(writer, state, "stream");
///     fw::io::load_state(memory, state, file, "stream");
template <class S> class AnyState {
 public:
  /// No state.
  AnyState() = default;
  /// Takes the state of a memory whose type is known, StateOf<M>.
  template <Record T>
  explicit AnyState(T state)
      : value_(std::make_unique<detail::ErasedValueOf<T>>(std::move(state))) {}
  /// True if it is the state of a memory.
  explicit operator bool() const { return value_.type() != nullptr; }
  /// True if both are states of the same type with the same sizes and equal numbers.
  friend bool operator==(const AnyState& a, const AnyState& b) {
    return a.value_.type() == b.value_.type() && (!a || detail::equal(a.object(), b.object()));
  }

  /// The state as StateOf<M> of a memory, or null if it is of another type.
  template <Record T> T* get() { return value_.get<T>(); }
  /// The value, to look at.
  template <Record T> const T* get() const { return value_.get<T>(); }

  /// The number of members: a record whose members are known at run time (see core/leaves.hpp).
  std::size_t part_count() const { return *this ? object().type->count(object().address) : 0; }
  /// Member i.
  detail::Object part(std::size_t i) { return object().type->part(object().address, i); }
  /// Names the type of the record that the state holds; null if there is none.
  const void* type() const { return value_.type(); }
  /// The record that the state holds.
  detail::Object object() const { return value_.object(); }

 private:
  detail::AnyValue value_;
};

/// Store of a scan of an AnyMemory<S> for its backward pass; see Checkpoints. Reuse the object
/// to allocate only once.
template <class S> class AnyCheckpoints {
 public:
  Index requested_interval = 0;  ///< C, set by the user; 0 for √T
  detail::AnyValue value;        ///< the Checkpoints of the memory that filled it
};

/// Composed writes of an AnyMemory<S> that merges, which can be applied to any state.
template <class S> class AnySegment {
 public:
  detail::AnyValue value;  ///< the Segment of the memory that made it
};

}  // namespace fw
