#include "leaves.hpp"

namespace fw::python {

using fw::detail::Leaf;
using fw::detail::LeafPath;
using fw::detail::Object;

std::vector<NamedLeaf> leaves_of(const Object& stream) {
  std::vector<NamedLeaf> leaves;
  fw::detail::visit_leaves(&stream, 1, [&](const Leaf* leaf, const LeafPath& path) {
    leaves.push_back({path.text(), *leaf});
  });
  return leaves;
}

std::vector<NamedLeaf> leaves_of(Streams& streams, Index i) { return leaves_of(streams.stream(i)); }

std::vector<std::size_t> axes_of(const Leaf& leaf) {
  if (!leaf.is_array) return {};
  if (leaf.is_vector()) return {static_cast<std::size_t>(leaf.size())};
  return {static_cast<std::size_t>(leaf.rows), static_cast<std::size_t>(leaf.cols)};
}

std::vector<std::size_t> shape_for(const Leaf& leaf, Index batch, Index heads) {
  std::vector<std::size_t> shape{static_cast<std::size_t>(batch), static_cast<std::size_t>(heads)};
  for (const std::size_t axis : axes_of(leaf)) shape.push_back(axis);
  return shape;
}

void throw_state(const Kernel& kernel, const std::string& what) {
  throw nb::value_error((std::string(kernel.rule) + ": state: " + what).c_str());
}

}  // namespace fw::python
