#pragma once

#include <fastweights/models/chat_template/functions.hpp>
#include <fastweights/models/chat_template/syntax.hpp>

/// \file
/// Evaluates the syntax tree of a template.

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

/// Renders a template once.
class Renderer {
 public:
  /// `variables` are those of the template; `now` is the time of strftime_now.
  Renderer(std::map<std::string, Value, std::less<>> variables, std::time_t now, Costs& costs)
      : now_(now), costs_(costs), global_(std::make_shared<Scope>()), scope_(global_) {
    global_->variables = std::move(variables);
  }

  std::string render(const Nodes& nodes) {
    std::string text;
    run(nodes, text);
    return text;
  }

 private:
  enum class Flow { goes_on, leaves, next };

  // Variables are those of a new block as long as it lives.
  class Block {
   public:
    explicit Block(Renderer& renderer) : Block(renderer, renderer.scope_) {}
    Block(Renderer& renderer, std::shared_ptr<Scope> outer)
        : renderer_(renderer), before_(renderer.scope_), outer_(std::move(outer)) {
      renderer.costs_.make(sizeof(Scope));
      renderer.scope_ = std::make_shared<Scope>(Scope{outer_.get()});
    }
    ~Block() { renderer_.scope_ = before_; }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

   private:
    Renderer& renderer_;
    std::shared_ptr<Scope> before_, outer_;
  };

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
  void write(std::string& out, const std::string& more) {
    costs_.make(more.size());
    if (out.size() + more.size() > Bounds::output_bytes)
      costs_.fail("the text has more than " + std::to_string(Bounds::output_bytes) + " bytes");
    out += more;
  }

  // Statements.

  Flow run(const Nodes& nodes, std::string& out) {
    const Costs::Level level(costs_);
    for (const NodePointer& each : nodes)
      if (const Flow flow = run(*each, out); flow != Flow::goes_on) return flow;
    return Flow::goes_on;
  }
  // In a block of its own.
  std::string rendered(const Nodes& nodes) {
    const Block block(*this);
    std::string out;
    run(nodes, out);
    return out;
  }
  Flow run(const Node& node, std::string& out) {
    costs_.at(node.line);
    costs_.step();
    switch (node.type) {
      case Node::data:
        write(out, node.text);
        break;
      case Node::output:
        write(out, printed(evaluate(*node.parts[0]), costs_));
        break;
      case Node::assign:
        assign(*node.parts[0], evaluate(*node.parts[1]));
        break;
      case Node::assign_body:
        assign_body(node);
        break;
      case Node::branch:
        return branch(node, out);
      case Node::loop:
        loop(node, out);
        break;
      case Node::macro:
        scope_->variables[node.text] = macro(node);
        break;
      case Node::call_block:
        write(out, printed(call_block(node), costs_));
        break;
      case Node::filter_block:
        block_text_ = text(rendered(node.body));
        write(out, printed(evaluate(*node.parts[0]), costs_));
        break;
      case Node::with:
        with(node, out);
        break;
      case Node::generation:
        write(out, rendered(node.body));
        break;
      case Node::leave:
        return Flow::leaves;
      case Node::next:
        return Flow::next;
      default:
        costs_.fail("a statement is no statement");
    }
    return Flow::goes_on;
  }

  void assign(const Node& target, const Value& value) {
    if (target.type == Node::name) {
      costs_.make(target.text.size() + sizeof(Value));
      scope_->variables[target.text] = value;
    } else if (target.type == Node::attribute) {
      assign_member(target, value);
    } else {
      const Values all = iterated(value, costs_);
      if (all.size() != target.parts.size())
        costs_.fail("there are " + std::to_string(all.size()) + " values for " +
                    std::to_string(target.parts.size()) + " names");
      for (std::size_t i = 0; i < all.size(); ++i) assign(*target.parts[i], all[i]);
    }
  }
  void assign_member(const Node& target, const Value& value) {
    const Value owner = variable(target.parts[0]->text);
    auto* space = owner.is(Kind::object) ? dynamic_cast<Namespace*>(owner.object()) : nullptr;
    if (space == nullptr)
      costs_.fail("cannot set " + target.text + " of " + type_name(owner) +
                  ", expected a namespace");
    set_member(*space, target.text, value);
  }
  void set_member(Namespace& space, const std::string& name, const Value& value) {
    if (name.starts_with('_')) costs_.fail("a namespace takes no name with _ first: " + name);
    costs_.make(name.size() + sizeof(Value));
    space.members[name] = value;
  }
  void assign_body(const Node& node) {
    Value value = text(rendered(node.body));
    if (node.parts.size() > 1) {
      block_text_ = value;
      value = evaluate(*node.parts[1]);
    }
    assign(*node.parts[0], value);
  }

