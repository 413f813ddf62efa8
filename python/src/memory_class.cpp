#include "memory_class.hpp"

#include <algorithm>
#include <cmath>
#include <fastweights/any_memory/table.hpp>

/// \file
/// Names, sizes and defaults come from the table: a memory is made in four example sizes, which
/// tell what depends on the sizes.

namespace fw::python {

namespace {

// A memory of example sizes with the defaults of its options.
struct Example {
  Index key_size, value_size;
  std::vector<MemoryOption> options;
  AnyMemory<float> memory;
};

Example make_example(const std::string& name, Index key_size, Index value_size) {
  const MemoryOptions sizes{.key_size = key_size, .value_size = value_size};
  fw::detail::OptionReader reader(name, sizes);
  AnyMemory<float> memory = fw::detail::memory_table<float>().find(name).make(reader);
  return {key_size, value_size, reader.known(), std::move(memory)};
}

using Examples = std::vector<Example>;

Examples make_examples(const std::string& name) {
  Examples all;
  if (memory_facts(name).square)
    for (const Index d : {4, 8}) all.push_back(make_example(name, d, d));
  else
    for (const auto& [k, v] : {std::pair<Index, Index>{4, 4}, {8, 4}, {4, 8}})
      all.push_back(make_example(name, k, v));
  return all;
}

std::vector<Setting> settings_of(const Examples& examples) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < examples[0].options.size(); ++i) {
    const MemoryOption& option = examples[0].options[i];
    // `heads` is a parameter of every class: the streams of a state.
    const std::string name = option.name == "heads" ? "inner_heads" : option.name;
    Setting setting{name, option.name, option.value, option.kind};
    for (const Example& other : examples)
      if (other.options[i].value != option.value) setting.value.reset();
    settings.push_back(setting);
  }
  return settings;
}

// The members of what is read with, then those of what is written, without repetitions.
void set_inputs(MemoryClass& type, const AnyMemory<float>& memory) {
  const auto add = [&](std::span<const SignatureMember> members, std::vector<std::size_t>& which) {
    for (const SignatureMember& m : members) {
      const auto same = std::find_if(type.inputs.begin(), type.inputs.end(),
                                     [&](const Member& other) { return other.name == m.name; });
      which.push_back(static_cast<std::size_t>(same - type.inputs.begin()));
      // One row whatever the sizes is a number too: beta of GatedDeltaProduct.
      if (same == type.inputs.end())
        type.inputs.push_back({std::string(m.name), m.rows, m.chunks ? 1 : m.width,
                               m.is_number || m.rows == 1, m.chunks});
    }
  };
  add(memory.read_with(), type.read_with);
  add(memory.written(), type.written);
}

