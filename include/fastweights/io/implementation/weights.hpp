/// Saving and loading of records as lists of leaves: see weights.hpp.
#pragma once

#include <set>
#include <string>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/weights.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

using fw::detail::Leaf;
using fw::detail::LeafPath;

inline bool is_saved(const Leaf& leaf, Scope scope) {
  return scope == Scope::state || (leaf.is_array && leaf.size() > 0);
}

// Calls f(name, leaf) for every leaf that is saved.
template <class F>
void for_each_saved(const Object& record, Scope scope, const std::string& prefix, const F& f) {
  visit_leaves(&record, 1,
               [&](const Leaf* leaf, const LeafPath& path) {
                 if (is_saved(*leaf, scope)) f(path.text(), *leaf);
               },
               {.name = prefix});
}

// The memory or layer may know of a smaller range; see fw::check_state.
inline void check_count(const SafeTensors& file, const std::string& name, const Leaf& leaf) {
  std::int64_t count = 0;
  if (leaf.is_array || leaf.scalar != fw::detail::ScalarKind::integer) return;
  leaf.load_integer(0, count);  // it fits, because it was read as an std::int64_t
  if (count > max_count)
    file.fail(name, "expected a count of at most " + std::to_string(max_count) + ", is " +
                        std::to_string(count));
}

// The first tensor under the prefix that the record does not have; empty if there is none.
inline std::string first_unexpected(const Object& record, Scope scope, const SafeTensors& file,
                                    const std::string& prefix) {
  std::set<std::string> expected;
  for_each_saved(record, scope, prefix,
                 [&](std::string name, const Leaf&) { expected.insert(name); });
  const std::string dotted = prefix.empty() ? prefix : prefix + ".";
  for (const auto& name : file.names())
    if (name.starts_with(dotted) && !expected.contains(name)) return name;
  return {};
}

// Throws, as the file lacks a tensor. It may have the same numbers under another name.
[[noreturn]] inline void fail_absent(const std::string& name, const Object& record, Scope scope,
                                     const SafeTensors& file, const std::string& prefix) {
  const std::string other = first_unexpected(record, scope, file, prefix);
  file.fail(name, "not in the file" +
                      (other.empty() ? other
                                     : ", which has \"" + other + "\", and that is not expected"));
}

// An array that grows has as many columns as in the file, if it has its rows there.
inline void set_columns(const SafeTensors& file, const std::string& name, Leaf& leaf) {
  if (!leaf.grows()) return;
  const auto shape = file.shape(name);
  if (shape.size() == 2 && shape[0] == leaf.rows) leaf.resize(shape[1]);
}

FASTWEIGHTS_INLINE void load(const Object& record, Scope scope, const SafeTensors& file,
                             const std::string& prefix) {
  for_each_saved(record, scope, prefix, [&](const std::string& name, Leaf leaf) {
    if (!file.contains(name)) fail_absent(name, record, scope, file, prefix);
    set_columns(file, name, leaf);
    file.copy_to(name, leaf);
    check_count(file, name, leaf);
  });
  const std::string other = first_unexpected(record, scope, file, prefix);
  if (!other.empty()) file.fail(other, "in the file, but not expected");
}

FASTWEIGHTS_INLINE void add(SafeTensorsWriter& writer, const Object& record, Scope scope,
                            const std::string& prefix) {
  for_each_saved(record, scope, prefix,
                 [&](const std::string& name, const Leaf& leaf) { writer.add(name, leaf); });
}

}  // namespace fw::io::detail
