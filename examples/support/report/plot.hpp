#pragma once

#include <filesystem>
#include <string>

/// A path as a string of a gnuplot script.
std::string quoted(const std::filesystem::path& path);

/// Draws a picture with a gnuplot script, and leaves the script beside it. Prints a note if
/// gnuplot is missing.
void plot(const std::filesystem::path& picture, const std::string& commands, int width = 900,
          int height = 540);
