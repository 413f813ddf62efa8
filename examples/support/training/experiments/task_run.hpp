#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/algorithmic/task_model.hpp"
#include "tasks/task_sequence.hpp"

/// \file
/// The training of code_execution and listops.

struct TaskSettings {
  std::string output;
  std::vector<std::string> models = {"rnn", "sum", "delta", "delta-rnn"};
  long steps = 0, batch = 32, test = 1000, validation = 100, every = 100, warmup = 100;
  double rate = 1e-3, clip = 1;
  std::uint64_t seed = 1;
  TaskModelOptions sizes;
  bool quick = false, smoke = false;
};

struct TaskResult {
  std::string kind;
  long parameters = 0;
  double answers = 0, complete = 0, loss = 0, seconds = 0;  // a training step
};

/// Draws sequence `index` of a seed.
using TaskDraw = std::function<TaskSequence(std::uint64_t seed, std::uint64_t index)>;

// Validation and test sequences are of seeds that no training uses.
inline constexpr std::uint64_t test_seed = 1'000'003, validation_seed = 2'000'003;

/// Trains all models, and leaves curves.csv and results.csv in the folder.
std::vector<TaskResult> run_task(const TaskSettings& s, const TaskDraw& draw);
