#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <functional>
#include <set>
#include <vector>

#include "case.hpp"
#include "layout.hpp"

/// \file
/// Runs a memory on a file: every head of every sequence, outputs, final states and gradients.

namespace reference {

using Memory = fw::AnyMemory<double>;

/// The array of a file as [B, T, H, D], and the reverse.
Array in_order(const Layout& layout, const std::string& name, Array given);
Array in_file_order(const Layout& layout, const std::string& name, const Array& ours);

/// The name of the array of a member.
std::string array_of(const Layout& layout, std::string_view member);

/// The inputs of a memory: arrays of a file without logarithms, normalised and scaled.
class Inputs {
 public:
  Inputs(Case& file, const Layout& layout, const std::set<std::string_view>& members);

  bool has(std::string_view member) const { return members_.contains(member); }
  const Array& of(std::string_view member) const { return arrays_.at(name_of(member)); }
  Array& of(std::string_view member) { return arrays_.at(name_of(member)); }
  /// Compares the gradients with those of the file, which are of its arrays as they are.
  void compare(const std::string& kind, Inputs& gradients) const;
  /// Arrays of the same sizes with zeros.
  Inputs zeros() const;

 private:
  bool is_normalised(std::string_view member) const;
  /// The factor of a member's array.
  double scale(std::string_view member) const;
  std::string name_of(std::string_view member) const { return array_of(layout_, member); }

  Case& file_;
  const Layout& layout_;
  std::set<std::string_view> members_;
  std::map<std::string, Array> arrays_, given_;
};

/// Copies head h of sequence b between the arrays of a file and a state.
class States {
 public:
  /// The place of a leaf's entries: an array, and a part of it.
  struct Place {
    const std::string& name;
    Index part;
    bool key_major, softmax;
  };

  States(Case& file, const Layout& layout, Index heads)
      : file_(file), layout_(layout), heads_(heads) {}

  void load_initial(const fw::detail::Object& state, Index b, Index h);
  void load_gradient(const fw::detail::Object& dstate, Index b, Index h);
  void keep_final(const fw::detail::Object& state, Index b, Index h);
  void keep_gradient(const fw::detail::Object& dstate, Index b, Index h);
  void compare_gradients(const std::string& kind);
  void compare_final();

 private:
  template <class F>
  void visit(const fw::detail::Object& state, Index b, Index h, bool is_final, const F& f);

  Case& file_;
  const Layout& layout_;
  Index heads_;
  std::map<std::string, Array> finals_, gradients_;
};

/// Runs every head h of every sequence of a file with the memory make(d_k, d_v, h). Without a
/// query, d_k is d_v.
using Make = std::function<Memory(Index dk, Index dv, Index h)>;
void run(Case& file, const Layout& layout, const Make& make);

/// Runs a file with a memory of the table.
void run(Case& file, const MemoryCase& given);

/// The views of one record.
using Views = std::vector<fw::AnyView<double>>;
/// A scan and its backward pass: overwrites outputs, `ds` becomes the gradient of the initial
/// state, and the gradients of inputs and queries accumulate.
void scan_and_backward(const Memory& m, fw::AnyState<double>& state, const Views& written,
                       const Views& read, const Views& out, const Views& dout,
                       fw::AnyState<double>& ds, const Views& dwritten, const Views& dread);

/// The entries of a state at a path.
Eigen::Map<Matrix> entries(const fw::AnyState<double>& state, std::string_view path);

}  // namespace reference
