#include <fastweights/any_memory/table.hpp>

#include "objects.hpp"

/// \file
/// The classes of Python, one for each memory of the table. Their methods are the same functions:
/// only names, types and documentation differ, and they are known at run time.

namespace fw::python {

namespace {

constexpr const char* scan_doc =
    R"(Writes and reads whole sequences, as many as the state has; the state becomes the final one.

Inputs are [batch, time, heads, entries], or [batch, time, heads] for one number per token. They are
viewed without a copy; the entries of a token must be contiguous, and the stride over time positive. Returns [batch, time, heads, d_v], a
tensor if the first input is one, else a NumPy array. With `checkpoints` it stores there what `backward` needs.
An input of several vectors per token has them one after the other: [batch, time * vectors, heads, entries].
Heads and sequences run in threads, without Python's lock.

Raises TypeError for another dtype or device, ValueError for another shape; the state is unchanged then.
A MemoryError may leave some heads with the old state and others with a newer one.)";

constexpr const char* step_doc =
    "As scan, for one token per sequence: the inputs have no axis of time, but for several "
    "vectors.";

constexpr const char* backward_doc =
    R"(The gradients of all inputs, by name, and of the initial state.

`start` is the checkpoints that a scan of an equal memory filled, or the initial state: then the forward
pass runs once more. The inputs must be those of the scan. `state_gradient` is the gradient of the final
state, 0 by default; memory.state(arrays) makes one. Exact up to rounding. Raises as scan does, and
ValueError if the memory has no gradients.)";

// The argument as a T, or nb::type_error.
template <class T>
T read(const MemoryClass& type, const std::string& name, nb::handle argument,
       const char* expected) {
  T value{};
  // None casts to a null pointer.
  const bool is_none = std::is_pointer_v<T> && argument.is_none();
  if (is_none || !nb::try_cast(argument, value))
    throw nb::type_error((type.name + ": " + name + " is " +
                          nb::cast<std::string>(nb::repr(argument)) + ", expected " + expected)
                             .c_str());
  return value;
}

Index read_size(const MemoryClass& type, const std::string& name, nb::handle argument) {
  return read<Index>(type, name, argument, "a whole number");
}

// Its value in the table.
double read_setting(const MemoryClass& type, const Setting& setting, nb::handle argument) {
  switch (setting.kind) {
    case OptionKind::flag:
      return read<bool>(type, setting.name, argument, "True or False") ? 1 : 0;
    case OptionKind::integer:
      return static_cast<double>(read_size(type, setting.name, argument));
    default:
      return read<double>(type, setting.name, argument, "a number");
  }
}

nb::object python_value(const Setting& setting, double value) {
  switch (setting.kind) {
    case OptionKind::flag:
      return nb::bool_(value != 0);
    case OptionKind::integer:
      return nb::int_(static_cast<Index>(value));
    default:
      return nb::float_(value);
  }
}

// The table takes 0 for a value_size as large as keys; here that is None.
void check_value_size(const MemoryClass& type, Index value_size) {
  if (value_size < 1)
    throw nb::value_error(
        (type.name + ": d_v is " + std::to_string(value_size) + ", expected at least 1").c_str());
}

void construct(const MemoryClass& type, Memory* self, const nb::args& args,
               const nb::kwargs& named) {
  const std::vector<nb::object> given = type.init.bind(type.name, args, named);
  const auto has = [&](std::size_t i) { return given[i].is_valid() && !given[i].is_none(); };
  MemoryOptions options{.key_size = read_size(type, "key_size", given[0])};
  options.value_size = has(1) ? read_size(type, "value_size", given[1]) : options.key_size;
  const Index heads = given[2].is_valid() ? read_size(type, "heads", given[2]) : 1;
  const std::string dtype = given[3].is_valid() ? dtype_name(given[3]) : "float32";
  if (options.key_size > 0) check_value_size(type, options.value_size);
  check_heads(type.name, heads);
  if (dtype == "float64" && !type.has_double)
    throw nb::value_error((type.name + ": dtype is float64, expected float32").c_str());
  for (std::size_t i = 0; i < type.settings.size(); ++i)
    if (has(4 + i))
      options.more[type.settings[i].option] = read_setting(type, type.settings[i], given[4 + i]);

  auto made = std::make_shared<Heads>(
      type, heads, dtype == "float32" ? nb::dtype<float>() : nb::dtype<double>(), options);
  Memory memory{made,
                {{"key_size", nb::int_(options.key_size)},
                 {"value_size", nb::int_(options.value_size)},
                 {"heads", nb::int_(heads)},
                 {"dtype", nb::str(dtype.c_str())}}};
  for (std::size_t i = 0; i < type.settings.size(); ++i)
    memory.arguments.emplace_back(type.settings[i].name,
                                  python_value(type.settings[i], made->settings[i]));
  new (self) Memory(std::move(memory));
}

