#pragma once

#include <fastweights/networks/network.hpp>
#include <filesystem>
#include <string>

/// Writes the network of a directory as a folder and compares it with the directory. Gives what
/// differs; empty if all tensors have the same names, shapes and bytes.
std::string round_trip_problem(const fw::networks::Network<float>& network,
                               const std::filesystem::path& directory);