std::string number_text(double x) {
  std::string text = fw::detail::number_text(x);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string value_text(const Setting& setting) {
  if (!setting.value) return "None";
  switch (setting.kind) {
    case OptionKind::flag:
      return *setting.value == 0 ? "False" : "True";
    case OptionKind::integer:
      return std::to_string(static_cast<Index>(*setting.value));
    default:
      return number_text(*setting.value);
  }
}

std::string type_text(const Setting& setting) {
  const char* const names[] = {"float", "int", "bool"};
  return names[static_cast<int>(setting.kind)] + std::string(setting.value ? "" : " | None");
}

void set_methods(MemoryClass& type) {
  std::vector<Parameter> init{{"key_size", "int"},
                              {"value_size", "int | None", "None"},
                              {"heads", "int", "1"},
                              {"dtype", "typing.Any", "'float32'"}};
  for (const Setting& s : type.settings) init.push_back({s.name, type_text(s), value_text(s)});
  type.init = Parameters("__init__", init, "None");

  std::vector<Parameter> inputs;
  for (const Member& member : type.inputs) inputs.push_back({member.name, "Array"});
  const auto method = [&](const char* name, const Parameter& first,
                          std::vector<Parameter> by_keyword, const char* result) {
    std::vector<Parameter> all{first};
    all.insert(all.end(), inputs.begin(), inputs.end());
    all.insert(all.end(), by_keyword.begin(), by_keyword.end());
    return Parameters(name, all, result);
  };
  type.scan = method("scan", {"state", "State"},
                     {{"checkpoints", "Checkpoints | None", "None", true}}, "Array");
  type.step = method("step", {"state", "State"}, {}, "Array");
  type.backward = method(
      "backward", {"start", "Checkpoints | State"},
      {{"output_gradient", "Array", "", true}, {"state_gradient", "State | None", "None", true}},
      "tuple[dict[str, Array], State]");
}

std::string term(double factor, const std::string& size) {
  if (factor == 0) return "";
  if (factor == 1) return size;
  if (factor < 1) return size + "/" + fw::detail::number_text(1 / factor);
  return fw::detail::number_text(factor) + " " + size;
}

// "d_k", "2 d + 1" or the name of an option, from the rows in each example.
std::string rows_text(const Examples& examples, const std::vector<Index>& rows) {
  for (std::size_t i = 0; i < examples[0].options.size(); ++i) {
    bool same = true;
    for (std::size_t e = 0; e < examples.size(); ++e)
      same = same && examples[e].options[i].value == static_cast<double>(rows[e]);
    if (same) return examples[0].options[i].name;
  }
  const bool square = examples.size() == 2;
  const double by_key = static_cast<double>(rows[1] - rows[0]) / 4;
  const double by_value = square ? 0 : static_cast<double>(rows[2] - rows[0]) / 4;
  const double constant = static_cast<double>(rows[0]) - 4 * (by_key + by_value);
  std::string text;
  for (const std::string& each : {term(by_key, square ? "d" : "d_k"), term(by_value, "d_v"),
                                  constant == 0 ? "" : fw::detail::number_text(constant)})
    if (!each.empty()) text += (text.empty() ? "" : " + ") + each;
  return text;
}

// "query [..., d_k]", from the members of this name and place in each example.
template <class Get>
std::string member_text(const Examples& examples, const Member& member, const Get& get) {
  std::vector<Index> rows;
  for (const Example& example : examples) rows.push_back(get(example.memory).rows);
  const std::string shape = member.is_number ? "[...]" : "[..., " + rows_text(examples, rows) + "]";
  const std::string more =
      member.width > 1 ? " (" + std::to_string(member.width) + " a token)" : "";
  return member.name + " " + shape + more;
}

// "Inputs: query [..., d_k], key [..., d_k]. Output: [..., d_v]."
std::string members_text(const MemoryClass& type, const Examples& examples) {
  std::string text = "Inputs: ";
  for (std::size_t i = 0; i < type.inputs.size(); ++i) {
    const auto get = [&](const AnyMemory<float>& memory) {
      const auto in = [&](const auto& which, const auto& members) {
        const auto at = std::find(which.begin(), which.end(), i);
        return at == which.end() ? nullptr : &members[static_cast<std::size_t>(at - which.begin())];
      };
      const auto* member = in(type.read_with, memory.read_with());
      return member ? *member : *in(type.written, memory.written());
    };
    text += (i == 0 ? "" : ", ") + member_text(examples, type.inputs[i], get);
  }
  return text + ". " +
         member_text(examples, {"Output"},
                     [](const AnyMemory<float>& memory) { return memory.given()[0]; }) +
         ".";
}

}  // namespace

MemoryClass make_memory_class(const std::string& name) {
  const Examples examples = make_examples(name);
  MemoryClass type;
  type.name = name;
  type.settings = settings_of(examples);
  set_inputs(type, examples[0].memory);
  const auto in_double = memory_names<double>();
  type.has_double = std::find(in_double.begin(), in_double.end(), name) != in_double.end();
  set_methods(type);
  const std::string text(text_of_memory(name));
  type.doc = (text.empty() ? "The memory " + name + " of the C++ library." : text) + "\n\n" +
             members_text(type, examples);
  return type;
}

}  // namespace fw::python
