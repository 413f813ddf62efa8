#pragma once

#include <filesystem>
#include <string>

#include "models/sorting/sorting_model.hpp"

/// Draws what the continuous memory of a trained model attends to in one sequence: the densities of
/// a few outputs over [0, 1], and the signal it keeps beside the tokens it was made from. Draws
/// nothing for models without a continuous memory.
void show_memory(const SortingModel& model, const SortingOptions& o, const SortSequence& sequence,
                 const std::string& title, const std::filesystem::path& folder);
