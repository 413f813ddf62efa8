#pragma once

#include <fastweights/models/chat_template/functions.hpp>
#include <fastweights/models/chat_template/syntax.hpp>

/// \file
/// Evaluates the expressions of a template.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Variables of a block. A name that is not here is that of the block around it.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, Value, std::less<>> variables{};
};
/// A macro, and where it stands.
struct Macro : Object {
  const Node* node = nullptr;
  std::weak_ptr<Scope> scope{};
};
/// The variable `loop`.
struct Loop : Object {
  Values items{};
  std::size_t index = 0, depth = 1;
  std::optional<Value> last{};  ///< that changed() was called with
};

/// Evaluates expressions. What a macro renders is for the Renderer.
class Evaluator {
 protected:
  Evaluator(std::map<std::string, Value, std::less<>> variables, std::time_t now, Costs& costs)
      : costs_(costs), scope_(std::make_shared<Scope>()), global_(scope_), now_(now) {
    global_->variables = std::move(variables);
  }
  ~Evaluator() = default;

  virtual Value call_macro(const Macro& macro, Arguments given) = 0;

  template <class T> T& made() {
    costs_.make(sizeof(T) + 64);
    objects_.push_back(std::make_unique<T>());
    return static_cast<T&>(*objects_.back());
  }
  Value function(const std::string& name, const Value& self, bool is_method) {
    Function& made_ = made<Function>();
    made_.name = name;
    made_.self = self;
    made_.is_method = is_method;
    return Value::object(made_);
  }
  Value text(std::string text) { return Value::text(std::move(text), costs_); }
  void set_member(Namespace& space, const std::string& name, const Value& value) {
    if (name.starts_with('_')) costs_.fail("a namespace takes no name with _ first: " + name);
    costs_.make(name.size() + sizeof(Value));
    space.members[name] = value;
  }

