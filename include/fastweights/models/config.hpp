#pragma once

#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/models/known_names.hpp>
#include <fastweights/models/strict_json.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// \file
/// The config.json of a published model, read with clear errors. Needs nlohmann-json.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The sizes and options of a model, by the names of its publisher. All functions throw
/// std::invalid_argument, which names the entry, what was expected and what is there. Where
/// transformers reads an entry of a model_type under two names, both have the value that it takes;
/// see known_names.hpp.
class Config {
 public:
  /// `where` is what errors begin with.
  explicit Config(nlohmann::json json, std::string where = "config.json")
      : json_(std::move(json)), where_(std::move(where)) {
    if (!json_.is_object()) fail("", "expected an object");
    if (!has("model_type") || !json_.at("model_type").is_string()) return;
    if (has("per_layer_config"))
      fail("per_layer_config", "supported are the same sizes everywhere");
    origins_ = detail::add_known_names(
        json_, [&](const char* name, const char* expected) { fail(name, expected); });
  }
  /// From the text of a file, by parse_strictly.
  static Config parse(const std::string& text, const std::string& where = "config.json") {
    return Config(parse_strictly(text, where), where);
  }

  /// This file, read as one of this model_type if it names none.
  Config of_type(const std::string& model_type) const {
    if (has("model_type")) return *this;
    nlohmann::json named = json_;
    named["model_type"] = model_type;
    return Config(std::move(named), where_);
  }

