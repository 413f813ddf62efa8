#include "report/plot.hpp"

#include <csignal>
#include <cstdio>
#include <iostream>

#include "report/files.hpp"

std::string quoted(const std::filesystem::path& path) {
  std::string text = "'";
  for (const char c : path.string()) text += c == '\'' ? "''" : std::string(1, c);
  return text + "'";
}

void plot(const std::filesystem::path& picture, const std::string& commands, int width,
          int height) {
  const std::string script = "set terminal pngcairo size " + std::to_string(width) + "," +
                             std::to_string(height) + " font 'sans,11'\nset output " +
                             quoted(picture) + "\n" + commands;
  const auto file = std::filesystem::path(picture).replace_extension(".gnuplot");
  open_to_write(file) << script;
  const auto before = std::signal(SIGPIPE, SIG_IGN);  // a missing gnuplot closes the pipe
  FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot != nullptr) std::fputs(script.c_str(), gnuplot);
  const bool drawn = gnuplot != nullptr && pclose(gnuplot) == 0;
  std::signal(SIGPIPE, before);
  if (drawn)
    std::cout << "picture: " << picture.string() << "\n";
  else
    std::cout << "no picture: gnuplot is missing or failed on " << file.string() << "\n";
}
