#include "arrays.hpp"

#include <cstring>
#include <new>

namespace fw::python {

namespace {

constexpr std::align_val_t alignment{64};  // a cache line

[[noreturn]] void throw_value(const Expected& e, const std::string& problem) {
  throw nb::value_error(
      (std::string(e.owner) + ": " + std::string(e.name) + " " + problem).c_str());
}

// "[batch, time, 8, 64]", with numbers for what is known.
std::string expected_text(const Expected& e) {
  std::string text = "[" + (e.batch < 0 ? "batch" : std::to_string(e.batch));
  if (e.has_time) text += ", " + (e.time < 0 ? "time" : std::to_string(e.time));
  text += ", " + std::to_string(e.heads);
  if (!e.is_number) text += ", " + std::to_string(e.rows);
  return text + "]";
}

bool fits(const nb::ndarray<nb::ro>& a, const Expected& e) {
  const auto is = [&](std::size_t axis, Index size) {
    return size < 0 || static_cast<Index>(a.shape(axis)) == size;
  };
  const std::size_t heads_axis = e.has_time ? 2 : 1;
  return a.ndim() == heads_axis + (e.is_number ? 1 : 2) && is(0, e.batch) &&
         (!e.has_time || is(1, e.time)) && is(heads_axis, e.heads) &&
         (e.is_number || is(heads_axis + 1, e.rows));
}

}  // namespace

std::vector<std::size_t> shape_of(const nb::ndarray<nb::ro>& array) {
  std::vector<std::size_t> shape(array.ndim());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = array.shape(i);
  return shape;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string dtype_text(DType dtype) {
  const char* kinds[] = {"int", "uint", "float", "", "bfloat", "complex", "bool"};
  if (dtype.code >= std::size(kinds)) return "of another type";
  return kinds[dtype.code] + std::to_string(dtype.bits);
}

Input read_input(nb::handle argument, const Expected& e) {
  Input input{read_array(argument, e.owner, e.name, e.dtype), {}, 0, 1};
  const auto& a = input.array;
  if (!fits(a, e))
    throw_value(e, "has shape " + shape_text(shape_of(a)) + ", expected " + expected_text(e));
  const std::size_t heads_axis = e.has_time ? 2 : 1;
  input.batch = static_cast<Index>(a.shape(0));
  if (e.has_time) input.time = static_cast<Index>(a.shape(1));
  if (!e.is_number && e.rows > 1 && a.size() > 0 && a.stride(heads_axis + 1) != 1)
    throw_value(
        e,
        "has entries of a token that are not contiguous, expected a stride of 1 in the last axis: "
        "pass a contiguous copy");
  input.view = {const_cast<void*>(a.data()), a.stride(0), e.has_time ? a.stride(1) : e.rows,
                a.stride(heads_axis)};
  // Eigen takes a stride of 0 for no stride.
  if (input.time > 1 && input.view.time_stride < 1)
    throw_value(e, "has stride " + std::to_string(input.view.time_stride) +
                       " over time, expected a positive one: pass a contiguous copy");
  return input;
}

Result::Result(DType type, std::vector<std::size_t> sizes) : dtype(type), shape(std::move(sizes)) {
  strides.resize(shape.size());
  std::size_t bytes = type.bits / 8;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(bytes / (type.bits / 8));
    if (__builtin_mul_overflow(bytes, shape[i], &bytes)) throw std::bad_alloc();
  }
  data = ::operator new(bytes + 1, alignment);
  std::memset(data, 0, bytes);
  owner = nb::capsule(data, [](void* p) noexcept { ::operator delete(p, alignment); });
}

nb::object Result::to_python(nb::handle like) const {
  const auto make = [&]<class Framework>() {
    return nb::cast(nb::ndarray<Framework>(data, shape.size(), shape.data(), owner, strides.data(),
                                           dtype, nb::device::cpu::value));
  };
  if (like.is_valid() && is_tensor(like)) return make.template operator()<nb::pytorch>();
  return make.template operator()<nb::numpy>();
}

std::vector<std::size_t> shape_of(const Expected& e) {
  const auto size = [](Index i) { return static_cast<std::size_t>(i); };
  std::vector<std::size_t> shape{size(e.batch)};
  if (e.has_time) shape.push_back(size(e.time));
  shape.push_back(size(e.heads));
  if (!e.is_number) shape.push_back(size(e.rows));
  return shape;
}

Result result_for(const Expected& e) {
  Result result(e.dtype, shape_of(e));
  if (e.is_number && e.has_time) result.strides = {e.heads * e.time, 1, e.time};
  return result;
}

Sequences view_of(const Result& r, const Expected& e) {
  return {r.data, r.strides[0], e.has_time ? r.strides[1] : e.rows, r.strides[e.has_time ? 2 : 1]};
}

}  // namespace fw::python
