#pragma once

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "files.hpp"

/// A path as a gnuplot script names it.
inline std::string quoted(const std::filesystem::path& path) {
  std::string text = "'";
  for (const char c : path.string()) text += c == '\'' ? "''" : std::string(1, c);
  return text + "'";
}

/// Draws a picture by a gnuplot script, which stays beside it. Says so where gnuplot is missing.
inline void plot(const std::filesystem::path& picture, const std::string& commands, int width = 900,
                 int height = 540) {
  const std::string script = "set terminal pngcairo size " + std::to_string(width) + "," +
                             std::to_string(height) + " font 'sans,11'\nset output " +
                             quoted(picture) + "\n" + commands;
  const auto file = std::filesystem::path(picture).replace_extension(".gnuplot");
  open_to_write(file) << script;
  FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot != nullptr) std::fputs(script.c_str(), gnuplot);
  if (gnuplot != nullptr && pclose(gnuplot) == 0)
    std::cout << "picture: " << picture.string() << "\n";
  else
    std::cout << "no picture: gnuplot is missing or failed on " << file.string() << "\n";
}
