#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/capacity/capacity_models.hpp"

/// \file
/// Tables and pictures of the capacity tasks, beside the authors' numbers.

struct CapacityRun {
  int setting = 1;
  std::string model;
  int symbols = 0;
  std::uint64_t seed = 1;
  long steps = 0;  // at most
  CapacityResult result{};
  double seconds = 0;
};

/// The loss by setting, model and S; NaN stays NaN.
using PublishedLosses = std::map<std::tuple<int, std::string, int>, double>;

PublishedLosses published_losses();

inline constexpr const char* capacity_csv_header =
    "setting,model,S,seed,most_steps,best_eval_loss,step_of_best,last_step,diverged,seconds\n";
std::string csv_line(const CapacityRun& r);

/// The trainings in a file that csv_line wrote; none where there is no file.
std::vector<CapacityRun> read_runs(const std::filesystem::path& file);

/// The default sizes of setting 1: the authors', every 20 up to 600, but every 100 beyond the size
/// where their memory is full.
std::vector<int> capacity_sizes(const PublishedLosses& published, const std::string& model);

/// Setting 1: the first S above the capacity, for every seed.
void print_capacity(const std::vector<CapacityRun>& runs, const PublishedLosses& published);

/// Setting 2: the loss of every seed.
void print_updates(const std::vector<CapacityRun>& runs, const PublishedLosses& published);

/// Both settings: lines are the authors', points are ours, one a seed.
void draw_capacity(const std::filesystem::path& folder, const std::vector<int>& settings);
