#pragma once

#include <memory>
#include <string>

#include "fastweights/io/safetensors_writer.hpp"

/// \file
/// Several files of a folder, written as one.

#if FASTWEIGHTS_FILES

#include <filesystem>

namespace fw::inline FASTWEIGHTS_ABI::io {

/// Files that take their places in a folder together. One of them is the *entry*: without it, a
/// reader refuses the folder.
///
///     FolderUpdate update("model", "model.safetensors.index.json");
///     update.add("model-00001-of-00002.safetensors", first);
///     update.add("model-00002-of-00002.safetensors", second);
///     update.copy("model.safetensors.index.json", "source/model.safetensors.index.json");
///     update.commit();
///
/// Until `commit`, the folder has its old files: the new ones are in it under temporary names, and
/// on disk. `commit` removes the old entry, renames all new files, and renames the entry last. So
/// the folder never has an entry beside files of two models, even if the program is killed. If
/// all files but the entry are there already with the same bytes, the old entry stays until the new
/// one takes its place.
///
/// A symbolic link in the folder is replaced, and its target stays. Two processes that write the
/// same folder commit one after the other. All functions throw SafeTensorsError. The destructor
/// removes what was not committed. On systems without POSIX nothing is put on disk or locked.
class FolderUpdate {
 public:
  /// Makes the folder if there is none.
  FolderUpdate(const std::filesystem::path& folder, const std::string& entry);

  /// Writes a new file, to a temporary name. Throws if something other than a regular file or a
  /// link has the name, or if it was added before.
  void add(const std::string& name, const SafeTensorsWriter& file);
  /// Adds a copy of a file.
  void copy(const std::string& name, const std::filesystem::path& from);
  /// An old file to remove if it is there.
  void remove(const std::string& name);

  /// The new files take their places, and the object is at its end. If this throws "is not
  /// complete", the folder has no entry.
  void commit();

 private:
  struct Files;
  Files& files() const;

  std::shared_ptr<Files> files_;
};

}  // namespace fw::io

#endif

#ifndef FASTWEIGHTS_COMPILED
#include "fastweights/io/implementation/folder_update.hpp"
#endif
