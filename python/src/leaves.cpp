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

DType dtype_of(const Leaf& leaf) {
  using fw::detail::ScalarKind;
  DType type{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float),
             static_cast<std::uint8_t>(8 * leaf.width), 1};
  if (leaf.scalar == ScalarKind::bfloat16 || !leaf.is_signed)
    type.code = static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt);
  else if (leaf.scalar == ScalarKind::integer)
    type.code = static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int);
  return type;
}

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

void throw_state(const Heads& heads, const std::string& what) {
  throw nb::value_error((heads.name() + ": state: " + what).c_str());
}

}  // namespace fw::python
