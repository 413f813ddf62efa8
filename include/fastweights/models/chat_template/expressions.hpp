#pragma once

#include <charconv>
#include <fastweights/models/chat_template/lexer.hpp>
#include <fastweights/models/chat_template/syntax.hpp>
#include <initializer_list>

/// \file
/// Reads the expressions of a template, with the grammar of jinja2.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// Reads expressions. Throws std::invalid_argument with the line for what is not supported, and
/// names it.
class ExpressionParser {
 protected:
  ExpressionParser(std::vector<Token> tokens, Costs& costs)
      : tokens_(std::move(tokens)), costs_(costs) {}

  using Names = std::initializer_list<std::string_view>;

  const Token& now() const { return tokens_[next_]; }
  const Token& later(std::size_t n) const {
    return tokens_[std::min(next_ + n, tokens_.size() - 1)];
  }
  bool at(Token::Type type) const { return now().type == type; }
  bool at_sign(std::string_view sign) const { return now().is(Token::sign, sign); }
  bool at_name(std::string_view name) const { return now().is(Token::name, name); }
  bool at_any(Names names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view each) { return at_name(each); });
  }
  Token take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool skip_sign(std::string_view sign) { return at_sign(sign) && (take(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (take(), true); }
  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) fail("expected " + std::string(sign));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail("expected " + std::string(name));
  }
  std::string take_name(const char* what) {
    if (!at(Token::name)) fail(std::string("expected ") + what);
    return take().content;
  }
  void end_tag() {
    if (!at(Token::end)) fail("expected the end of the tag");
    take();
  }
  [[noreturn]] void fail(const std::string& what) const {
    costs_.at(now().line);
    costs_.fail(what + ", is " + now().content.substr(0, 40));
  }
  [[noreturn]] void fail_unsupported(const std::string& what) const {
    costs_.at(now().line);
    costs_.fail(what + " is not supported");
  }

  // Nested calls of this parser are nested levels of the text.
  struct Depth {
    explicit Depth(ExpressionParser& p) : parser(p) {
      if (++parser.depth_ > Bounds::nesting) parser.fail_levels();
    }
    ~Depth() { --parser.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ExpressionParser& parser;
  };
  [[noreturn]] void fail_levels() const {
    costs_.at(now().line);
    costs_.fail("the template has more than " + std::to_string(Bounds::nesting) +
                " levels of blocks and expressions");
  }
  NodePointer node(Node::Type type, Nodes parts = {}, std::string text = {}) const {
    auto made = std::make_unique<Node>(Node{type, now().line});
    made->parts = std::move(parts);
    made->text = std::move(text);
    return measured(std::move(made));
  }
  NodePointer measured(NodePointer made) const {
    for (const Nodes* all : {&made->parts, &made->body, &made->otherwise, &made->arguments})
      for (const NodePointer& each : *all)
        if (each != nullptr) made->levels = std::max(made->levels, each->levels + 1);
    if (made->levels > Bounds::nesting) fail_levels();
    return made;
  }
  template <class... Parts> static Nodes nodes(Parts... parts) {
    Nodes all;
    (all.push_back(std::move(parts)), ...);
    return all;
  }

  NodePointer tuple_or_expression(bool takes_condition = true) {
    NodePointer first = takes_condition ? expression() : either();
    if (!at_sign(",")) return first;
    Nodes all = nodes(std::move(first));
    while (skip_sign(",")) {
      if (at(Token::end) || at_sign(")")) break;
      all.push_back(takes_condition ? expression() : either());
    }
    return node(Node::tuple, std::move(all));
  }

  NodePointer expression() {
    const Depth depth(*this);
    NodePointer made = either();
    while (skip_name("if")) {
      NodePointer condition = either();
      NodePointer otherwise = skip_name("else") ? expression() : nullptr;
      made = node(Node::conditional,
                  nodes(std::move(condition), std::move(made), std::move(otherwise)));
    }
    return made;
  }
  NodePointer either() {
    NodePointer made = both();
    while (skip_name("or")) made = node(Node::binary, nodes(std::move(made), both()), "or");
    return made;
  }
  NodePointer both() {
    NodePointer made = negated();
    while (skip_name("and")) made = node(Node::binary, nodes(std::move(made), negated()), "and");
    return made;
  }
  NodePointer negated() {
    const Depth depth(*this);
    if (skip_name("not")) return node(Node::sign, nodes(negated()), "not");
    return comparison();
  }
  NodePointer comparison() {
    NodePointer first = sum();
    Nodes all = nodes(std::move(first));
    std::vector<std::string> signs;
    while (true) {
      const bool not_in = at_name("not") && later(1).is(Token::name, "in");
      const bool is_sign = at(Token::sign) && is_comparison(now().content);
      if (!is_sign && !at_name("in") && !not_in) break;
      if (not_in) take();
      signs.push_back(not_in ? "not in" : now().content);
      take();
      all.push_back(sum());
    }
    if (signs.empty()) return std::move(all[0]);
    NodePointer made = node(Node::compare, std::move(all));
    made->names = std::move(signs);
    return made;
  }
  static bool is_comparison(std::string_view sign) {
    return sign == "==" || sign == "!=" || sign == "<" || sign == "<=" || sign == ">" ||
           sign == ">=";
  }
  NodePointer sum() {
    NodePointer made = concatenation();
    while (at_sign("+") || at_sign("-")) {
      const std::string sign = take().content;
      made = node(Node::binary, nodes(std::move(made), concatenation()), sign);
    }
    return made;
  }
  NodePointer concatenation() {
    NodePointer first = product();
    if (!at_sign("~")) return first;
    Nodes all = nodes(std::move(first));
    while (skip_sign("~")) all.push_back(product());
    return node(Node::concatenate, std::move(all));
  }
  NodePointer product() {
    NodePointer made = unary();
    while (at_sign("*") || at_sign("/") || at_sign("//") || at_sign("%")) {
      const std::string sign = take().content;
      made = node(Node::binary, nodes(std::move(made), unary()), sign);
    }
    if (at_sign("**")) fail_unsupported("the operator **");
    return made;
  }
  NodePointer unary(bool takes_filters = true) {
    const Depth depth(*this);
    NodePointer made;
    if (at_sign("-") || at_sign("+")) {
      const std::string sign = take().content;
      made = node(Node::sign, nodes(unary(false)), sign);
    } else {
      made = primary();
    }
    made = postfix(std::move(made));
    return takes_filters ? filters(std::move(made)) : std::move(made);
  }

  NodePointer constant(Value value) const {
    NodePointer made = node(Node::constant);
    made->value = std::move(value);
    return made;
  }
  NodePointer primary() {
    if (at(Token::name)) return word();
    if (at(Token::text)) {
      std::string text;
      while (at(Token::text)) text += take().content;
      return constant(Value::text(std::move(text), costs_));
    }
    if (at(Token::integer) || at(Token::real)) return number();
    if (skip_sign("(")) return parenthesis();
    if (skip_sign("[")) return node(Node::list, expressions("]"));
    if (skip_sign("{")) return dict();
    fail("expected an expression");
  }
  NodePointer word() {
    const std::string text = now().content;
    NodePointer made = node(Node::name, {}, text);
    take();
    if (text == "true" || text == "True") return constant(Value::boolean(true));
    if (text == "false" || text == "False") return constant(Value::boolean(false));
    if (text == "none" || text == "None") return constant(Value::none());
    return made;
  }
  NodePointer number() {
    const std::string& text = now().content;
    const bool is_real = at(Token::real);
    std::int64_t whole = 0;
    double real = 0;
    const auto result = is_real ? std::from_chars(text.data(), text.data() + text.size(), real)
                                : std::from_chars(text.data(), text.data() + text.size(), whole);
    if (result.ec != std::errc()) fail("expected a number of 64 bits");
    take();
    return constant(is_real ? Value::real(real) : Value::integer(whole));
  }
  NodePointer parenthesis() {
    if (skip_sign(")")) return node(Node::tuple);
    NodePointer inner = tuple_or_expression();
    expect_sign(")");
    return inner;
  }
  Nodes expressions(std::string_view end) {
    Nodes all;
    while (!skip_sign(end)) {
      if (!all.empty()) expect_sign(",");
      if (skip_sign(end)) break;
      all.push_back(expression());
    }
    return all;
  }
  NodePointer dict() {
    Nodes all;
    while (!skip_sign("}")) {
      if (!all.empty()) expect_sign(",");
      if (skip_sign("}")) break;
      all.push_back(expression());
      expect_sign(":");
      all.push_back(expression());
    }
    return node(Node::dict, std::move(all));
  }

  NodePointer postfix(NodePointer made) {
    while (true) {
      if (skip_sign(".")) {
        if (at(Token::integer)) {
          NodePointer index = number();
          made = node(Node::item, nodes(std::move(made), std::move(index)));
        } else {
          made =
              node(Node::attribute, nodes(std::move(made)), take_name("the name of an attribute"));
        }
      } else if (skip_sign("[")) {
        made = subscript(std::move(made));
      } else if (at_sign("(")) {
        made = with_arguments(node(Node::call, nodes(std::move(made))));
      } else {
        return made;
      }
    }
  }
  NodePointer subscript(NodePointer made) {
    Nodes bounds;
    bool is_slice = false;
    const auto part = [&] { return at_sign(":") || at_sign("]") ? NodePointer() : expression(); };
    bounds.push_back(part());
    while (bounds.size() < 3 && skip_sign(":")) {
      is_slice = true;
      bounds.push_back(part());
    }
    if (at_sign(",")) fail_unsupported("an index of several parts");
    expect_sign("]");
    if (!is_slice && bounds[0] == nullptr) fail("expected an index");
    if (!is_slice) return node(Node::item, nodes(std::move(made), std::move(bounds[0])));
    bounds.resize(3);
    bounds.insert(bounds.begin(), std::move(made));
    return node(Node::slice, std::move(bounds));
  }
  NodePointer with_arguments(NodePointer made) {
    expect_sign("(");
    while (!skip_sign(")")) {
      if (!made->arguments.empty() || !made->otherwise.empty()) expect_sign(",");
      if (skip_sign(")")) break;
      if (at_sign("*") || at_sign("**")) {
        const std::string sign = take().content;
        made->otherwise.push_back(node(Node::spread, nodes(expression()), sign));
        continue;
      }
      const bool is_named = at(Token::name) && later(1).is(Token::sign, "=");
      if (is_named) {
        made->names.push_back(take().content);
        take();
      } else if (!made->names.empty() || !made->otherwise.empty()) {
        fail("expected the name of an argument");
      }
      made->arguments.push_back(expression());
    }
    return measured(std::move(made));
  }

  // | filter, is test and calls. Without `made` the filters are those of a block.
  NodePointer filters(NodePointer made, bool begins = false) {
    while (true) {
      if (begins || skip_sign("|")) {
        begins = false;
        made = node(Node::filter, nodes(std::move(made)), take_name("the name of a filter"));
        if (at_sign(".")) fail_unsupported("a filter with a dot in its name");
        if (at_sign("(")) made = with_arguments(std::move(made));
      } else if (made != nullptr && skip_name("is")) {
        made = test(std::move(made));
      } else if (made != nullptr && made->type != Node::filter && at_sign("(")) {
        made = with_arguments(node(Node::call, nodes(std::move(made))));
      } else {
        return made;
      }
    }
  }
  NodePointer test(NodePointer made) {
    const bool is_negated = skip_name("not");
    made = node(Node::test, nodes(std::move(made)), take_name("the name of a test"));
    const bool is_operand = at(Token::text) || at(Token::integer) || at(Token::real) ||
                            at_sign("[") || at_sign("{") ||
                            (at(Token::name) && !at_any({"else", "or", "and", "if", "is", "in"}));
    if (at_sign("(")) {
      made = with_arguments(std::move(made));
    } else if (is_operand && !at_name("not")) {
      made->arguments.push_back(postfix(primary()));
      made = measured(std::move(made));
    }
    return is_negated ? node(Node::sign, nodes(std::move(made)), "not") : std::move(made);
  }

 private:
  std::vector<Token> tokens_;
  Costs& costs_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace fw::models::chat