const MemoryClass& class_of(nb::handle self) { return nb::cast<const Memory&>(self).heads->type; }

// The object of C++ in an argument, or nb::type_error.
template <class T>
T& reference(const MemoryClass& type, const char* name, nb::handle argument, const char* expected) {
  return *read<T*>(type, name, argument, expected);
}

// The same for one that may be None: then null.
template <class T>
T* optional(const MemoryClass& type, const char* name, const nb::object& argument,
            const char* expected) {
  if (!argument.is_valid() || argument.is_none()) return nullptr;
  return &reference<T>(type, name, argument, expected);
}

nb::object bound_scan(nb::handle self, const nb::args& args, const nb::kwargs& named) {
  const MemoryClass& type = class_of(self);
  const auto given = type.scan.bind(type.name, args, named);
  return scan(self, reference<State>(type, "state", given[0], "a State"),
              std::span(given).subspan(1, type.inputs.size()),
              optional<Checkpoints>(type, "checkpoints", given.back(), "Checkpoints or None"));
}

nb::object bound_step(nb::handle self, const nb::args& args, const nb::kwargs& named) {
  const MemoryClass& type = class_of(self);
  const auto given = type.step.bind(type.name, args, named);
  return step(self, reference<State>(type, "state", given[0], "a State"),
              std::span(given).subspan(1, type.inputs.size()));
}

nb::object bound_backward(nb::handle self, const nb::args& args, const nb::kwargs& named) {
  const MemoryClass& type = class_of(self);
  const auto given = type.backward.bind(type.name, args, named);
  const std::size_t inputs = type.inputs.size();
  return backward(self, given[0], std::span(given).subspan(1, inputs), given[1 + inputs],
                  optional<State>(type, "state_gradient", given[2 + inputs], "a State or None"));
}

// A subclass of Memory. Its instances have no attributes of their own.
nb::object make_class(nb::module_& m, const MemoryClass& type) {
  const nb::object base = m.attr("Memory");
  nb::dict members;
  members["__doc__"] = type.doc.c_str();
  members["__module__"] = m.attr("__name__");
  members["__slots__"] = nb::tuple();
  return base.type()(type.name.c_str(), nb::make_tuple(base), members);
}

void bind_class(nb::module_& m, const MemoryClass& type) {
  const nb::object made = make_class(m, type);
  m.attr(type.name.c_str()) = made;
  auto c = nb::borrow<nb::class_<Memory>>(made);
  c.def(
      "__init__",
      [&type](Memory* self, const nb::args& args, const nb::kwargs& named) {
        construct(type, self, args, named);
      },
      nb::sig(type.init.text().c_str()));
  c.def("scan", &bound_scan, nb::sig(type.scan.text().c_str()), scan_doc);
  c.def("step", &bound_step, nb::sig(type.step.text().c_str()), step_doc);
  c.def("backward", &bound_backward, nb::sig(type.backward.text().c_str()), backward_doc);
}

// Kept as long as the process, as the classes of Python are.
const std::vector<MemoryClass>& memory_classes() {
  static const auto& classes = *new std::vector<MemoryClass>([] {
    std::vector<MemoryClass> all;
    for (const std::string& name : memory_names()) all.push_back(make_memory_class(name));
    return all;
  }());
  return classes;
}

// Classes of Python may not derive from these: a subclass would have a name that is in no table.
void forbid_subclasses(nb::module_& m) {
  const nb::object refuse = nb::cpp_function(
      [](nb::handle made, const nb::args&, const nb::kwargs&) {
        const nb::object base = made.attr("__base__");
        const std::string name = nb::cast<std::string>(base.attr("__module__")) + "." +
                                 nb::cast<std::string>(base.attr("__qualname__"));
        throw nb::type_error(("type '" + name + "' prohibits subclassing").c_str());
      },
      nb::name("__init_subclass__"), nb::is_method());
  m.attr("Memory").attr("__init_subclass__") =
      nb::steal<nb::object>(PyClassMethod_New(refuse.ptr()));
}

}  // namespace

void bind_memories(nb::module_& m) {
  nb::list names;
  for (const char* each : {"Checkpoints", "Memory", "State", "get_num_threads", "set_num_threads"})
    names.append(each);
  for (const MemoryClass& type : memory_classes()) {
    bind_class(m, type);
    names.append(type.name.c_str());
  }
  names.attr("sort")();
  m.attr("__all__") = names;
  forbid_subclasses(m);
}

}  // namespace fw::python