  Value evaluate(const Node& node) {
    const Costs::Level level(costs_);
    costs_.step();
    switch (node.type) {
      case Node::constant:
        return node.value;
      case Node::name:
        return variable(node.text);
      case Node::list:
        return Value::list(all(node.parts), costs_);
      case Node::tuple:
        return Value::list(all(node.parts), costs_, Kind::tuple);
      case Node::dict:
        return dict(node);
      case Node::attribute:
        return attribute(evaluate(*node.parts[0]), node.text);
      case Node::item:
        return item(node);
      case Node::slice:
        return slice(node);
      case Node::call:
        return call(node);
      case Node::filter: {
        const Value value = node.parts[0] ? evaluate(*node.parts[0]) : block_text_;
        return filtered(node.text, value, arguments(node), costs_);
      }
      case Node::test:
        return Value::boolean(passes(node.text, evaluate(*node.parts[0]), arguments(node), costs_));
      case Node::sign:
        return sign(node);
      case Node::binary:
        return binary(node);
      case Node::compare:
        return compare(node);
      case Node::concatenate:
        return concatenated(all(node.parts));
      case Node::conditional:
        if (is_true(evaluate(*node.parts[0]))) return evaluate(*node.parts[1]);
        return node.parts[2] ? evaluate(*node.parts[2]) : Value::undefined("an if without else");
      default:
        costs_.fail("an expression is no expression");
    }
  }
  Values all(const Nodes& nodes) {
    Values values;
    for (const NodePointer& each : nodes) values.push_back(evaluate(*each));
    return values;
  }
  Arguments arguments(const Node& node) {
    Arguments given;
    const std::size_t positional = node.arguments.size() - node.names.size();
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      Value value = evaluate(*node.arguments[i]);
      if (i < positional)
        given.positional.push_back(std::move(value));
      else
        given.named.emplace_back(node.names[i - positional], std::move(value));
    }
    for (const NodePointer& each : node.otherwise) spread(*each, given);
    return given;
  }

  // f(*values) and f(**{name: value}).
  void spread(const Node& node, Arguments& given) {
    const Value value = evaluate(*node.parts[0]);
    if (node.text == "*") {
      for (Value& each : iterated(value, costs_)) given.positional.push_back(std::move(each));
      return;
    }
    if (!value.is(Kind::dict)) costs_.fail("** takes a dict, given is " + type_name(value));
    for (const auto& [name, each] : value.entries())
      given.named.emplace_back(text_of(name, "**", costs_), each);
  }

  Value variable(const std::string& name) {
    for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->outer)
      if (const auto found = scope->variables.find(name); found != scope->variables.end())
        return found->second;
    for (const char* each : {"range", "dict", "namespace", "raise_exception", "strftime_now"})
      if (name == each) return function(name, Value::none(), false);
    for (const char* each : {"cycler", "joiner", "lipsum", "varargs", "kwargs", "self"})
      if (name == each) costs_.fail("the function or variable " + name + " is not supported");
    return Value::undefined(name);
  }
  Value dict(const Node& node) {
    Entries entries;
    for (std::size_t i = 0; i < node.parts.size(); i += 2) {
      Value key = evaluate(*node.parts[i]);
      if (key.has_items() && !key.is(Kind::tuple))
        costs_.fail("a dict has the key " + type_name(key));
      set_entry(entries, std::move(key), evaluate(*node.parts[i + 1]), costs_);
    }
    return Value::dict(std::move(entries), costs_);
  }

  // Methods come before entries, as in jinja2.
  Value attribute(const Value& owner, const std::string& name) {
    if (owner.is(Kind::undefined)) costs_.fail(type_name(owner) + ", has no attribute " + name);
    if (has_method(owner, name)) return function(name, owner, true);
    if (is_method_of_python(owner, name))
      costs_.fail("the method " + name + " of " + type_name(owner) + " is not supported");
    if (is_hidden_method(owner, name)) return Value::undefined(name);
    if (owner.is(Kind::object))
      if (auto* loop_ = dynamic_cast<Loop*>(owner.object())) return of_loop(owner, *loop_, name);
    if (!owner.is(Kind::dict) && !owner.is(Kind::object)) return Value::undefined(name);
    const Value found = item_of(owner, text(name), costs_);
    return found.is(Kind::undefined) ? Value::undefined(name) : found;
  }
  Value of_loop(const Value& self, Loop& loop_, const std::string& name) {
    const auto number = [](std::size_t i) { return Value::integer(std::int64_t(i)); };
    const std::size_t i = loop_.index, n = loop_.items.size();
    if (name == "index") return number(i + 1);
    if (name == "index0") return number(i);
    if (name == "revindex") return number(n - i);
    if (name == "revindex0") return number(n - i - 1);
    if (name == "length") return number(n);
    if (name == "depth") return number(loop_.depth);
    if (name == "depth0") return number(loop_.depth - 1);
    if (name == "first") return Value::boolean(i == 0);
    if (name == "last") return Value::boolean(i + 1 == n);
    if (name == "previtem") return i > 0 ? loop_.items[i - 1] : Value::undefined("loop.previtem");
    if (name == "nextitem")
      return i + 1 < n ? loop_.items[i + 1] : Value::undefined("loop.nextitem");
    if (name == "cycle" || name == "changed") return function("loop." + name, self, true);
    return Value::undefined(name);
  }
  Value item(const Node& node) {
    const Value owner = evaluate(*node.parts[0]), key = evaluate(*node.parts[1]);
    const Value found = item_of(owner, key, costs_);
    if (!found.is(Kind::undefined) || !key.is(Kind::text)) return found;
    return attribute(owner, key.text());
  }
  Value slice(const Node& node) {
    Value bounds[3] = {Value::none(), Value::none(), Value::none()};
    const Value owner = evaluate(*node.parts[0]);
    for (std::size_t i = 0; i < 3; ++i)
      if (node.parts[i + 1]) bounds[i] = evaluate(*node.parts[i + 1]);
    if (owner.is(Kind::undefined)) costs_.fail(type_name(owner) + ", has no entries");
    return slice_of(owner, bounds[0], bounds[1], bounds[2], costs_);
  }

  Value call(const Node& node) {
    const Node& callee = *node.parts[0];
    if (callee.type == Node::attribute) {  // without an object for the method
      const Value owner = evaluate(*callee.parts[0]);
      if (has_method(owner, callee.text))
        return call_method(owner, callee.text, arguments(node), costs_);
      return call(attribute(owner, callee.text), arguments(node));
    }
    const Value function_ = evaluate(callee);
    return call(function_, arguments(node));
  }
  Value call(const Value& callee, const Arguments& given) {
    Object* object = callee.is(Kind::object) ? callee.object() : nullptr;
    if (const auto* macro_ = dynamic_cast<Macro*>(object)) return call_macro(*macro_, given);
    const auto* known = dynamic_cast<Function*>(object);
    if (known == nullptr) costs_.fail(type_name(callee) + " cannot be called");
    if (known->name.starts_with("loop.")) return call_loop(*known, given);
    if (known->is_method) return call_method(known->self, known->name, given, costs_);
    if (known->name == "range") return range(given, costs_);
    if (known->name == "dict") return Value::dict(entries_of(given, "dict", costs_), costs_);
    if (known->name == "strftime_now") return time_text(given, now_, costs_);
    if (known->name == "namespace") return namespace_of(given);
    const Value message = bound(given, known->name, {"message"}, 1, costs_)[0];
    costs_.fail("the template says: " + printed(message, costs_).substr(0, 1000));
  }
  Value namespace_of(const Arguments& given) {
    Namespace& space = made<Namespace>();
    for (const auto& [name, value] : entries_of(given, "namespace", costs_))
      set_member(space, text_of(name, "namespace", costs_), value);
    return Value::object(space);
  }
  Value call_loop(const Function& method, const Arguments& given) {
    Loop& loop_ = dynamic_cast<Loop&>(*method.self.object());
    if (method.name == "loop.cycle") {
      if (given.positional.empty()) costs_.fail("loop.cycle has no values");
      return given.positional[loop_.index % given.positional.size()];
    }
    const Value now = Value::list(given.positional, costs_, Kind::tuple);
    const bool is_new = !loop_.last || !are_equal(*loop_.last, now, costs_);
    loop_.last = now;
    return Value::boolean(is_new);
  }

  Value sign(const Node& node) {
    const Value value = evaluate(*node.parts[0]);
    if (node.text == "not") return Value::boolean(!is_true(value));
    if (!value.is_number()) costs_.fail("the sign " + node.text + " of " + type_name(value));
    if (value.is(Kind::real))
      return Value::real(node.text == "-" ? -value.number() : value.number());
    return operated(node.text, Value::integer(0), value, costs_);
  }
  Value binary(const Node& node) {
    const Value left = evaluate(*node.parts[0]);
    if (node.text == "and" || node.text == "or")
      return is_true(left) == (node.text == "or") ? left : evaluate(*node.parts[1]);
    return operated(node.text, left, evaluate(*node.parts[1]), costs_);
  }
  Value concatenated(const Values& parts) {
    std::string all;
    for (const Value& each : parts) all += printed(each, costs_);
    return text(std::move(all));
  }
  Value compare(const Node& node) {
    Value left = evaluate(*node.parts[0]);
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      const Value right = evaluate(*node.parts[i + 1]);
      if (!holds(node.names[i], left, right)) return Value::boolean(false);
      left = right;
    }
    return Value::boolean(true);
  }
  bool holds(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "==") return are_equal(a, b, costs_);
    if (sign == "!=") return !are_equal(a, b, costs_);
    if (sign == "in") return is_in(a, b, costs_);
    if (sign == "not in") return !is_in(a, b, costs_);
    if (sign == "<") return is_less(a, b, costs_);
    if (sign == ">") return is_less(b, a, costs_);
    return sign == "<=" ? !is_less(b, a, costs_) : !is_less(a, b, costs_);
  }

  Costs& costs_;
  std::shared_ptr<Scope> scope_;
  Value block_text_;  // of the block whose filters are evaluated

 private:
  std::shared_ptr<Scope> global_;
  std::time_t now_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace fw::models::chat
