#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

/// \file
/// The medians of a Google Benchmark result (JSON), whose benchmarks are named
/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1.

struct Result {
  std::string operation, memory, scalar;
  std::vector<std::pair<std::string, std::string>> settings;  // ("d", "128"), ("H", "8"), …
  std::map<std::string, double> counters;

  std::string word(const std::string& name) const {
    for (const auto& [key, value] : settings)
      if (key == name) return value;
    return "";
  }
  /// 0 if there is no such setting.
  long number(const std::string& name) const { return std::atol(word(name).c_str()); }

  /// Sorts sizes as numbers, and a dynamic size after the same fixed size.
  auto key() const {
    return std::tuple(operation, memory, scalar, number("d"), settings.size(), settings_in_order());
  }

 private:
  std::vector<std::pair<std::string, long>> settings_in_order() const {
    std::vector<std::pair<std::string, long>> order;
    for (const auto& [name, value] : settings) order.emplace_back(name, std::atol(value.c_str()));
    return order;
  }
};

inline Result result_named(const std::string& name) {
  Result result;
  std::istringstream stream(name);
  std::vector<std::string> words;
  for (std::string part; std::getline(stream, part, '/');) {
    const auto colon = part.find(':');
    if (colon != std::string::npos)
      result.settings.emplace_back(part.substr(0, colon), part.substr(colon + 1));
    else
      words.push_back(part);
  }
  words.resize(3);  // leaves out what Google Benchmark adds about its clock
  result.operation = words[0];
  result.memory = words[1];
  result.scalar = words[2];
  return result;
}

/// The medians in sorted order, because the benchmarks ran in random order.
inline std::vector<Result> medians(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  const auto parsed = nlohmann::json::parse(file);
  std::vector<Result> results;
  for (const auto& each : parsed.at("benchmarks")) {
    if (each.value("aggregate_name", "") != "median") continue;
    results.push_back(result_named(each.at("run_name").get<std::string>()));
    for (const auto& [name, value] : each.items())
      if (value.is_number()) results.back().counters[name] = value.get<double>();
  }
  std::sort(results.begin(), results.end(),
            [](const Result& a, const Result& b) { return a.key() < b.key(); });
  return results;
}
