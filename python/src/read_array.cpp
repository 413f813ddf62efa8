#include <cstdint>

#include "arrays.hpp"

namespace fw::python {

namespace {

std::string type_text(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

[[noreturn]] void throw_type(std::string_view owner, std::string_view name,
                             const std::string& problem) {
  throw nb::type_error((std::string(owner) + ": " + std::string(name) + " " + problem).c_str());
}

// True if the module is loaded, has the class, and `object` is an instance of it. The module may be
// half imported, or None in sys.modules.
bool is_instance_of(nb::handle object, const char* module_name, const char* class_name) {
  const auto module = nb::steal<nb::object>(PyImport_GetModule(nb::str(module_name).ptr()));
  if (!module.is_valid()) return PyErr_Clear(), false;
  const nb::object type = nb::getattr(module, class_name, nb::none());
  return PyType_Check(type.ptr()) && nb::isinstance(object, type);
}

bool holds(nb::handle tensor, const char* property) {
  const nb::object value = tensor.attr(property);
  return nb::cast<bool>(PyCallable_Check(value.ptr()) ? nb::object(value()) : value);
}

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// Refuses what DLPack does not tell of a tensor, and another device.
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

// `offset`: of a tensor in its storage. Tensors of FakeTensorMode, zeros of autograd and tensors
// whose storage is freed have a storage at address 0.
void check_storage(const nb::ndarray<nb::ro>& array, std::size_t offset, std::string_view owner,
                   std::string_view name) {
  if (array.size() == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(array.data());
  const std::size_t width = array.itemsize();
  if (address % width != 0)
    throw_type(owner, name,
               "is not aligned to its entries, expected an aligned array: pass a copy");
  if (address == width * offset)
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

bool is_tensor(nb::handle object) { return is_instance_of(object, "torch", "Tensor"); }

nb::ndarray<nb::ro> read_array(nb::handle argument, std::string_view owner, std::string_view name,
                               DType dtype) {
  const bool tensor = is_tensor(argument);
  if (tensor)
    check_tensor(argument, owner, name);
  else if (is_instance_of(argument, "numpy.ma", "MaskedArray"))
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
  const auto offset =
      tensor ? nb::cast<std::size_t>(argument.attr("storage_offset")()) : std::size_t(0);
  check_storage(array, offset, owner, name);
  return array;
}

}  // namespace fw::python
