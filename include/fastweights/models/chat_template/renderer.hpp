#pragma once

#include <fastweights/models/chat_template/evaluator.hpp>

/// \file
/// Renders the statements of a template.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Renders a template once.
class Renderer : Evaluator {
 public:
  /// `variables` are those of the template; `now` is the time of strftime_now.
  Renderer(std::map<std::string, Value, std::less<>> variables, std::time_t now, Costs& costs)
      : Evaluator(std::move(variables), now, costs) {}

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

  void write(std::string& out, const std::string& more) {
    costs_.make(more.size());
    if (out.size() + more.size() > Bounds::output_bytes)
      costs_.fail("the text has more than " + std::to_string(Bounds::output_bytes) + " bytes");
    out += more;
  }

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
        return with(node, out);
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

  Flow with(const Node& node, std::string& out) {
    Values values;
    for (std::size_t i = 1; i < node.parts.size(); i += 2)
      values.push_back(evaluate(*node.parts[i]));
    const Block block(*this);
    for (std::size_t i = 0; i < values.size(); ++i) assign(*node.parts[2 * i], values[i]);
    return run(node.body, out);
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
  Value call_macro(const Macro& macro, Arguments given) override {
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

  std::size_t loops_ = 0;
};

}  // namespace fw::models::chat
