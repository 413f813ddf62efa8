#include "report/experiments/capacity_report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "report/files.hpp"
#include "report/plot.hpp"

namespace {

std::filesystem::path published_file() {
  return std::filesystem::path(FASTWEIGHTS_EXAMPLE_DATA) / "schlag2021_capacity.csv";
}

// The loss above which a memory counts as full.
constexpr double capacity_limit = 0.005;

// The first S, ascending, whose loss is above the limit; 0 where there is none.
template <class Losses> int first_above(const Losses& by_size) {
  for (const auto& [size, loss] : by_size)
    if (!(loss <= capacity_limit)) return size;
  return 0;
}

// The authors' losses of a model in setting 1, by S.
std::map<int, double> published_by_size(const PublishedLosses& published,
                                        const std::string& model) {
  std::map<int, double> by_size;
  for (const auto& [key, loss] : published)
    if (std::get<0>(key) == 1 && std::get<1>(key) == model) by_size[std::get<2>(key)] = loss;
  return by_size;
}

std::string size_or_none(int size) { return size > 0 ? std::to_string(size) : "none"; }

// Points of ours and a line of the authors', for every model of a setting.
template <class Models>
std::string capacity_curves(int setting, const Models& models, const std::filesystem::path& ours) {
  std::string curves;
  int colour = 0;
  for (const CapacityModel& m : models) {
    ++colour;
    const std::string rows =
        "(column(1)==" + std::to_string(setting) + " && strcol(2) eq '" + m.key + "' ? $3 : NaN)";
    const int again = (colour - 1) / 8;  // gnuplot has eight colours
    const std::string style = " lc " + std::to_string(colour);
    curves += (curves.empty() ? "" : ", ") + quoted(published_file()) + " using " + rows +
              ":(column(4)) skip 1 with lines lw 1.5" +
              (again > 0 ? " dt " + std::to_string(again + 1) : "") + style + " notitle, " +
              quoted(ours) + " using " + rows + ":(column(6)) skip 1 with points ps 0.7 pt " +
              std::to_string(7 - 2 * again) + style + " title '" + m.title + "'";
  }
  return curves;
}

}  // namespace

PublishedLosses published_losses() {
  PublishedLosses losses;
  std::ifstream csv(published_file());
  if (!csv) throw std::runtime_error("cannot read " + published_file().string());
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::istringstream cells(line);
    std::string setting, model, symbols, loss;
    std::getline(cells, setting, ',');
    std::getline(cells, model, ',');
    std::getline(cells, symbols, ',');
    std::getline(cells, loss, ',');
    losses[{std::stoi(setting), model, std::stoi(symbols)}] = std::stod(loss);
  }
  return losses;
}

std::string csv_line(const CapacityRun& r) {
  std::ostringstream line;
  line << r.setting << "," << r.model << "," << r.symbols << "," << r.seed << "," << r.steps << ","
       << r.result.loss << "," << r.result.best << "," << r.result.last << "," << r.result.diverged
       << "," << r.seconds << "\n";
  return line.str();
}

std::vector<CapacityRun> read_runs(const std::filesystem::path& file) {
  std::vector<CapacityRun> runs;
  std::ifstream csv(file);
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream cells(line);
    CapacityRun r;
    std::string loss;  // streams do not read "inf"
    if (cells >> r.setting >> r.model >> r.symbols >> r.seed >> r.steps >> loss >> r.result.best >>
        r.result.last >> r.result.diverged >> r.seconds)
      r.result.loss = std::stod(loss), runs.push_back(r);
  }
  return runs;
}

std::vector<int> capacity_sizes(const PublishedLosses& published, const std::string& model) {
  const int full = first_above(published_by_size(published, model));
  std::vector<int> sizes;
  for (int size = 20; size <= 600; size += 20)
    if (size <= full + 60 || size % 100 == 0) sizes.push_back(size);
  return sizes;
}

