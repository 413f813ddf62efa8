#include "parameters.hpp"

namespace fw::python {

namespace {

[[noreturn]] void throw_call(const std::string& owner, const std::string& method,
                             const std::string& problem) {
  throw nb::type_error((owner + "." + method + "() " + problem).c_str());
}

}  // namespace

Parameters::Parameters(const std::string& method, std::vector<Parameter> each,
                       const std::string& result)
    : method_(method), text_("def " + method + "(self"), each_(std::move(each)) {
  for (const Parameter& p : each_) {
    const bool first_by_keyword =
        p.by_keyword && !text_.ends_with("*") && text_.find(", *, ") == std::string::npos;
    if (first_by_keyword) text_ += ", *";
    text_ += ", " + p.name + ": " + p.type + (p.value.empty() ? "" : " = " + p.value);
    if (!p.by_keyword) ++positional_;
  }
  text_ += ") -> " + result;
}

std::size_t Parameters::index_of(const std::string& owner, const std::string& name) const {
  for (std::size_t i = 0; i < each_.size(); ++i)
    if (each_[i].name == name) return i;
  throw_call(owner, method_, "got an unexpected keyword argument '" + name + "'");
}

std::vector<nb::object> Parameters::bind(const std::string& owner, const nb::args& args,
                                         const nb::kwargs& named) const {
  if (args.size() > positional_)
    throw_call(owner, method_,
               "takes " + std::to_string(positional_) + " positional arguments but " +
                   std::to_string(args.size()) + " were given");
  std::vector<nb::object> found(each_.size());
  for (std::size_t i = 0; i < args.size(); ++i) found[i] = args[i];
  for (const auto& [name, argument] : named) {
    nb::object& place = found[index_of(owner, nb::cast<std::string>(name))];
    if (place.is_valid())
      throw_call(owner, method_,
                 "got multiple values for argument '" + nb::cast<std::string>(name) + "'");
    place = nb::borrow(argument);
  }
  for (std::size_t i = 0; i < each_.size(); ++i)
    if (!found[i].is_valid() && each_[i].value.empty())
      throw_call(owner, method_, "is missing the argument '" + each_[i].name + "'");
  return found;
}

}  // namespace fw::python
