#pragma once

#include <fastweights/core/leaves.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "arrays.hpp"

/// \file
/// A rule in one scalar type behind virtual functions: the binding is written once for all rules,
/// and a rule adds one instance of RuleKernel (rule_kernel.hpp).

namespace fw::python {

/// The states of batch × heads streams; stream b·heads + h belongs to head h of sequence b.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual Index count() const = 0;
  /// The record of one stream. Its arrays and numbers are the stream's own.
  virtual fw::detail::Object stream(Index i) = 0;
  virtual std::unique_ptr<Streams> copy() const = 0;
};

/// What a scan stores for the backward pass, of each stream.
class Traces {
 public:
  virtual ~Traces() = default;
  Index batch = -1, time = 0;  ///< a negative batch: no scan has filled them
};

/// An input or output by name: `rows` entries per token, or one number.
struct Member {
  std::string_view name;
  Index rows = 1;
  bool is_number = false;
};

/// A sequence for every stream: its number, its length, the inputs and the outputs.
struct Call {
  Index batch = 0, time = 0;
  std::vector<Sequences> inputs;
  Sequences output;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  Index heads = 1;
  DType dtype;
  std::string_view rule;       ///< the name of the class in Python, for errors
  std::vector<Member> inputs;  ///< what is read with (the query), then what is written
  Member output;
  Index state_entries = 0;  ///< of W of one stream, by which the work is estimated

  virtual std::unique_ptr<Streams> zeros(Index batch) const = 0;
  virtual std::unique_ptr<Traces> traces() const = 0;
  /// The record of a stream in its first state, for names and shapes. Not to be changed.
  virtual fw::detail::Object first() const = 0;
  /// Whether a kernel of this type and these sizes made the states. All streams of a State have the
  /// same shapes, so the first one is compared.
  virtual bool owns(const Streams& states) const = 0;

  virtual void scan(Streams& states, const Call& call) const = 0;
  virtual void scan(Streams& states, const Call& call, Traces& traces) const = 0;
  /// call.output is the gradient of the outputs. `gradient` is that of the final state on entry and
  /// that of the initial state on return. Adds to `dinputs`.
  virtual void backward(const Streams& initial, const Call& call, Streams& gradient,
                        std::span<const Sequences> dinputs) const = 0;
  virtual void backward(Traces& traces, const Call& call, Streams& gradient,
                        std::span<const Sequences> dinputs) const = 0;

  /// Whether threads pay: starting them takes as long as some 2^18 entries of W.
  bool parallel(const Call& call) const {
    return call.batch * heads * call.time * state_entries >= Index(1) << 18;
  }
};

}  // namespace fw::python