void print_capacity(const std::vector<CapacityRun>& runs, const PublishedLosses& published) {
  std::map<std::string, std::map<std::uint64_t, std::map<int, double>>> losses;
  for (const CapacityRun& r : runs)
    if (r.setting == 1) losses[r.model][r.seed][r.symbols] = r.result.loss;
  if (losses.empty()) return;
  std::printf(
      "\nSetting 1: the first S whose loss is above %.3f\n\n"
      "| feature map | each seed | median | authors |\n|---|---|---|---|\n",
      capacity_limit);
  for (const CapacityModel& m : capacity_models) {
    if (losses.find(m.key) == losses.end()) continue;
    std::vector<int> sizes;
    std::string each;
    for (const auto& [seed, by_size] : losses[m.key]) {
      sizes.push_back(first_above(by_size));
      each += (each.empty() ? "" : ", ") + size_or_none(sizes.back());
    }
    // None at all is more than any.
    std::sort(sizes.begin(), sizes.end(), [](int a, int b) { return a > 0 && (b == 0 || a < b); });
    std::printf("| %s | %s | %s | %s |\n", m.title.c_str(), each.c_str(),
                size_or_none(sizes[sizes.size() / 2]).c_str(),
                size_or_none(first_above(published_by_size(published, m.key))).c_str());
  }
}

void print_updates(const std::vector<CapacityRun>& runs, const PublishedLosses& published) {
  std::map<int, std::map<std::string, std::string>> cells;
  for (const CapacityRun& r : runs) {
    if (r.setting != 2) continue;
    char loss[32];
    std::snprintf(loss, sizeof loss, r.result.diverged ? "%.4f (diverged)" : "%.4f", r.result.loss);
    std::string& cell = cells[r.symbols][r.model];
    cell += (cell.empty() ? "" : ", ") + std::string(loss);
  }
  for (const auto& [symbols, by_model] : cells) {
    std::printf(
        "\nSetting 2, S = %d: evaluation loss\n\n| rule | each seed | authors |\n|---|---|---|\n",
        symbols);
    for (const CapacityModel& m : update_models) {
      const auto ours = by_model.find(m.key);
      if (ours == by_model.end()) continue;
      const auto theirs = published.find({2, m.key, symbols});
      char loss[32] = "";
      if (theirs != published.end()) std::snprintf(loss, sizeof loss, "%.4f", theirs->second);
      std::printf("| %s | %s | %s |\n", m.title.c_str(), ours->second.c_str(), loss);
    }
    std::printf("| sum rule, perfect addressing: S pairs, every distinct key | %.4f | |\n",
                perfect_addressing(symbols, symbols, Queries::every_key));
    std::printf("| the same, S pairs, a random position | %.4f | |\n",
                perfect_addressing(symbols, symbols, Queries::random_position));
    std::printf("| the same, 2S pairs, a random position | %.4f | |\n\n",
                perfect_addressing(symbols, 2 * symbols, Queries::random_position));
  }
}

void draw_capacity(const std::filesystem::path& folder, const std::vector<int>& settings) {
  const std::string start =
      "set datafile separator ','\nset datafile missing 'nan'\nset grid\nset key outside "
      "right\nset "
      "xlabel 'S'\nset ylabel 'evaluation loss'\nset title 'points: ours, one a seed; lines: the "
      "authors, one seed'\n";
  const auto has = [&](int setting) {
    return std::find(settings.begin(), settings.end(), setting) != settings.end();
  };
  const auto csv = folder / "capacity.csv";
  if (has(1))
    plot(folder / "capacity.png",
         start + "plot [0:620][0:0.6] " + capacity_curves(1, capacity_models, csv) + "\n");
  if (!has(2)) return;
  std::ofstream lines = open_to_write(folder / "perfect.csv");
  for (int S = 10; S <= 200; S += 10)
    lines << S << "," << perfect_addressing(S, S, Queries::every_key) << ","
          << perfect_addressing(S, S, Queries::random_position) << ","
          << perfect_addressing(S, 2 * S, Queries::random_position) << "\n";
  lines.close();
  plot(
      folder / "updates.png",
      start + "set key maxcols 1\nset logscale y\nplot [0:210][5e-5:3] " +
          capacity_curves(2, update_models, csv) + ", " + quoted(folder / "perfect.csv") +
          " using 1:2 with lines dt 2 lw 2 lc 'black' title 'sum, perfect: S pairs, every key', '' "
          "using 1:3 with lines dt 4 lw 2 lc 'black' title 'sum, perfect: S pairs, random "
          "position', '' using 1:4 with lines dt 3 lw 2 lc 'black' title 'sum, perfect: 2S pairs, "
          "random position'\n",
      1100, 700);
}
