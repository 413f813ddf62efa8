// Prints the medians of a Google Benchmark result (JSON) as Markdown tables, one per operation.
//
//     benchmark_table results.json > results.md

#include <cstdio>
#include <exception>
#include <iostream>

#include "results.hpp"

namespace {

using Rows = std::vector<Result>;

struct Column {
  const char* counter;
  const char* title;
  const char* format;
};

constexpr Column columns[] = {
    {"ns_per_token_head", "ns per token and head", "%.1f"},
    {"fma_peak_fraction", "of FMA peak", "%.3f"},
    {"bandwidth_fraction", "of bandwidth", "%.3f"},
    {"speedup_over_eigen", "speed-up over fixed Eigen", "%.2f"},
    {"speedup_over_dynamic_eigen", "speed-up over dynamic Eigen", "%.2f"},
    {"time_over_fixed", "time over fixed sizes", "%.2f"},
    {"time_over_ungated", "time over ungated", "%.2f"},
    {"backward_over_scan", "backward over scan", "%.2f"},
    {"speedup_over_one_thread", "speed-up over one thread", "%.2f"},
    {"fma_peak_over_one_thread", "FMA peak over one thread", "%.2f"},
};

/// The columns that have a value in some row.
std::vector<Column> used_columns(const Rows& rows) {
  std::vector<Column> used;
  for (const Column& column : columns)
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const Result& row) { return row.counters.count(column.counter) > 0; }))
      used.push_back(column);
  return used;
}

std::string cell(const Result& result, const Column& column) {
  const auto counter = result.counters.find(column.counter);
  if (counter == result.counters.end()) return "–";
  char text[32];
  std::snprintf(text, sizeof text, column.format, counter->second);
  return text;
}

void print_table(const Rows& rows) {
  const std::vector<Column> used = used_columns(rows);
  std::cout << "\n## " << rows.front().operation << "\n\n| memory | scalar | sizes |";
  for (const Column& column : used) std::cout << ' ' << column.title << " |";
  std::cout << "\n|---|---|---|";
  for (std::size_t i = 0; i < used.size(); ++i) std::cout << "---:|";
  std::cout << '\n';
  for (const Result& row : rows) {
    std::cout << "| " << row.memory << " | " << row.scalar << " |";
    for (const auto& [name, value] : row.settings) std::cout << ' ' << name << ':' << value;
    std::cout << " |";
    for (const Column& column : used) std::cout << ' ' << cell(row, column) << " |";
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: benchmark_table RESULTS.json");
  std::map<std::string, Rows> operations;
  for (const Result& result : medians(argv[1])) operations[result.operation].push_back(result);
  for (const auto& each : operations) print_table(each.second);
} catch (const std::exception& error) {
  std::cerr << "benchmark_table: " << error.what() << '\n';
  return 1;
}
