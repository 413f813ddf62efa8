#include "report/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <type_traits>

namespace {

CLI::Option* finite(CLI::Option* option) {
  const auto check = [](const std::string& text) {
    return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string()
                                                             : text + " is not a finite number";
  };
  return option->check(CLI::Validator(check, ""));
}

}  // namespace

Option& Option::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::show_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Option& Option::above_zero() {  // CLI11's own check names the largest double
  const auto check = [](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) > 0 ? std::string() : text + " is not above 0";
  };
  option_->check(CLI::Validator(check, "above 0"));
  return *this;
}

Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::at_most(long most) {
  const auto check = [most](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) <= static_cast<double>(most)
               ? std::string()
               : text + " is above " + std::to_string(most);
  };
  option_->check(CLI::Validator(check, ""));
  return *this;
}

template <class T> Option& Option::between(T least, T most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

template Option& Option::between(int, int);
template Option& Option::between(double, double);
template Option& Option::between(std::uint64_t, std::uint64_t);

Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::excludes(const std::vector<std::string>& options) {
  for (const std::string& each : options) option_->excludes(each);
  return *this;
}

bool Option::given() const { return !option_->empty(); }

CommandLine::CommandLine(const std::string& description)
    : app_(std::make_shared<CLI::App>(description)) {}

template <class T>
Option CommandLine::add_option(const std::string& name, T& value, const std::string& description) {
  CLI::Option* const option = app_->add_option(name, value, description);
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>) finite(option);
  return Option(option);
}

template Option CommandLine::add_option(const std::string&, int&, const std::string&);
template Option CommandLine::add_option(const std::string&, long&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option CommandLine::add_option(const std::string&, double&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<long>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<double>&,
                                        const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<std::string>&,
                                        const std::string&);

Option CommandLine::add_flag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description));
}

Option CommandLine::add_models(std::vector<std::string>& models, const Kinds& kinds) {
  return add_option("--models", models, "which to train")
      .delimiter(',')
      .one_of(keys_of(kinds))
      .show_default();
}

CommandLine CommandLine::add_group(const std::string& title) {
  return CommandLine(std::shared_ptr<CLI::App>(app_, app_->add_option_group(title)));
}

void CommandLine::excludes(const Option& option) { app_->excludes(option.option_); }

Option CommandLine::option(const std::string& name) const { return Option(app_->get_option(name)); }

bool CommandLine::given(const std::string& name) const { return app_->count(name) > 0; }

void CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->exit(error));
  }
}
