#pragma once

#include <fastweights/models/chat_template/expressions.hpp>

/// \file
/// Reads the syntax tree of a template, with the grammar of jinja2.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Reads statements. Throws std::invalid_argument with the line for what is not supported, and
/// names it.
class Parser : ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, Costs& costs) : ExpressionParser(std::move(tokens), costs) {}

  /// The whole template.
  Nodes read() {
    Nodes all = statements({});
    if (!at(Token::finish)) fail("expected the end of the template");
    return all;
  }

 private:
  // Statements up to a block that begins with one of these names; it is the next token.
  Nodes statements(Names ends) {
    const Depth depth(*this);
    Nodes all;
    while (!at(Token::finish)) {
      if (at(Token::data)) {
        all.push_back(node(Node::data, {}, now().content));
        take();
      } else if (at(Token::begin_output)) {
        take();
        all.push_back(node(Node::output, nodes(tuple_or_expression())));
        end_tag();
      } else {
        take();
        if (at_any(ends)) return all;
        if (auto statement_ = statement()) all.push_back(std::move(statement_));
      }
    }
    if (ends.size() > 0) fail("expected " + std::string(*(ends.end() - 1)));
    return all;
  }
  Nodes body(std::string_view end) {
    end_tag();
    Nodes all = statements({end});
    expect_name(end);
    end_tag();
    return all;
  }

  NodePointer statement() {
    if (skip_name("set")) return set();
    if (skip_name("if")) return branch();
    if (skip_name("for")) return loop();
    if (skip_name("macro")) return macro();
    if (skip_name("call")) return call_block();
    if (skip_name("filter")) return filter_block();
    if (skip_name("with")) return with();
    if (skip_name("generation")) return body_of_macro(node(Node::generation), "endgeneration");
    const bool leaves = at_name("break");
    if (leaves || at_name("continue")) {
      if (loops_ == 0) fail("expected it inside of a loop");
      take();
      end_tag();
      return node(leaves ? Node::leave : Node::next);
    }
    if (!at(Token::name)) fail("expected the name of a statement");
    fail_unsupported("the statement " + now().content.substr(0, 40));
  }
  NodePointer with_body(NodePointer made, std::string_view end) {
    made->body = body(end);
    return measured(std::move(made));
  }

  NodePointer set() {
    NodePointer target = targets(true);
    if (skip_sign("=")) {
      NodePointer made = node(Node::assign, nodes(std::move(target), tuple_or_expression()));
      end_tag();
      return made;
    }
    NodePointer made = node(Node::assign_body, nodes(std::move(target)));
    if (at_sign("|")) made->parts.push_back(filters(nullptr));
    const int outer = std::exchange(loops_, 0);
    made = with_body(std::move(made), "endset");
    loops_ = outer;
    return made;
  }

  NodePointer branch() {
    NodePointer made = node(Node::branch, nodes(tuple_or_expression(false)));
    end_tag();
    made->body = statements({"elif", "else", "endif"});
    Node* last = made.get();  // an elif is a branch of what is otherwise; levels do not add up
    while (skip_name("elif")) {
      NodePointer more = node(Node::branch, nodes(tuple_or_expression(false)));
      end_tag();
      more->body = statements({"elif", "else", "endif"});
      made->arguments.push_back(measured(std::move(more)));
    }
    if (skip_name("else")) {
      end_tag();
      last->otherwise = statements({"endif"});
    }
    expect_name("endif");
    end_tag();
    return measured(std::move(made));
  }

  NodePointer loop() {
    NodePointer target = targets(false);
    expect_name("in");
    NodePointer made = node(Node::loop, nodes(std::move(target), tuple_or_expression(false)));
    made->parts.push_back(skip_name("if") ? expression() : nullptr);
    if (at_name("recursive")) fail_unsupported("a recursive loop");
    end_tag();
    ++loops_;
    made->body = statements({"endfor", "else"});
    --loops_;
    if (skip_name("else")) {
      end_tag();
      made->otherwise = statements({"endfor"});
    }
    expect_name("endfor");
    end_tag();
    return measured(std::move(made));
  }

  // (a, b=1): names, and the defaults of the last ones.
  void parameters(Node& made) {
    expect_sign("(");
    while (!skip_sign(")")) {
      if (!made.names.empty()) expect_sign(",");
      if (skip_sign(")")) return;
      made.names.push_back(take_name("the name of a parameter"));
      if (skip_sign("="))
        made.parts.push_back(expression());
      else if (!made.parts.empty())
        fail("expected a default, as the parameter before has one");
    }
  }
  NodePointer macro() {
    NodePointer made = node(Node::macro, {}, take_name("the name of a macro"));
    parameters(*made);
    return body_of_macro(std::move(made), "endmacro");
  }
  NodePointer body_of_macro(NodePointer made, std::string_view end) {
    const int outer = std::exchange(loops_, 0);
    made = with_body(std::move(made), end);
    loops_ = outer;
    return made;
  }
  // The caller is a macro without a name.
  NodePointer call_block() {
    NodePointer caller = node(Node::macro, {}, "caller");
    if (at_sign("(")) parameters(*caller);
    NodePointer call = expression();
    if (call->type != Node::call) fail("expected a call");
    caller = body_of_macro(std::move(caller), "endcall");
    return node(Node::call_block, nodes(std::move(call), std::move(caller)));
  }
  NodePointer filter_block() {
    NodePointer filter = filters(nullptr, true);
    NodePointer made = node(Node::filter_block, nodes(std::move(filter)));
    return body_of_macro(std::move(made), "endfilter");
  }
  NodePointer with() {
    NodePointer made = node(Node::with);
    while (!at(Token::end)) {
      if (!made->parts.empty()) expect_sign(",");
      made->parts.push_back(target());
      expect_sign("=");
      made->parts.push_back(expression());
    }
    return with_body(std::move(made), "endwith");
  }

  // A name, or an attribute of a namespace.
  NodePointer target(bool takes_attribute = false) {
    const Depth depth(*this);
    if (skip_sign("(")) {
      NodePointer inner = targets(false);
      expect_sign(")");
      return inner;
    }
    NodePointer made = node(Node::name, {}, take_name("the name of a variable"));
    for (const std::string_view word : {"true", "false", "none", "True", "False", "None", "loop"})
      if (made->text == word) fail("expected a name other than " + std::string(word));
    if (takes_attribute && skip_sign("."))
      return node(Node::attribute, nodes(std::move(made)), take_name("the name of an attribute"));
    return made;
  }
  NodePointer targets(bool takes_attribute) {
    NodePointer first = target(takes_attribute);
    if (!at_sign(",")) return first;
    Nodes all = nodes(std::move(first));
    while (skip_sign(","))
      if (!at_name("in") && !at_sign("=") && !at_sign(")")) all.push_back(target(takes_attribute));
    return node(Node::tuple, std::move(all));
  }

  int loops_ = 0;  // around the statement
};

}  // namespace fw::models::chat
