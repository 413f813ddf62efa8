#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/implementation/inline.hpp>
#include <fastweights/core/leaves.hpp>
#include <stdexcept>

/// \file
/// The functions of core/leaves.hpp.

namespace fw::inline FASTWEIGHTS_ABI::detail {

bool is_finite(const double& x);  // core/finite.hpp

FASTWEIGHTS_INLINE bool Leaf::store(Index i, double x) const {
  const auto put = [&]<class S>(S* to) {
    *to = static_cast<S>(x);
    return !is_finite(x) || is_finite(static_cast<double>(*to));
  };
  if (scalar == ScalarKind::float32) return put(static_cast<float*>(entry(i)));
  if (scalar == ScalarKind::float64) return put(static_cast<double*>(entry(i)));
  if (scalar == ScalarKind::float16) return put(static_cast<Eigen::half*>(entry(i)));
  if (scalar == ScalarKind::bfloat16) return put(static_cast<Eigen::bfloat16*>(entry(i)));
  throw_invalid({"fastweights: this member does not hold real numbers"});
}

// Calls f with a pointer to entry i, an integer of its type.
template <class F> bool visit_integer(const Leaf& leaf, Index i, const F& f) {
  switch (static_cast<int>(leaf.width) * (leaf.is_signed ? 1 : -1)) {
    case 8:
      return f(static_cast<std::int64_t*>(leaf.entry(i)));
    case 4:
      return f(static_cast<std::int32_t*>(leaf.entry(i)));
    case 2:
      return f(static_cast<std::int16_t*>(leaf.entry(i)));
    case 1:
      return f(static_cast<std::int8_t*>(leaf.entry(i)));
    case -8:
      return f(static_cast<std::uint64_t*>(leaf.entry(i)));
    case -4:
      return f(static_cast<std::uint32_t*>(leaf.entry(i)));
    case -2:
      return f(static_cast<std::uint16_t*>(leaf.entry(i)));
    default:
      return f(static_cast<std::uint8_t*>(leaf.entry(i)));
  }
}

FASTWEIGHTS_INLINE bool Leaf::load_integer(Index i, std::int64_t& x) const {
  return visit_integer(*this, i, [&](auto* at) {
    x = static_cast<std::int64_t>(*at);
    return std::in_range<std::int64_t>(*at);
  });
}

FASTWEIGHTS_INLINE bool Leaf::store_integer(Index i, std::int64_t x) const {
  if (is_bool) {
    if (x == 0 || x == 1) *static_cast<bool*>(entry(i)) = x == 1;
    return x == 0 || x == 1;
  }
  return visit_integer(*this, i, [&]<class T>(T* at) {
    if (std::in_range<T>(x)) *at = static_cast<T>(x);
    return std::in_range<T>(x);
  });
}

FASTWEIGHTS_INLINE std::string LeafPath::text() const {
  const std::string before = parent ? parent->text() : std::string();
  const std::string own = !parent || !name.empty() ? std::string(name) : std::to_string(index);
  return before.empty() ? own : before + "." + own;
}

FASTWEIGHTS_INLINE void visit_leaves(const Object* objects, std::size_t count,
                                     const LeafVisitor& visit, const LeafPath& path) {
  const ObjectType& type = *objects[0].type;
  if (type.leaf) {
    std::array<Leaf, 4> leaves;
    for (std::size_t k = 0; k < count; ++k) leaves[k] = objects[k].type->leaf(objects[k].address);
    visit(leaves.data(), path);
  } else if (type.count) {
    const std::size_t parts = type.count(objects[0].address);
    for (std::size_t i = 0; i < parts; ++i) {
      std::array<Object, 4> part;
      for (std::size_t k = 0; k < count; ++k)
        part[k] = objects[k].type->part(objects[k].address, i);
      visit_leaves(part.data(), count, visit, {&path, part[0].name, i});
    }
  }
}

FASTWEIGHTS_INLINE void set_columns(const Object& object, const Object& other) {
  const std::array<Object, 2> both{object, other};
  visit_leaves(both.data(), 2, [](const Leaf* leaves, const LeafPath&) {
    if (leaves[0].grows()) Leaf(leaves[0]).resize(leaves[1].cols);
  });
}

FASTWEIGHTS_INLINE bool same_shapes(const Object& a, const Object& b, bool any_growth) {
  if (a.type->leaf) {
    const Leaf x = a.type->leaf(a.address), y = b.type->leaf(b.address);
    return x.rows == y.rows && (x.cols == y.cols || (any_growth && x.grows() && y.grows()));
  }
  if (!a.type->count) return true;
  const std::size_t parts = a.type->count(a.address);
  if (parts != b.type->count(b.address)) return false;
  for (std::size_t i = 0; i < parts; ++i)
    if (!same_shapes(a.type->part(a.address, i), b.type->part(b.address, i), any_growth))
      return false;
  return true;
}

// An entry of any scalar but an integer.
inline std::complex<double> load_number(const Leaf& leaf, Index i) {
  const void* at = leaf.entry(i);
  switch (leaf.scalar) {
    case ScalarKind::float32:
      return static_cast<double>(*static_cast<const float*>(at));
    case ScalarKind::float64:
      return *static_cast<const double*>(at);
    case ScalarKind::complex128:
      return *static_cast<const std::complex<double>*>(at);
    case ScalarKind::float16:
      return static_cast<double>(*static_cast<const Eigen::half*>(at));
    case ScalarKind::bfloat16:
      return static_cast<double>(*static_cast<const Eigen::bfloat16*>(at));
    default:
      throw_invalid({"fastweights: this member does not hold numbers that are known"});
  }
}

FASTWEIGHTS_INLINE bool equal(const Object& a, const Object& b) {
  if (!same_shapes(a, b)) return false;
  bool all = true;
  const std::array<Object, 2> both{a, b};
  visit_leaves(both.data(), 2, [&](const Leaf* x, const LeafPath&) {
    for (Index i = 0; all && i < x[0].size(); ++i) {
      if (x[0].scalar != x[1].scalar) {
        all = false;
      } else if (x[0].scalar == ScalarKind::integer) {
        std::int64_t m = 0, n = 0;
        all = x[0].load_integer(i, m) && x[1].load_integer(i, n) && m == n;
      } else {
        all = load_number(x[0], i) == load_number(x[1], i);
      }
    }
  });
  return all;
}

FASTWEIGHTS_INLINE bool is_zero(const Object& object) {
  bool zero = true;
  visit_leaves(&object, 1, [&](const Leaf* leaf, const LeafPath&) {
    if (leaf->is_array)
      for (Index i = 0; zero && i < leaf->size(); ++i) zero = load_number(*leaf, i) == 0.0;
  });
  return zero;
}

FASTWEIGHTS_INLINE void convert(const Object& from, const Object& to) {
  set_columns(to, from);
  const std::array<Object, 2> both{to, from};
  visit_leaves(both.data(), 2, [](const Leaf* x, const LeafPath&) {
    for (Index i = 0; i < x[0].size(); ++i) {
      std::int64_t count = 0;
      if (x[0].scalar == ScalarKind::complex128)
        x[0].entries<std::complex<double>>()[i] = load_number(x[1], i);
      else if (x[0].scalar != ScalarKind::integer)
        x[0].store(i, load_number(x[1], i).real());
      else if (x[1].load_integer(i, count))
        x[0].store_integer(i, count);
    }
  });
}

}  // namespace fw::detail

#include <fastweights/core/finite.hpp>