  Flow branch(const Node& node, std::string& out) {
    if (is_true(evaluate(*node.parts[0]))) return run(node.body, out);
    for (const NodePointer& each : node.arguments)
      if (is_true(evaluate(*each->parts[0]))) return run(each->body, out);
    return run(node.otherwise, out);
  }

  void loop(const Node& node, std::string& out) {
    Loop& state = made<Loop>();
    state.depth = ++loops_;
    state.items = chosen(node, iterated(evaluate(*node.parts[1]), costs_));
    for (; state.index < state.items.size(); ++state.index) {
      const Block block(*this);
      scope_->variables["loop"] = Value::object(state);
      assign(*node.parts[0], state.items[state.index]);
      if (run(node.body, out) == Flow::leaves) break;
    }
    --loops_;
    if (state.items.empty()) {
      const Block block(*this);
      run(node.otherwise, out);
    }
  }
  // Those for which the condition holds.
  Values chosen(const Node& node, Values items) {
    if (node.parts[2] == nullptr) return items;
    Values kept;
    for (const Value& each : items) {
      const Block block(*this);
      assign(*node.parts[0], each);
      if (is_true(evaluate(*node.parts[2]))) kept.push_back(each);
    }
    return kept;
  }

  void with(const Node& node, std::string& out) {
    Values values;
    for (std::size_t i = 1; i < node.parts.size(); i += 2)
      values.push_back(evaluate(*node.parts[i]));
    const Block block(*this);
    for (std::size_t i = 0; i < values.size(); ++i) assign(*node.parts[2 * i], values[i]);
    run(node.body, out);
  }

  Value macro(const Node& node) {
    Macro& made_ = made<Macro>();
    made_.node = &node;
    made_.scope = scope_;
    return Value::object(made_);
  }
  Value call_block(const Node& node) {
    const Node& call_ = *node.parts[0];
    Arguments given = arguments(call_);
    given.named.emplace_back("caller", macro(*node.parts[1]));
    return call(evaluate(*call_.parts[0]), given);
  }
  Value call_macro(const Macro& macro, Arguments given) {
    const Costs::Level level(costs_);
    const Node& node = *macro.node;
    const std::shared_ptr<Scope> outer = macro.scope.lock();
    if (outer == nullptr) costs_.fail("the macro " + node.text + " is called outside of its block");
    Value caller = Value::undefined("caller");
    if (!given.named.empty() && given.named.back().first == "caller") {
      caller = given.named.back().second;
      given.named.pop_back();
    }
    const int line = costs_.line();
    const Values values = bound(given, "the macro " + node.text, node.names, 0, costs_);
    const Block block(*this, outer);
    if (node.text != "caller") scope_->variables["caller"] = caller;
    const std::size_t first = node.names.size() - node.parts.size();  // with a default
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_absent = values[i].is(Kind::undefined) && i >= first;
      scope_->variables[node.names[i]] = is_absent ? evaluate(*node.parts[i - first])
                                         : values[i].is(Kind::undefined)
                                             ? Value::undefined(node.names[i])
                                             : values[i];
    }
    std::string out;
    run(node.body, out);
    costs_.at(line);
    return text(std::move(out));
  }

  // Expressions.

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

  std::time_t now_;
  Costs& costs_;
  std::shared_ptr<Scope> global_, scope_;
  std::vector<std::unique_ptr<Object>> objects_;
  Value block_text_;  // of the block whose filters are evaluated
  std::size_t loops_ = 0;
};

}  // namespace fw::models::chat
