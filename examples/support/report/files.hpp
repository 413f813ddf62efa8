#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

/// Opens a file to write. Throws if it cannot be opened; the stream throws if it cannot be written.
inline std::ofstream open_to_write(const std::filesystem::path& path,
                                   std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(path, std::ios::out | mode);
  if (!file) throw std::runtime_error("cannot write '" + path.string() + "'");
  file.exceptions(std::ios::failbit | std::ios::badbit);
  return file;
}

/// Makes a folder for results if there is none. Throws if it is not writable: before the training,
/// not hours later.
inline void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error("cannot write '" + folder.string() + "': " + error.message());
  const auto trial = folder / ".trial";
  open_to_write(trial).close();
  std::filesystem::remove(trial);
}
