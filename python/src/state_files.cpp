#include <fastweights/io/weights.hpp>
#include <functional>
#include <numeric>

#include "leaves.hpp"

namespace fw::python {

namespace {

std::string prefix_of(Index i, Index heads) {
  return std::to_string(i / heads) + "." + std::to_string(i % heads);
}

// Throws unless the file has an entry for every entry of `streams` states, and of a cache that has
// grown whole columns. A small file may claim many sequences: what it claims is not allocated
// before this.
void check_entries(const Heads& heads, const fw::io::SafeTensors& file, Index streams) {
  const std::vector<NamedLeaf> leaves = leaves_of(heads.first());
  for (Index i = 0; i < streams; ++i)
    for (const NamedLeaf& each : leaves) {
      const std::string name = prefix_of(i, heads.count) + "." + each.name;
      const fw::io::Shape shape = file.shape(name);
      const Index entries =
          std::accumulate(shape.begin(), shape.end(), Index(1), std::multiplies<Index>());
      const bool fits =
          each.leaf.grows() ? entries % each.leaf.rows == 0 : entries == each.leaf.size();
      if (!fits)
        file.fail(name, "has " + std::to_string(entries) + " entries, expected " +
                            std::to_string(each.leaf.size()));
    }
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
  const auto batch = static_cast<Index>(file.size() / per_sequence);
  check_entries(heads, file, batch * heads.count);
  nb::object object = new_state(self, batch);
  const Streams& streams = nb::cast<State&>(object).streams;
  for (Index i = 0; i < streams.count(); ++i)
    fw::io::detail::load(streams.stream(i), fw::io::detail::Scope::state, file,
                         prefix_of(i, heads.count));
  return object;
}

}  // namespace fw::python
