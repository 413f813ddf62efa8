#include <cstring>

#include "leaves.hpp"

namespace fw::python {

using fw::detail::Leaf;

namespace {

std::size_t bytes_of(const Leaf& leaf) {
  return static_cast<std::size_t>(leaf.size()) * leaf.width;
}

// Matrices are stored by columns: the last two strides are exchanged.
void set_matrix_strides(Result& result, const Leaf& leaf) {
  if (axes_of(leaf).size() == 2) result.strides[2] = 1, result.strides[3] = leaf.rows;
}

// The leaf of the stream that has grown most.
Leaf largest(const State& state, std::size_t which) {
  Leaf found = leaves_of(state.heads().first())[which].leaf;
  if (!found.grows()) return found;
  for (Index i = 0; i < state.streams.count(); ++i) {
    const Leaf own = leaves_of(state.streams.stream(i))[which].leaf;
    if (i == 0 || own.cols > found.cols) found = own;
  }
  return found;
}

// The copy of one leaf of all streams: [batch, heads, …]. What a stream lacks is 0.
Result stacked(const State& state, std::size_t which) {
  const Heads& heads = state.heads();
  const Leaf first = largest(state, which);
  Result result(dtype_of(first), shape_for(first, state.batch(), heads.count));
  set_matrix_strides(result, first);
  for (Index i = 0; i < state.streams.count(); ++i) {
    const Leaf own = leaves_of(state.streams.stream(i))[which].leaf;
    std::byte* const to =
        static_cast<std::byte*>(result.data) + static_cast<std::size_t>(i) * bytes_of(first);
    std::memcpy(to, own.data, bytes_of(own));
    std::memset(to + bytes_of(own), 0, bytes_of(first) - bytes_of(own));
  }
  return result;
}

std::size_t index_of(const State& state, const std::string& name) {
  const auto leaves = leaves_of(state.heads().first());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].name == name) return i;
  throw nb::key_error(name.c_str());
}

// Copies an array of one stream, with any strides in entries, into a leaf.
void copy_entries(const std::byte* from, const std::int64_t* strides, const Leaf& leaf) {
  const std::size_t axes = axes_of(leaf).size();
  const Index width = static_cast<Index>(leaf.width);
  const Index down = axes > 0 ? strides[0] : 0, across = axes > 1 ? strides[1] : 0;
  const Index rows = axes > 1 ? leaf.rows : leaf.size();
  for (Index j = 0; j < (axes > 1 ? leaf.cols : 1); ++j)
    for (Index i = 0; i < rows; ++i)
      std::memcpy(leaf.entry(j * leaf.rows + i), from + (i * down + j * across) * width,
                  leaf.width);
}

void copy_streams(const nb::ndarray<nb::ro>& array, State& state, std::size_t which) {
  const Index heads = state.heads().count, width = static_cast<Index>(array.itemsize());
  for (Index i = 0; i < state.streams.count(); ++i) {
    Leaf own = leaves_of(state.streams.stream(i))[which].leaf;
    if (own.grows()) own.resize(static_cast<Index>(array.shape(array.ndim() - 1)));
    copy_entries(static_cast<const std::byte*>(array.data()) +
                     (i / heads * array.stride(0) + i % heads * array.stride(1)) * width,
                 array.stride_ptr() + 2, own);
  }
}

Index batch_of(const std::vector<nb::ndarray<nb::ro>>& leaves) {
  return leaves[0].ndim() > 0 ? static_cast<Index>(leaves[0].shape(0)) : 1;
}

// The arrays in the order of the leaves, of the same batch.
std::vector<nb::ndarray<nb::ro>> read_leaves(const Heads& heads, const nb::dict& arrays,
                                             const std::vector<NamedLeaf>& leaves) {
  std::vector<nb::ndarray<nb::ro>> given;
  for (const auto& [name, leaf] : leaves) {
    if (!arrays.contains(name.c_str())) throw_state(heads, name + " is missing");
    given.push_back(read_array(arrays[name.c_str()], heads.name(), name, dtype_of(leaf)));
  }
  if (arrays.size() != leaves.size())
    throw_state(heads, std::to_string(arrays.size()) + " arrays are given, expected " +
                           std::to_string(leaves.size()));
  const Index batch = batch_of(given);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    auto expected = shape_for(leaves[i].leaf, batch, heads.count);
    if (heads.grows && leaves[i].leaf.grows() && given[i].ndim() == expected.size())
      expected.back() = given[i].shape(given[i].ndim() - 1);
    if (shape_of(given[i]) != expected)
      throw_state(heads, leaves[i].name + " has shape " + shape_text(shape_of(given[i])) +
                             ", expected " + shape_text(expected));
  }
  return given;
}

}  // namespace

nb::dict arrays_of(const State& state) {
  nb::dict arrays;
  const auto leaves = leaves_of(state.heads().first());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    arrays[nb::str(leaves[i].name.c_str())] = stacked(state, i).to_python({});
  return arrays;
}

nb::object array_of(const State& state, const std::string& name) {
  return stacked(state, index_of(state, name)).to_python({});
}

nb::dict views_of(nb::handle owner, Index batch, Index head) {
  auto& state = nb::cast<State&>(owner);
  const Index heads = state.heads().count;
  if (batch < 0 || batch >= state.batch() || head < 0 || head >= heads)
    throw nb::index_error(("state: view(" + std::to_string(batch) + ", " + std::to_string(head) +
                           "), expected less than " + std::to_string(state.batch()) + " and " +
                           std::to_string(heads))
                              .c_str());
  nb::dict views;
  for (const auto& [name, leaf] : leaves_of(state.streams.stream(batch * heads + head))) {
    if (state.heads().grows && leaf.grows())
      throw_state(state.heads(), "view of " + name +
                                     ", which moves when the cache grows, expected a memory with "
                                     "refuse=True or slide=True, or arrays()");
    const auto axes = axes_of(leaf);
    const std::int64_t strides[] = {1, leaf.rows};
    views[nb::str(name.c_str())] =
        nb::cast(nb::ndarray<nb::numpy>(leaf.data, axes.size(), axes.data(), owner, strides,
                                        dtype_of(leaf), nb::device::cpu::value));
  }
  return views;
}

nb::object state_of_arrays(nb::handle self, const nb::dict& arrays) {
  const Heads& heads = *nb::cast<const Memory&>(self).heads;
  const auto leaves = leaves_of(heads.first());
  const auto given = read_leaves(heads, arrays, leaves);
  nb::object object = new_state(self, batch_of(given));
  auto& state = nb::cast<State&>(object);
  for (std::size_t i = 0; i < leaves.size(); ++i) copy_streams(given[i], state, i);
  return object;
}

}  // namespace fw::python
