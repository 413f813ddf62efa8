#pragma once

#include <nanobind/stl/optional.h>

#include <array>
#include <optional>

#include "objects.hpp"
#include "rule_kernel.hpp"

namespace fw::python {

/// A hyperparameter with its default.
struct Setting {
  const char* name;
  double value;
};

/// The base of a Rule without hyperparameters.
template <template <class> class Type> struct PlainRule {
  template <class S> using type = Type<S>;
  static constexpr std::array<Setting, 0> settings{};
  template <class S> static Type<S> make(Sizes<> sizes) { return Type<S>(sizes); }
};

/// The class of one rule, for float and double. `Rule` says what differs between rules:
///
///     struct Hebbian {
///       static constexpr auto name = "HebbianMemory", doc = "…";
///       template <class S> using type = fw::HebbianMemory<S>;
///       static constexpr std::array settings{Setting{"decay", 0.95}, Setting{"rate", 0.5}};
///       template <class S> static type<S> make(fw::Sizes<> sizes, double decay, double rate);
///     };
///
/// The names and sizes of the inputs come from the rule's signature.
template <class Rule> struct RuleMemory : Memory {};

/// Adds the class to the module.
template <class Rule> void bind_rule(nb::module_& m);

namespace detail {

inline constexpr const char* scan_doc =
    R"(Writes and reads whole sequences, as many as the state has; the state becomes the final one.

Inputs are [batch, time, heads, entries], or [batch, time, heads] for one number per token. They are
viewed without a copy; the entries of a token must be contiguous, and the stride over time positive. Returns [batch, time, heads, d_v], a
tensor if the query is one, else a NumPy array. With `checkpoints` it stores there what `backward` needs.
Heads and sequences run in threads, without Python's lock.

Raises TypeError for another dtype or device, ValueError for another shape; the state is unchanged then.
A MemoryError may leave some heads with the old state and others with a newer one.)";

inline constexpr const char* step_doc =
    "As scan, for one token per sequence: the inputs have no axis of time.";

inline constexpr const char* backward_doc =
    R"(The gradients of all inputs, by name, and of the initial state.

`start` is the checkpoints that a scan of an equal memory filled, or the initial state: then the forward
pass runs once more. The inputs must be those of the scan. `state_gradient` is the gradient of the final
state, 0 by default; memory.state(arrays) makes one. Exact up to rounding. Raises as scan does.)";

template <class T, std::size_t> using Repeated = T;

template <class Rule, class S, class... Settings>
std::shared_ptr<const Kernel> make_kernel(Sizes<> sizes, Index heads, Settings... settings) {
  return std::make_shared<RuleKernel<typename Rule::template type<S>>>(
      Rule::template make<S>(sizes, settings...), Rule::name, heads);
}

// "query: Array, key: Array"
template <class M> std::string input_list() {
  std::string list;
  const auto add = [&](const auto& names) {
    for (const std::string_view name : names)
      list += (list.empty() ? "" : ", ") + std::string(name) + ": Array";
  };
  add(ReadSequence<M>::names);
  add(WriteSequence<M>::names);
  return list;
}

template <class Rule, std::size_t... I>
void bind_constructor(nb::class_<RuleMemory<Rule>, Memory>& c, std::index_sequence<I...>) {
  c.def(
      "__init__",
      [](RuleMemory<Rule>* self, Index key_size, std::optional<Index> value_size, Index heads,
         nb::handle dtype, Repeated<double, I>... settings) {
        const Sizes<> sizes{key_size, value_size.value_or(key_size)};
        const std::string type = dtype_name(dtype);
        check_heads(Rule::name, heads);
        auto kernel = type == "float32" ? make_kernel<Rule, float>(sizes, heads, settings...)
                                        : make_kernel<Rule, double>(sizes, heads, settings...);
        new (self) RuleMemory<Rule>{{std::move(kernel),
                                     {{"key_size", nb::int_(key_size)},
                                      {"value_size", nb::int_(sizes.value_size)},
                                      {"heads", nb::int_(heads)},
                                      {"dtype", nb::str(type.c_str())},
                                      {Rule::settings[I].name, nb::float_(settings)}...}}};
      },
      nb::arg("key_size"), nb::arg("value_size") = nb::none(), nb::arg("heads") = 1,
      nb::arg("dtype") = "float32", (nb::arg(Rule::settings[I].name) = Rule::settings[I].value)...);
}

template <class Rule, std::size_t... I>
void bind_calls(nb::class_<RuleMemory<Rule>, Memory>& c, std::index_sequence<I...>) {
  using M = typename Rule::template type<float>;
  static const std::string list = input_list<M>();
  static const std::string scan_text = "def scan(self, state: State, " + list +
                                       ", *, checkpoints: Checkpoints | None = None) -> Array";
  static const std::string step_text = "def step(self, state: State, " + list + ") -> Array";
  static const std::string backward_text =
      "def backward(self, start: Checkpoints | State, " + list +
      ", *, output_gradient: Array, state_gradient: State | None = None) -> "
      "tuple[dict[str, Array], State]";
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto name : ReadSequence<M>::names) all.emplace_back(name);
    for (const auto name : WriteSequence<M>::names) all.emplace_back(name);
    return all;
  }();
  c.def(
      "scan",
      [](nb::handle self, State& state, Repeated<nb::handle, I>... inputs,
         Checkpoints* checkpoints) { return scan(self, state, {inputs...}, checkpoints); },
      nb::sig(scan_text.c_str()), nb::arg("state"), nb::arg(names[I].c_str()).none()...,
      nb::kw_only(), nb::arg("checkpoints") = nb::none(), scan_doc);
  c.def(
      "step",
      [](nb::handle self, State& state, Repeated<nb::handle, I>... inputs) {
        return step(self, state, {inputs...});
      },
      nb::sig(step_text.c_str()), nb::arg("state"), nb::arg(names[I].c_str()).none()..., step_doc);
  c.def(
      "backward",
      [](nb::handle self, nb::handle start, Repeated<nb::handle, I>... inputs,
         nb::handle output_gradient, State* state_gradient) {
        return backward(self, start, {inputs...}, output_gradient, state_gradient);
      },
      nb::sig(backward_text.c_str()), nb::arg("start").none(), nb::arg(names[I].c_str()).none()...,
      nb::kw_only(), nb::arg("output_gradient").none(), nb::arg("state_gradient") = nb::none(),
      backward_doc);
}

}  // namespace detail

template <class Rule> void bind_rule(nb::module_& m) {
  using M = typename Rule::template type<float>;
  constexpr std::size_t inputs = member_count<ReadSequence<M>> + member_count<WriteSequence<M>>;
  nb::class_<RuleMemory<Rule>, Memory> c(m, Rule::name, Rule::doc, nb::is_final());
  detail::bind_constructor<Rule>(c, std::make_index_sequence<Rule::settings.size()>{});
  detail::bind_calls<Rule>(c, std::make_index_sequence<inputs>{});
}

}  // namespace fw::python