  /// True if the entry is there and not null.
  bool has(const std::string& name) const {
    const auto found = json_.find(name);
    return found != json_.end() && !found->is_null();
  }
  /// True if the entry is null, which some sources take as another value than their default.
  bool is_null(const std::string& name) const {
    return json_.contains(name) && json_.at(name).is_null();
  }
  /// True if the entry is there, null or not.
  bool contains(const std::string& name) const { return json_.contains(name); }
  /// The names of all entries.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : json_.items()) all.push_back(name);
    return all;
  }
  /// True if the entries are the same.
  bool operator==(const Config& other) const { return json_ == other.json_; }
  /// True if the entry is a nested object.
  bool is_object(const std::string& name) const { return has(name) && json_.at(name).is_object(); }
  /// True if the entry is a list.
  bool is_list(const std::string& name) const { return has(name) && json_.at(name).is_array(); }
  /// A size: 1 to 2^31.
  Index size(const std::string& name) const {
    at(name);
    const Index n = count(name);
    if (n < 1) fail(name, "expected at least 1");
    return n;
  }
  /// A size, or `otherwise` if the entry is absent.
  Index size(const std::string& name, Index otherwise) const {
    return has(name) ? size(name) : otherwise;
  }
  /// A whole number that a source computes from the entry, such as a ratio times hidden_size.
  Index computed_size(const std::string& name, double exact, const std::string& what) const {
    if (!(exact >= 1 && exact <= most)) fail(name, "times " + what + " is not a size");
    return Index(exact);
  }
  /// A number of things, such as experts: 0 to 2^31, and 0 if the entry is absent.
  Index count(const std::string& name) const {
    if (!has(name)) return 0;
    const nlohmann::json& entry = at(name);
    if (!entry.is_number_integer() || entry.get<double>() < 0 || entry.get<double>() > most)
      fail(name, "expected a whole number of at least 0");
    return entry.get<Index>();
  }
  /// A number from -1e12 to 1e12. With larger factors no model computes finite numbers.
  double number(const std::string& name) const {
    const double given = limit(name);
    if (!(std::abs(given) <= 1e12)) fail(name, "expected a number of at most 1e12");
    return given;
  }
  /// A number without this bound. It may be infinite as transformers writes it.
  double limit(const std::string& name) const {
    const nlohmann::json& entry = at(name);
    // transformers writes {"__float__": "Infinity"} for what JSON has no number for.
    if (entry == nlohmann::json::object({{"__float__", "Infinity"}})) return HUGE_VAL;
    if (!entry.is_number()) fail(name, "expected a number");
    return entry.get<double>();
  }
  /// A number, or `otherwise` if the entry is absent.
  double number(const std::string& name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }
  /// True or false, or `otherwise` if the entry is absent.
  bool flag(const std::string& name, bool otherwise = false) const {
    if (!has(name)) return otherwise;
    if (!json_[name].is_boolean()) fail(name, "expected true or false");
    return json_[name].get<bool>();
  }
  /// A text, or `otherwise` if the entry is absent.
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    if (!has(name)) return otherwise;
    if (!json_[name].is_string()) fail(name, "expected a text");
    return json_[name].get<std::string>();
  }
  /// True if the entry is this text; it may be of another type, such as a size or "auto".
  bool is_text(const std::string& name, const char* value) const {
    return has(name) && json_.at(name) == value;
  }
  /// The texts of a list, such as layer_types.
  std::vector<std::string> texts(const std::string& name) const {
    return list<std::string>(name, [](const nlohmann::json& e) { return e.is_string(); });
  }
  /// The numbers of a list.
  std::vector<double> numbers(const std::string& name) const {
    return numbers(name, &Config::number);
  }
  /// The limits of a list.
  std::vector<double> limits(const std::string& name) const {
    return numbers(name, &Config::limit);
  }
  /// The sizes of a list, 0 included.
  std::vector<Index> sizes(const std::string& name) const {
    return list<Index>(name, [](const nlohmann::json& e) {
      return e.is_number_unsigned() && e.get<double>() <= most;
    });
  }
  /// A nested object, such as rope_parameters; empty if it is not there.
  Config part(const std::string& name) const {
    return Config(has(name) ? json_[name] : nlohmann::json::object(), where_ + ": " + name);
  }

  /// A nested object whose entry `name` is that of this one.
  Config part_as(const std::string& nested, const std::string& name) const {
    Config inner = part(nested);
    inner.json_[name] = at(name);
    return inner;
  }

  /// Throws unless the entry is absent or one of the texts: an option that is not implemented.
  void expect(const std::string& name, std::initializer_list<const char*> supported) const {
    if (!has(name)) return;
    const std::string given = text(name);
    std::string all;
    for (const char* each : supported) {
      if (given == each) return;
      all += (all.empty() ? "" : " or ") + std::string(each);
    }
    fail(name, "supported is " + all);
  }
  /// Throws unless the entry is absent or this size, which a source computes as `what`.
  void expect_size(const std::string& name, Index size, const std::string& what) const {
    if (has(name) && this->size(name) != size) fail(name, "expected " + what);
  }
  /// Throws unless the entry is absent or has this value.
  void expect_flag(const std::string& name, bool supported) const {
    if (has(name) && flag(name) != supported)
      fail(name, supported ? "supported is true" : "supported is false");
  }

  /// Throws std::invalid_argument with the entry, what is expected and what is given.
  [[noreturn]] void fail(const std::string& name, const std::string& expected) const {
    const std::string given = json_.is_object() && json_.contains(name)
                                  ? ", is " + json_[name].dump().substr(0, 100)
                                  : std::string();
    const auto origin = origins_.find(name);
    fw::detail::throw_invalid(
        {where_, ": ", origin == origins_.end() ? name : origin->second, ": ", expected, given});
  }

 private:
  const nlohmann::json& at(const std::string& name) const {
    if (!has(name)) fail(name, "is missing");
    return json_.at(name);
  }
  using Number = double (Config::*)(const std::string&) const;
  std::vector<double> numbers(const std::string& name, Number read) const {
    if (!at(name).is_array()) fail(name, "expected a list");
    std::vector<double> entries;
    for (const nlohmann::json& each : json_[name])
      entries.push_back(
          (Config(nlohmann::json::object({{"entry", each}}), where_ + ": " + name).*read)("entry"));
    return entries;
  }
  template <class T, class Fits>
  std::vector<T> list(const std::string& name, const Fits& fits) const {
    if (!at(name).is_array()) fail(name, "expected a list");
    std::vector<T> entries;
    for (const nlohmann::json& each : json_[name]) {
      if (!fits(each)) fail(name, "has an entry of another type");
      entries.push_back(each.get<T>());
    }
    return entries;
  }

  static constexpr double most = 2147483648.0;

  nlohmann::json json_;
  std::string where_;
  std::map<std::string, std::string> origins_;  // what errors call entries of another name
};

/// The part for text of the config.json of a model for text and images. Its embeddings are tied if
/// either part says so; see tied_head.hpp.
inline Config text_config(const Config& c) {
  if (!c.has("text_config")) return c;
  return c.flag("tie_word_embeddings") ? c.part_as("text_config", "tie_word_embeddings")
                                       : c.part("text_config");
}

}  // namespace fw::models
