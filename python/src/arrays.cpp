#include "arrays.hpp"

#include <cstdint>
#include <cstring>
#include <new>

namespace fw::python {

namespace {

constexpr std::align_val_t alignment{64};  // a cache line

std::string type_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

[[noreturn]] void throw_type(std::string_view owner, std::string_view name,
                             const std::string& problem) {
  throw nb::type_error((std::string(owner) + ": " + std::string(name) + " " + problem).c_str());
}

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

// Whether the module is loaded, has the class, and `object` is an instance of it. The module may be
// half imported, or None in sys.modules.
bool is_instance_of(nb::handle object, const char* module_name, const char* class_name) {
  const auto module = nb::steal<nb::object>(PyImport_GetModule(nb::str(module_name).ptr()));
  if (!module.is_valid()) return PyErr_Clear(), false;
  const nb::object type = nb::getattr(module, class_name, nb::none());
  return PyType_Check(type.ptr()) && nb::isinstance(object, type);
}

bool is_tensor(nb::handle object) { return is_instance_of(object, "torch", "Tensor"); }

bool holds(nb::handle tensor, const char* property) {
  const nb::object value = tensor.attr(property);
  return nb::cast<bool>(PyCallable_Check(value.ptr()) ? nb::object(value()) : value);
}

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// What DLPack does not tell of a tensor, and another device.
void check_tensor(nb::handle tensor, std::string_view owner, std::string_view name) {
  if (holds(tensor, "requires_grad"))
    throw_type(owner, name,
               "is a tensor that requires a gradient, expected one that does not: use "
               "fastweights.torch.scan, or pass its detach()");
  if (!holds(tensor, "is_cpu"))
    throw_type(owner, name,
               "is on device " + text_of(tensor.attr("device")) + ", expected the CPU");
  if (holds(tensor, "is_neg"))
    throw_type(owner, name,
               "is a tensor whose entries are stored with the other sign, expected one that is "
               "resolved: pass its resolve_neg()");
}

// Tensors of FakeTensorMode, of zeros without memory and those whose storage is freed. A view of
// them has its offset as its address.
void check_storage(nb::handle argument, const nb::ndarray<nb::ro>& array, std::string_view owner,
                   std::string_view name) {
  if (array.size() == 0) return;
  auto address = reinterpret_cast<std::uintptr_t>(array.data());
  const std::size_t width = array.itemsize();
  if (address % width != 0)
    throw_type(owner, name,
               "is not aligned to its entries, expected an aligned array: pass a copy");
  if (is_tensor(argument))
    address -= width * nb::cast<std::size_t>(argument.attr("storage_offset")());
  if (address == 0)
    throw_type(owner, name, "has no memory, expected an array with its entries in memory");
}

// "is a Tensor of torch.float32 and layout torch.sparse_coo, which is no array of DLPack (…)"
std::string no_array_text(nb::handle argument) {
  std::string text = "is a " + type_text(argument);
  if (!nb::hasattr(argument, "dtype")) return text;
  text += " of " + text_of(argument.attr("dtype"));
  if (nb::hasattr(argument, "layout")) text += " and layout " + text_of(argument.attr("layout"));
  try {
    argument.attr("__dlpack__")();
  } catch (const nb::python_error& e) {
    text += ", which is no array of DLPack (" + text_of(e.value()) + ")";
  }
  return text;
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

nb::ndarray<nb::ro> read_array(nb::handle argument, std::string_view owner, std::string_view name,
                               DType dtype) {
  if (is_tensor(argument)) check_tensor(argument, owner, name);
  if (is_instance_of(argument, "numpy.ma", "MaskedArray"))
    throw_type(owner, name, "is a masked array, expected one without a mask: pass its filled()");
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(argument, array, false))
    throw_type(owner, name,
               no_array_text(argument) + ", expected an array of " + dtype_text(dtype));
  if (array.device_type() != nb::device::cpu::value)
    throw_type(
        owner, name,
        "is on device " + std::to_string(array.device_type()) + " of DLPack, expected the CPU");
  if (array.dtype() != dtype)
    throw_type(owner, name,
               "is of " + dtype_text(array.dtype()) + ", expected " + dtype_text(dtype));
  check_storage(argument, array, owner, name);
  return array;
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

Result result_for(const Expected& e) {
  const auto size = [](Index i) { return static_cast<std::size_t>(i); };
  std::vector<std::size_t> shape{size(e.batch)};
  if (e.has_time) shape.push_back(size(e.time));
  shape.push_back(size(e.heads));
  if (!e.is_number) shape.push_back(size(e.rows));
  Result result(e.dtype, std::move(shape));
  if (e.is_number && e.has_time) result.strides = {e.heads * e.time, 1, e.time};
  return result;
}

Sequences view_of(const Result& r, const Expected& e) {
  return {r.data, r.strides[0], e.has_time ? r.strides[1] : e.rows, r.strides[e.has_time ? 2 : 1]};
}

}  // namespace fw::python
