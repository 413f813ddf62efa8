#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/kinds.hpp"

/// \file
/// Command lines by CLI11, which is compiled in one source: its headers take seconds in every
/// program that includes them.

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// An option of a CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& delimiter(char separator);  ///< between the values of a list
  Option& show_default();
  Option& show_default(const std::string& text);
  Option& environment(const std::string& variable);
  Option& above_zero();
  Option& not_negative();
  Option& at_most(long most);
  template <class T> Option& between(T least, T most);
  Option& one_of(const std::vector<std::string>& values);
  Option& excludes(const std::vector<std::string>& options);

  bool given() const;  ///< on the command line

 private:
  friend class CommandLine;
  CLI::Option* option_;
};

/// The options of a program.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description);

  /// Reads a value; T is a string, a number, or a std::vector of these. NaN and infinity are
  /// refused.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& description);
  Option add_flag(const std::string& name, bool& value, const std::string& description);

  /// An option that takes numbers above 0 and shows its default.
  template <class T>
  Option add_positive(const std::string& name, T& value, const std::string& description) {
    return add_option(name, value, description).above_zero().show_default();
  }
  /// The option that chooses the kinds of models to train.
  Option add_models(std::vector<std::string>& models, const Kinds& kinds);

  /// Options under a title of their own, part of the same command line.
  CommandLine add_group(const std::string& title);
  /// No option of this group may be given beside `option`.
  void excludes(const Option& option);

  Option option(const std::string& name) const;
  bool given(const std::string& name) const;

  /// Prints help or an error and ends the program where there is one.
  void parse(int argc, char** argv);

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

  std::shared_ptr<CLI::App> app_;
};

/// A short run without a folder of its own does not overwrite the results of a full one.
inline void use_own_folder(const CommandLine& app, std::string& output, bool short_run) {
  if (short_run && !app.given("--output")) output += "/quick";
}
