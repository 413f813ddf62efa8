// Prints the medians of a Google Benchmark result (JSON) as a Markdown table.
//
//     benchmark_table results.json > results.md
//
// A benchmark is named {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1.

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using nlohmann::json;

namespace {

struct Column {
  const char* counter;
  const char* title;
  const char* format;
};

constexpr Column columns[] = {
    {"ns_per_token_head", "ns per token and head", "%.1f"},
    {"fma_peak_fraction", "of FMA peak", "%.3f"},
    {"bandwidth_fraction", "of bandwidth", "%.3f"},
    {"speedup_over_eigen", "speed-up over Eigen", "%.2f"},
    {"speedup_over_one_thread", "speed-up over one thread", "%.2f"},
    {"fma_peak_over_one_thread", "of the FMA peak", "%.2f"},
};

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream stream(name);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  return parts;
}

/// "scan/DeltaRule/float/d:128/H:8" becomes "scan | DeltaRule | float | d:128 H:8".
std::string identity(const std::string& name) {
  std::string row;
  for (const std::string& part : split(name)) {
    const bool setting = part.find(':') != std::string::npos;
    row += row.empty() ? "" : setting && row.find(':') != std::string::npos ? " " : " | ";
    row += part;
  }
  return row;
}

std::string cell(const json& result, const Column& column) {
  const auto counter = result.find(column.counter);
  if (counter == result.end() || !counter->is_number()) return "–";
  char text[32];
  std::snprintf(text, sizeof text, column.format, counter->get<double>());
  return text;
}

void print_table(const json& results) {
  std::set<std::string> rows;  // sorted: the benchmarks ran in random order
  for (const json& result : results.at("benchmarks")) {
    if (result.value("aggregate_name", "") != "median") continue;
    std::string row = "| " + identity(result.at("run_name").get<std::string>()) + " |";
    for (const Column& column : columns) row += ' ' + cell(result, column) + " |";
    rows.insert(row);
  }
  std::cout << "| operation | memory | scalar | sizes |";
  for (const Column& column : columns) std::cout << ' ' << column.title << " |";
  std::cout << "\n|---|---|---|---|";
  for (std::size_t i = 0; i < std::size(columns); ++i) std::cout << "---:|";
  std::cout << '\n';
  for (const std::string& row : rows) std::cout << row << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: benchmark_table RESULTS.json");
  std::ifstream file(argv[1]);
  if (!file) throw std::runtime_error(std::string("cannot read ") + argv[1]);
  print_table(json::parse(file));
} catch (const std::exception& error) {
  std::cerr << "benchmark_table: " << error.what() << '\n';
  return 1;
}
