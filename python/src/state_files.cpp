#include <fastweights/io/weights.hpp>

#include "leaves.hpp"

namespace fw::python {

namespace {

std::string prefix_of(Index i, Index heads) {
  return std::to_string(i / heads) + "." + std::to_string(i % heads);
}

}  // namespace

void save_state(const State& state, const std::string& path) {
  const Heads& heads = state.heads();
  fw::io::SafeTensorsWriter writer;
  writer.metadata("memory", heads.name());
  for (Index i = 0; i < state.streams.count(); ++i)
    fw::io::detail::add(writer, state.streams.stream(i), fw::io::detail::Scope::state,
                        prefix_of(i, heads.count));
  const nb::gil_scoped_release release;
  writer.write(path);
}

nb::object load_state(nb::handle self, const std::string& path) {
  const Heads& heads = *nb::cast<const Memory&>(self).heads;
  const auto file = fw::io::SafeTensors::read(path);
  const auto memory = file.metadata().find("memory");
  if (memory != file.metadata().end() && memory->second != heads.name())
    throw_state(heads, path + " is a file of " + memory->second);
  const auto per_sequence = leaves_of(heads.first()).size() * static_cast<std::size_t>(heads.count);
  if (file.size() % per_sequence != 0)
    throw_state(heads, path + " has " + std::to_string(file.size()) +
                           " tensors, expected a multiple of " + std::to_string(per_sequence));
  nb::object object = new_state(self, static_cast<Index>(file.size() / per_sequence));
  const Streams& streams = nb::cast<State&>(object).streams;
  for (Index i = 0; i < streams.count(); ++i)
    fw::io::detail::load(streams.stream(i), fw::io::detail::Scope::state, file,
                         prefix_of(i, heads.count));
  return object;
}

}  // namespace fw::python
