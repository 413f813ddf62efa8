#pragma once

#include <cmath>
#include <fastweights/algorithms/backward.hpp>
#include <set>

#include "case.hpp"

/// \file
/// Runs a memory on a file: every head of every sequence, outputs, final states and gradients.

namespace reference {

/// The conventions of a file. Sequences are [B, T, H, D] (or [B, T, H] for numbers), states
/// [B, H, …]. An array with fewer heads than the output is shared by groups of heads.
struct Layout {
  struct Kept {
    std::string initial, final;
    bool key_major = true;  // matrices are [B, H, K, V]; else [B, H, d_v, d_k]
    bool softmax = false;   // the final array has the softmax of every row along its last axis
  };
  struct Slow {
    std::string name;
    bool key_major = true;
  };
  /// Arrays of the members that a memory writes and reads.
  std::map<std::string_view, std::string> inputs = {
      {"key", "k"}, {"value", "v"}, {"beta", "beta"}, {"decay", "g"}, {"query", "q"}};
  /// The axes of sequences in another order, or without heads: "BDT". By name of the array. Axes
  /// T that follow each other are one: the mini-batches of "BHTTD".
  std::map<std::string, std::string> axes = {};
  /// Members of which the file has the logarithm.
  std::set<std::string_view> logarithms = {"decay"};
  /// Members that are the same number for all tokens, and not in the file.
  std::map<std::string_view, double> constants = {};
  /// Members of which the file has x, with the member sigmoid(x).
  std::set<std::string_view> sigmoids = {};
  /// Arrays of the state's members, if the file has them.
  std::map<std::string, Kept> state = {{"W", {"initial_state", "final_state"}}};
  /// Arrays [H, …] of the state's slow weights.
  std::map<std::string, Slow> slow = {};
  bool scales_query = true;  // the source multiplies q by 1/√K
  double normalise = -1;     // if ≥ 0, it first divides q and k by √(‖x‖² + this)
};

/// The array of a file as [B, T, H, D], and the reverse.
Array in_order(const Layout& layout, const std::string& name, Array given);
Array in_file_order(const Layout& layout, const std::string& name, const Array& ours);

/// The inputs of a memory: arrays of a file without logarithms, normalised and scaled.
class Inputs {
 public:
  Inputs(Case& file, const Layout& layout, const std::set<std::string_view>& members);

  bool has(std::string_view member) const { return members_.contains(member); }
  const Array& of(std::string_view member) const { return arrays_.at(name_of(member)); }
  Array& of(std::string_view member) { return arrays_.at(name_of(member)); }
  /// Compares the gradients with those of the file, which are of its arrays as they are.
  void compare(const std::string& kind, Inputs& gradients) const;
  /// The same arrays with zeros.
  Inputs zeros() const;

 private:
  bool is_normalised(std::string_view member) const;
  double scale(const Array& query) const;
  std::string name_of(std::string_view member) const {
    return layout_.constants.contains(member) ? std::string(member) : layout_.inputs.at(member);
  }

  Case& file_;
  const Layout& layout_;
  std::set<std::string_view> members_;
  std::map<std::string, Array> arrays_, given_;
};

/// Copies head h of sequence b between the arrays of a file and a state.
class States {
 public:
  /// Where the entries of a leaf are: an array, and which part of it.
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

/// Head h of sequence b, as a record of sequences. `heads` is the number of heads of the output.
template <class R> R head_of(Inputs& inputs, Index b, Index h, Index heads) {
  [[maybe_unused]] const auto member = [&]<std::size_t I>() -> fw::member_t<R, I> {
    Array& array = inputs.of(R::names[I]);
    const Index own = h * array.axis(2) / heads;
    if constexpr (fw::member_t<R, I>::RowsAtCompileTime == 1)
      return array.numbers(b, own);
    else
      return array.head(b, own);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return R{member.template operator()<I>()...};
  }
  (std::make_index_sequence<fw::member_count<R>>{});
}

/// Runs every head h of every sequence of a file with the memory make(d_k, d_v, T, h). Without a
/// query, d_k is d_v.
template <class Make> void run(Case& file, const Layout& layout, const Make& make) {
  using M = decltype(make(Index(), Index(), Index(), Index()));
  std::set<std::string_view> members;
  for (const auto name : fw::WriteSequence<M>::names) members.insert(name);
  for (const auto name : fw::ReadSequence<M>::names) members.insert(name);
  Inputs inputs(file, layout, members);
  Array o = in_order(layout, "o", file.like("o")), up = in_order(layout, "o", file["up_o"]);
  const Index dv = o.axis(3), steps = o.axis(1), heads = o.axis(2);
  const Index dk = inputs.has("query") ? inputs.of("query").axis(3) : dv;
  States states(file, layout, heads);

  for (const std::string kind : {"grad_", "gradout_"}) {
    if (!file.has(kind + layout.inputs.at("value"))) continue;
    Inputs gradients = inputs.zeros();
    for (Index b = 0; b < o.axis(0); ++b)
      for (Index h = 0; h < heads; ++h) {
        const M m = make(dk, dv, steps, h);
        auto state = fw::initial_state(m);
        auto ds = fw::zero_gradient(m);
        states.load_initial(fw::detail::object(state), b, h);
        if (kind == "grad_") states.load_gradient(fw::detail::object(ds), b, h);
        const auto written = head_of<fw::WriteSequence<M>>(inputs, b, h, heads);
        const auto read = head_of<fw::ReadSequence<M>>(inputs, b, h, heads);
        fw::Checkpoints<M> checkpoints;
        fw::scan(m, state, written, read, {o.head(b, h)}, checkpoints);
        states.keep_final(fw::detail::object(state), b, h);
        fw::backward(m, checkpoints, written, read, {up.head(b, h)}, ds,
                     head_of<fw::WriteGradSequence<M>>(gradients, b, h, heads),
                     head_of<fw::ReadGradSequence<M>>(gradients, b, h, heads));
        states.keep_gradient(fw::detail::object(ds), b, h);
      }
    inputs.compare(kind, gradients);
    states.compare_gradients(kind);
  }
  file.forward("o", in_file_order(layout, "o", o));
  states.compare_final();
}

}  // namespace reference
