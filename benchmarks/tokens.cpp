#include "tokens.hpp"

#include <cstring>
#include <stdexcept>

namespace measure {

namespace {

using fw::detail::Leaf;
using fw::detail::LeafPath;

template <class S>
TokenViews<S> views_of(fw::testing::AnySequences<S>& all, Index first, Index count) {
  return {all.inputs.part(first, count), all.queries.part(first, count),
          all.outputs.template part<S>(first, count)};
}

template <class S>
const void* member_of(const fw::testing::AnyRecord<S>& record, std::string_view name, Index first) {
  for (std::size_t i = 0; i < record.matrices.size(); ++i)
    if (record.members()[i].name == name) return record.matrices[i].col(first).data();
  return nullptr;
}

}  // namespace

template <class S> Tokens<S>::Tokens(const fw::AnyMemory<S>& m, Index steps, Index count) {
  fw::Random random(1);
  sequences = fw::testing::random_sequences(m, steps * count, random, /*positive=*/true);
  all = views_of(sequences, 0, steps * count);
  for (Index h = 0; h < count; ++h) heads.push_back(views_of(sequences, h * steps, steps));
}

template <class S> Arrays Tokens<S>::arrays(Index head, void* W) {
  if (W == nullptr) throw std::logic_error("this memory has no matrix W to compare");
  const Index steps = sequences.outputs["output"].cols() / static_cast<Index>(heads.size());
  const Index first = head * steps;
  return {sequences.inputs["key"].rows(),
          steps,
          member_of(sequences.inputs, "key", first),
          member_of(sequences.inputs, "value", first),
          member_of(sequences.inputs, "beta", first),
          member_of(sequences.inputs, "decay", first),
          member_of(sequences.queries, "query", first),
          sequences.outputs["output"].col(first).data(),
          W};
}

template struct Tokens<float>;
template struct Tokens<double>;

std::size_t bytes_of(const fw::detail::Object& state) {
  std::size_t bytes = 0;
  fw::detail::visit_leaves(&state, 1, [&](const Leaf* leaf, const LeafPath&) {
    if (leaf->is_array) bytes += static_cast<std::size_t>(leaf->size()) * leaf->width;
  });
  return bytes;
}

void set_zero(const fw::detail::Object& state) {
  fw::detail::visit_leaves(&state, 1, [](const Leaf* leaf, const LeafPath&) {
    std::memset(leaf->data, 0, static_cast<std::size_t>(leaf->size()) * leaf->width);
  });
}

void* matrix_of(const fw::detail::Object& state) {
  void* data = nullptr;
  fw::detail::visit_leaves(&state, 1, [&](const Leaf* leaf, const LeafPath& path) {
    if (path.text() == "W") data = leaf->data;
  });
  return data;
}

}  // namespace measure
