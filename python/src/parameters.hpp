#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace fw::python {

namespace nb = nanobind;

/// A parameter of a method whose names are known at run time.
struct Parameter {
  std::string name;
  std::string type;         ///< as a stub has it: "int"
  std::string value = {};   ///< the default, as a stub has it; empty if it is required
  bool by_keyword = false;  ///< only by its name
};

/// The parameters of a method, and its signature.
class Parameters {
 public:
  Parameters() = default;
  /// `result` is the type of what the method returns, as a stub has it.
  Parameters(const std::string& method, std::vector<Parameter> each, const std::string& result);

  /// "def scan(self, state: State, query: Array) -> Array"
  const std::string& text() const { return text_; }
  /// The arguments in the order of the parameters; one that is not given is invalid. Throws
  /// nb::type_error as Python does for an argument that is missing, unknown or given twice.
  std::vector<nb::object> bind(const std::string& owner, const nb::args& args,
                               const nb::kwargs& named) const;

 private:
  std::size_t index_of(const std::string& owner, const std::string& name) const;

  std::string method_, text_;
  std::vector<Parameter> each_;
  std::size_t positional_ = 0;
};

}  // namespace fw::python
