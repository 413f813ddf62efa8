#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>

/// A file to write into. Throws where it cannot be opened, and the stream where it cannot be
/// written.
inline std::ofstream open_to_write(const std::filesystem::path& path,
                                   std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(path, std::ios::out | mode);
  if (!file) throw std::runtime_error("cannot write '" + path.string() + "'");
  file.exceptions(std::ios::failbit | std::ios::badbit);
  return file;
}

/// Makes a folder for results where there is none. Throws where nothing can be written into it: at
/// the start, and not after hours of training.
inline void make_folder(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto trial = folder / ".trial";
  open_to_write(trial).close();
  std::filesystem::remove(trial);
}
