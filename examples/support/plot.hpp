#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

/// Draws a picture by a gnuplot script, which stays beside it. Says so where gnuplot is missing.
inline void plot(const std::filesystem::path& picture, const std::string& script) {
  const auto file = std::filesystem::path(picture).replace_extension(".gnuplot");
  std::ofstream(file) << "set terminal pngcairo size 900,540 font 'sans,11'\nset output '"
                      << picture.string() << "'\n"
                      << script;
  if (std::system(("gnuplot '" + file.string() + "'").c_str()) == 0)
    std::cout << "picture: " << picture.string() << "\n";
  else
    std::cout << "no picture: gnuplot is missing or failed on " << file.string() << "\n";
}
