#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// \file
/// Files with one fault each.

struct BadFile {
  std::string name;
  std::string bytes;
  std::string fault;               ///< what the message must say
  std::uint64_t sparse_bytes = 0;  ///< zeros behind the bytes, if the file is on disk
};

std::vector<BadFile> bad_files();
