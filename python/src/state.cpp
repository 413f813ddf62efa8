#include "leaves.hpp"
#include "paths.hpp"

namespace fw::python {

namespace {

nb::object state_with(nb::handle memory, Streams streams) {
  auto state = std::make_unique<State>();
  state->memory = nb::borrow(memory);
  state->streams = std::move(streams);
  return nb::cast(state.release(), nb::rv_policy::take_ownership);
}

nb::tuple names_of(const Memory& memory) {
  nb::list names;
  for (const NamedLeaf& leaf : leaves_of(memory.heads->first()))
    names.append(nb::str(leaf.name.c_str()));
  return nb::tuple(names);
}

nb::dict guarded_arrays(State& state) {
  const Busy::Guard guard(state.busy, "state");
  return arrays_of(state);
}

nb::object guarded_copy(State& state) {
  const Busy::Guard guard(state.busy, "state");
  return state_with(state.memory, state.streams);
}

void check_batch(Index batch, Index heads) {
  if (batch < 1)
    throw nb::value_error(
        ("state: batch is " + std::to_string(batch) + ", expected at least 1").c_str());
  if (batch > most_streams / heads)
    throw nb::value_error(("state: batch is " + std::to_string(batch) + " and heads is " +
                           std::to_string(heads) + ", expected a product of at most " +
                           std::to_string(most_streams))
                              .c_str());
}

}  // namespace

nb::object new_state(nb::handle memory, Index batch) {
  const Heads& heads = *nb::cast<const Memory&>(memory).heads;
  check_batch(batch, heads.count);
  return state_with(memory, heads.initial_states(batch));
}

nb::object zero_state(nb::handle memory, Index batch) {
  return state_with(memory, nb::cast<const Memory&>(memory).heads->zero_gradients(batch));
}

void bind_state(nb::module_& m) {
  nb::class_<State>(
      m, "State",
      R"(The states of a batch of sequences, one per head: what a memory has written so far.

Only one call at a time may use a state; a second one raises RuntimeError. copy.copy, copy.deepcopy and
pickle work.)",
      nb::is_final())
      .def_prop_ro("batch", &State::batch, "The number of sequences.")
      .def_ro("memory", &State::memory, nb::sig("def memory(self) -> Memory"),
              "The memory that made it.")
      .def(
          "__getitem__",
          [](State& self, const std::string& name) {
            const Busy::Guard guard(self.busy, "state");
            return array_of(self, name);
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str, /) -> numpy.ndarray"),
          "A copy of one array, [batch, heads, ...]: 'W' is [batch, heads, d_v, d_k].")
      .def("arrays", &guarded_arrays, nb::sig("def arrays(self) -> dict[str, numpy.ndarray]"),
           "Copies of all arrays by name. memory.state(arrays) is the way back.")
      .def(
          "view",
          [](nb::handle self, Index batch, Index head) { return views_of(self, batch, head); },
          nb::arg("batch"), nb::arg("head"),
          nb::sig("def view(self, batch: int, head: int) -> dict[str, numpy.ndarray]"),
          "The arrays of one stream without a copy; writing to them changes the state.\n\n"
          "They are not guarded: do not use them while another thread scans with the state.")
      .def("copy", &guarded_copy, nb::sig("def copy(self) -> State"), "An independent copy.")
      .def("__copy__", &guarded_copy, nb::sig("def __copy__(self) -> State"))
      .def(
          "save",
          [](State& self, nb::handle path) {
            const Busy::Guard guard(self.busy, "state");
            with_path(path, [&](const std::string& text) { save_state(self, text); });
          },
          nb::arg("path"), nb::sig("def save(self, path: str | bytes | os.PathLike) -> None"),
          "Writes a safetensors file, which replaces an old one in one step.\n\n"
          "Head h of sequence b has the prefix 'b.h', under which fw::io::load_state of C++ reads "
          "it.")
      .def(
          "__reduce__",
          [](State& self) {
            const nb::object make = nb::module_::import_("operator")
                                        .attr("methodcaller")("state", guarded_arrays(self));
            return nb::make_tuple(make, nb::make_tuple(self.memory));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));

  nb::class_<Checkpoints>(m, "Checkpoints",
                          "What a scan stores for `backward`. A new scan fills it again.",
                          nb::is_final())
      .def(nb::init<>());

  auto memory = nb::borrow<nb::class_<Memory>>(m.attr("Memory"));
  memory
      .def_prop_ro("state_names", &names_of, nb::sig("def state_names(self) -> tuple[str, ...]"),
                   "The names of the arrays of a state: 'W', and what else the memory keeps.")
      .def(
          "initial_state", [](nb::handle self, Index batch) { return new_state(self, batch); },
          nb::arg("batch") = 1, nb::sig("def initial_state(self, batch: int = 1) -> State"),
          "The state of `batch` sequences before any token: zeros, but for weights that start at "
          "other values.")
      .def("state", &state_of_arrays, nb::arg("arrays"),
           nb::sig("def state(self, arrays: dict[str, typing.Any]) -> State"),
           "The state with copies of these arrays, as State.arrays() gives them.\n\n"
           "Raises TypeError for another dtype or device, ValueError for a missing array or "
           "another shape.")
      .def(
          "load_state",
          [](nb::handle self, nb::handle path) {
            return with_path(path, [&](const std::string& text) { return load_state(self, text); });
          },
          nb::arg("path"),
          nb::sig("def load_state(self, path: str | bytes | os.PathLike) -> State"),
          "Reads a file of State.save.\n\n"
          "Tensors of another floating-point type are converted to the memory's dtype, without "
          "an error or a warning.\n\n"
          "Raises RuntimeError, with the name of the tensor, if the file is damaged or does not "
          "fit, and ValueError if it is one of another memory.");
}

}  // namespace fw::python
