#include "objects.hpp"

namespace fw::python {

Busy::Guard::Guard(Busy& busy, const char* name) : busy_(busy) {
  if (busy.used_.test_and_set())
    throw std::runtime_error(std::string("fastweights: ") + name +
                             " is in use by another call, expected one call at a time");
}

std::string Memory::text() const {
  std::string text = heads->name() + "(";
  for (std::size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", " : "") + arguments[i].first + "=" +
            nb::cast<std::string>(nb::repr(arguments[i].second));
  return text + ")";
}

bool same_arguments(const Memory& a, const Memory& b) { return a.text() == b.text(); }

std::string dtype_name(nb::handle dtype) {
  const bool is_type = nb::hasattr(dtype, "__name__");
  std::string name = nb::cast<std::string>(
      nb::str(is_type ? nb::object(dtype.attr("__name__")) : nb::borrow<nb::object>(dtype)));
  if (name.starts_with("torch.")) name = name.substr(6);
  if (name != "float32" && name != "float64")
    throw nb::value_error(("dtype is " + name + ", expected float32 or float64").c_str());
  return name;
}

void check_heads(const std::string& name, Index heads) {
  if (heads < 1)
    throw nb::value_error(
        (name + ": heads is " + std::to_string(heads) + ", expected at least 1").c_str());
  if (heads > most_streams)
    throw nb::value_error((name + ": heads is " + std::to_string(heads) + ", expected at most " +
                           std::to_string(most_streams))
                              .c_str());
}

void bind_memory(nb::module_& m) {
  nb::class_<Memory>(
      m, "Memory",
      R"(A fast-weight memory: its equation, sizes and hyperparameters, for several heads.

It holds no state: one memory serves many sequences. Each memory of the library is a subclass.)")
      .def_prop_ro("heads", [](const Memory& self) { return self.heads->count; })
      .def_prop_ro(
          "key_size", [](const Memory& self) { return self.heads->key_size; },
          "d_k, the entries of a key and a query.")
      .def_prop_ro(
          "value_size", [](const Memory& self) { return self.heads->output.rows; },
          "d_v, the entries of a value and an output.")
      .def_prop_ro(
          "dtype", [](const Memory& self) { return dtype_text(self.heads->dtype); },
          "'float32' or 'float64': of states, inputs and outputs.")
      .def_prop_ro(
          "inputs",
          [](const Memory& self) {
            nb::list names;
            for (const Member& member : self.heads->inputs)
              names.append(nb::str(member.name.c_str()));
            return nb::tuple(names);
          },
          nb::sig("def inputs(self) -> tuple[str, ...]"),
          "The names of the inputs of scan and step, in order.")
      .def(
          "input_shapes",
          [](const Memory& self, Index batch, Index time) {
            if (batch < 0 || time < 0)
              throw nb::value_error("input_shapes: batch and time are expected to be at least 0");
            return input_shapes(self, batch, time);
          },
          nb::arg("batch"), nb::arg("time"),
          nb::sig("def input_shapes(self, batch: int, time: int) -> dict[str, tuple[int, ...]]"),
          "The shapes of the inputs of a scan of `time` tokens, by name.")
      .def("__repr__", &Memory::text)
      .def(
          "__eq__",
          [](const Memory& self, nb::handle other) {
            return nb::isinstance<Memory>(other) &&
                   same_arguments(self, nb::cast<const Memory&>(other));
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Memory& self) { return std::hash<std::string>()(self.text()); })
      .def(
          "__reduce__",
          [](nb::handle self) {
            nb::list values;
            for (const auto& argument : nb::cast<const Memory&>(self).arguments)
              values.append(argument.second);
            return nb::make_tuple(nb::borrow(self.type()), nb::tuple(values));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace fw::python
