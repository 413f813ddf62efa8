#include "paths.hpp"

namespace fw::python {

std::string path_bytes(nb::handle path) {
  const nb::object encoded = nb::module_::import_("os").attr("fsencode")(path);
  std::string bytes(PyBytes_AS_STRING(encoded.ptr()),
                    static_cast<std::size_t>(PyBytes_GET_SIZE(encoded.ptr())));
  if (bytes.find('\0') != std::string::npos)
    throw nb::value_error(
        ("path is " + nb::cast<std::string>(nb::repr(path)) + ", expected one without a null byte")
            .c_str());
  return bytes;
}

void throw_decoded(nb::handle type, const char* text) {
  const auto decoded = nb::steal<nb::object>(PyUnicode_DecodeFSDefault(text));
  if (decoded.is_valid()) PyErr_SetObject(type.ptr(), decoded.ptr());
  throw nb::python_error();
}

}  // namespace fw::python
