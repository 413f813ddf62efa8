#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "models/kinds.hpp"

/// Parses the command line; prints help or an error and ends the program where there is one.
inline void parse_or_exit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
}

/// Which of some kinds of models to train.
inline void add_models(CLI::App& app, std::vector<std::string>& models, const Kinds& kinds) {
  app.add_option("--models", models, "which to train")
      ->delimiter(',')
      ->check(CLI::IsMember(keys_of(kinds)))
      ->capture_default_str();
}

/// A short run without a folder of its own leaves the results of a full one alone.
inline void keep_apart(const CLI::App& app, std::string& output, bool short_run) {
  if (short_run && app.count("--output") == 0) output += "/quick";
}

/// Refuses what is not above 0; CLI11's own check speaks of the largest double there.
inline CLI::Validator above_zero() {
  const auto check = [](const std::string& text) {
    return std::strtod(text.c_str(), nullptr) > 0 ? std::string() : text + " is not above 0";
  };
  return {check, "above 0"};
}

/// An option that takes numbers above 0 and shows its default.
template <class T>
CLI::Option* positive(CLI::App& app, const std::string& option, T& value, const std::string& what) {
  return app.add_option(option, value, what)->check(above_zero())->capture_default_str();
}
