#pragma once

#include <fastweights/models/chat_template/value.hpp>

/// \file
/// The syntax tree of a template.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

struct Node;
using NodePointer = std::unique_ptr<Node>;
using Nodes = std::vector<NodePointer>;

/// An expression or a statement.
struct Node {
  /// Its kind, which says what its parts are.
  enum Type {
    constant,  ///< value
    name,      ///< text
    list,
    tuple,         ///< parts
    dict,          ///< parts: key, value, key, …
    attribute,     ///< parts[0].text
    item,          ///< parts[0][parts[1]]
    slice,         ///< parts[0][parts[1]:parts[2]:parts[3]], absent parts are null
    call,          ///< parts[0](arguments)
    spread,        ///< * or ** parts[0], in `otherwise` of what has arguments
    filter,        ///< parts[0] | text(arguments); without parts[0] of a block
    test,          ///< parts[0] is text(arguments)
    sign,          ///< text parts[0]: − + not
    binary,        ///< parts[0] text parts[1], of arithmetic, and, or
    compare,       ///< parts[0] names[0] parts[1] names[1] parts[2] …
    concatenate,   ///< parts[0] ~ parts[1] ~ …
    conditional,   ///< parts[1] if parts[0] else parts[2], which may be absent
    data,          ///< the text as it is
    output,        ///< {{ parts[0] }}
    assign,        ///< parts[0] = parts[1]
    assign_body,   ///< parts[0] = what the body renders, through parts[1] if it is there
    branch,        ///< if parts[0]: body, else otherwise
    loop,          ///< for parts[0] in parts[1] if parts[2]: body, else otherwise
    macro,         ///< text, with the parameters `names`, whose last ones have the defaults `parts`
    call_block,    ///< parts[0] is a call, whose caller renders the body
    filter_block,  ///< parts[0] is a filter of the body
    with,          ///< parts: target, value, …
    generation,    ///< the body
    leave,         ///< break
    next           ///< continue
  };
  Type type;
  int line;
  int levels = 1;  ///< of the tree below
  std::string text{};
  Value value{};
  Nodes parts{}, body{}, otherwise{};
  std::vector<std::string> names{};  ///< of operators, parameters or named arguments
  Nodes arguments{};                 ///< the last ones have `names`
};

}  // namespace fw::models::chat
