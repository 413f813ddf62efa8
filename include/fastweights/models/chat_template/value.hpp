#pragma once

#include <algorithm>
#include <cstdint>
#include <fastweights/models/chat_template/bounds.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// \file
/// Values of a chat template, which are those of Python.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

class Value;
using Values = std::vector<Value>;
using Entries = std::vector<std::pair<Value, Value>>;

/// The type of a value.
enum class Kind {
  undefined,  ///< of a name that does not exist; its text says which
  none,
  boolean,
  integer,
  real,
  text,  ///< UTF-8
  list,
  tuple,
  dict,       ///< in the order of its entries
  view,       ///< of a dict, and a range: has a length, and is read often
  generator,  ///< of a filter such as map: is read once
  object      ///< a namespace, a loop or a function
};

/// Objects that a template changes or calls. The renderer owns it, since namespaces may hold each
/// other.
struct Object {
  virtual ~Object() = default;  ///< deleted through this base
};

/// A value. Nothing changes it, but that a generator is read and the members of an object are set.
class Value {
 public:
  struct List {
    Values items;
    int levels;
  };
  struct Dict {
    Entries entries;
    int levels;
  };
  struct Generator {
    Values items;
    int levels;
    bool is_read = false;
  };

  Value() = default;
  static Value undefined(std::string name) { return text_of(Kind::undefined, std::move(name)); }
  static Value none() { return Value(Kind::none, std::monostate()); }
  static Value boolean(bool b) { return Value(Kind::boolean, b); }
  static Value integer(std::int64_t i) { return Value(Kind::integer, i); }
  static Value real(double x) { return Value(Kind::real, x); }
  static Value object(Object& o) { return Value(Kind::object, &o); }
  /// Texts and lists count as made.
  static Value text(std::string text, Costs& costs) {
    costs.make(text.size());
    if (text.size() > Bounds::text_bytes)
      costs.fail("a text has more than " + std::to_string(Bounds::text_bytes) + " bytes");
    return text_of(Kind::text, std::move(text));
  }
  static Value list(Values items, Costs& costs, Kind kind = Kind::list) {
    costs.make(items.size() * sizeof(Value));
    int levels = 0;
    for (const Value& each : items) levels = std::max(levels, each.levels());
    check_levels(++levels, costs);
    if (kind == Kind::generator)
      return Value(kind, std::make_shared<Generator>(Generator{std::move(items), levels}));
    return Value(kind, std::make_shared<const List>(List{std::move(items), levels}));
  }
  static Value dict(Entries entries, Costs& costs) {
    costs.make(entries.size() * 2 * sizeof(Value));
    int levels = 0;
    for (const auto& [key, value] : entries)
      levels = std::max({levels, key.levels(), value.levels()});
    check_levels(++levels, costs);
    return Value(Kind::dict, std::make_shared<const Dict>(Dict{std::move(entries), levels}));
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  /// True of list, tuple and view.
  bool has_items() const { return is(Kind::list) || is(Kind::tuple) || is(Kind::view); }
  /// True of integer and boolean, which is one in Python.
  bool is_whole() const { return is(Kind::integer) || is(Kind::boolean); }
  bool is_number() const { return is_whole() || is(Kind::real); }

  bool flag() const { return std::get<bool>(data_); }
  std::int64_t whole() const {
    return is(Kind::boolean) ? std::int64_t(flag()) : std::get<std::int64_t>(data_);
  }
  double number() const {
    return is(Kind::real) ? std::get<double>(data_) : static_cast<double>(whole());
  }
  /// The text, or the name of what is undefined.
  const std::string& text() const { return *std::get<Text>(data_); }
  const Values& items() const { return std::get<std::shared_ptr<const List>>(data_)->items; }
  const Entries& entries() const { return std::get<std::shared_ptr<const Dict>>(data_)->entries; }
  Object* object() const { return std::get<Object*>(data_); }
  /// The rest of a generator, once.
  Values read() const {
    Generator& generator = *std::get<std::shared_ptr<Generator>>(data_);
    return std::exchange(generator.is_read, true) ? Values() : generator.items;
  }
  /// Levels of lists and dicts.
  int levels() const {
    if (has_items()) return std::get<std::shared_ptr<const List>>(data_)->levels;
    if (is(Kind::dict)) return std::get<std::shared_ptr<const Dict>>(data_)->levels;
    if (is(Kind::generator)) return std::get<std::shared_ptr<Generator>>(data_)->levels;
    return 0;
  }
  /// True for a text of the filter safe: others are escaped for HTML when they are added.
  bool is_safe() const { return is_safe_; }
  /// The text as a safe one.
  Value safe() const {
    Value copy = *this;
    copy.is_safe_ = true;
    return copy;
  }
  /// True if it is the same object, not only an equal one.
  bool is_same(const Value& other) const { return kind_ == other.kind_ && data_ == other.data_; }

 private:
  using Text = std::shared_ptr<const std::string>;
  using Data =
      std::variant<std::monostate, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Generator>, Object*>;

  Value(Kind kind, Data data) : kind_(kind), data_(std::move(data)) {}
  static Value text_of(Kind kind, std::string text) {
    return Value(kind, std::make_shared<const std::string>(std::move(text)));
  }
  static void check_levels(int levels, const Costs& costs) {
    if (levels > Bounds::values)
      costs.fail("a value has more than " + std::to_string(Bounds::values) + " levels");
  }

  Kind kind_ = Kind::none;
  bool is_safe_ = false;
  Data data_;
};

/// Python's name of the type of a value.
inline std::string type_name(const Value& value) {
  constexpr const char* names[] = {"an undefined value",
                                   "None",
                                   "a bool",
                                   "an int",
                                   "a float",
                                   "a str",
                                   "a list",
                                   "a tuple",
                                   "a dict",
                                   "a view",
                                   "a generator",
                                   "an object"};
  if (value.is(Kind::undefined)) return "'" + value.text() + "', which is undefined";
  return names[static_cast<int>(value.kind())];
}

/// Members of namespace(…).
struct Namespace : Object {
  std::map<std::string, Value, std::less<>> members;
};

/// A function of the environment, or a method of a value.
struct Function : Object {
  std::string name;
  Value self;  ///< none for a function
  bool is_method = false;
};

/// Arguments of a call, a filter or a test.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The arguments by the names of the parameters; absent ones are undefined. Throws for others, and
/// for fewer than `required`.
inline Values bound(const Arguments& given, const std::string& function,
                    const std::vector<std::string>& names, std::size_t required,
                    const Costs& costs) {
  Values all(names.size(), Value::undefined("argument"));
  std::vector<bool> is_given(names.size());
  if (given.positional.size() > names.size())
    costs.fail(function + " has " + std::to_string(given.positional.size()) +
               " arguments, expected at most " + std::to_string(names.size()));
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    all[i] = given.positional[i];
    is_given[i] = true;
  }
  for (const auto& [name, value] : given.named) {
    const auto at = std::size_t(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size() || is_given[at])
      costs.fail(function + ": the argument " + name + " is not supported, or is there twice");
    all[at] = value;
    is_given[at] = true;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!is_given[i]) costs.fail(function + ": the argument " + names[i] + " is missing");
  return all;
}

}  // namespace fw::models::chat
