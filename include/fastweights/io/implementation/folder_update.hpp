/// The members of FolderUpdate: see folder_update.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <vector>

#include "fastweights/core/implementation/inline.hpp"
#include "fastweights/io/folder_update.hpp"
#include "fastweights/io/implementation/byte_source.hpp"
#include "fastweights/io/implementation/files.hpp"

#if FASTWEIGHTS_FILES

namespace fw::inline FASTWEIGHTS_ABI::io {

namespace detail {

inline std::filesystem::path made_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder.string(), "cannot be written: " + error.message());
  return folder;
}

/// Calls f with the bytes of a file, in pieces of at most 1 MiB.
template <class F> void visit_bytes(const ByteSource& file, const std::string& origin, const F& f) {
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(file.size() - at, 1 << 20));
    read_fully(file, at, piece, origin, "content");
    f(piece);
  }
}

inline std::vector<std::byte> next_bytes(std::FILE* file) {
  std::vector<std::byte> bytes(1 << 16);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  return bytes;
}

/// True if `old` is a regular file, not a link, with the same bytes as `other`.
inline bool is_same_file(const std::filesystem::path& old, const std::filesystem::path& other) {
  std::error_code error;
  if (std::filesystem::symlink_status(old, error).type() != std::filesystem::file_type::regular)
    return false;
  const auto open = [](const std::filesystem::path& path) {
    return std::unique_ptr<std::FILE, int (*)(std::FILE*)>(std::fopen(path.string().c_str(), "rb"),
                                                           &std::fclose);
  };
  const auto a = open(old), b = open(other);
  bool is_same = a && b;
  for (bool ends = false; is_same && !ends;) {
    const std::vector<std::byte> bytes = next_bytes(a.get());
    is_same = bytes == next_bytes(b.get()) && !std::ferror(a.get()) && !std::ferror(b.get());
    ends = bytes.empty();
  }
  return is_same;
}

}  // namespace detail

struct FolderUpdate::Files {
  Files(const std::filesystem::path& path, const std::string& name)
      : place(detail::made_folder(path)), entry(name), folder(place, place) {}

  // Neither a path, nor the folder itself or the one above it.
  void check_plain(const std::string& name) const {
    if (name.empty() || name == "." || name == ".." ||
        std::filesystem::path(name).filename() != name)
      detail::fail(place.string(), "\"" + name + "\" is not the name of a file in a folder");
  }
  detail::files::NewFile& add(const std::string& name) {
    check_plain(name);
    if (added.contains(name)) detail::fail((place / name).string(), "is added twice");
    return added.try_emplace(name, place / name, place / name).first->second;
  }
  void drop_what_is_done() {
    std::error_code ignored;
    std::erase_if(removed, [&](const std::string& name) {
      return std::filesystem::symlink_status(place / name, ignored).type() ==
             std::filesystem::file_type::not_found;
    });
    std::erase_if(added, [&](const auto& file) {
      return file.first != entry && detail::is_same_file(place / file.first, file.second.place());
    });
  }
  // Takes the old entry away, so that nobody reads files of two models.
  [[nodiscard]] std::error_code remove_old() const {
    for (const std::string& name : removed)
      if (const auto error = folder.remove(name)) return error;
    return folder.put_on_disk();
  }
  [[nodiscard]] std::error_code rename_all_but_entry() {
    for (auto& [name, file] : added)
      if (name != entry)
        if (const auto error = file.take_place()) return error;
    return folder.put_on_disk();
  }
  [[noreturn]] void fail(const std::string& what, const std::error_code& error) const {
    detail::fail(place.string(), what + ": " + error.message());
  }

  std::filesystem::path place;
  std::string entry;
  detail::files::Folder folder;
  std::map<std::string, detail::files::NewFile> added;
  std::set<std::string> removed;
};

FASTWEIGHTS_INLINE FolderUpdate::FolderUpdate(const std::filesystem::path& folder,
                                              const std::string& entry)
    : files_(std::make_shared<Files>(folder, entry)) {}

FASTWEIGHTS_INLINE FolderUpdate::Files& FolderUpdate::files() const {
  if (!files_) detail::fail("FolderUpdate", "is committed already, expected a new one");
  return *files_;
}

FASTWEIGHTS_INLINE void FolderUpdate::add(const std::string& name, const SafeTensorsWriter& file) {
  const std::string header = file.header();
  auto& to = files().add(name);
  for (const auto part : file.parts(header)) to.write(part);
  to.put_on_disk();
}

FASTWEIGHTS_INLINE void FolderUpdate::copy(const std::string& name,
                                           const std::filesystem::path& from) {
  const auto file = detail::open_file(from);
  auto& to = files().add(name);
  detail::visit_bytes(*file, from.string(), [&](const auto& piece) { to.write(piece); });
  to.put_on_disk();
}

FASTWEIGHTS_INLINE void FolderUpdate::remove(const std::string& name) {
  files().check_plain(name);
  files().removed.insert(name);
}

FASTWEIGHTS_INLINE void FolderUpdate::commit() {
  Files& all = files();
  if (!all.added.contains(all.entry))
    detail::fail(all.place.string(), "has no new " + all.entry + ", which was named as the entry");
  const char *unchanged = "cannot be written",
             *unfinished = "is not complete, and cannot be written";
  all.folder.lock();
  all.drop_what_is_done();
  const bool is_one_rename = all.removed.empty() && all.added.size() == 1;
  if (!is_one_rename) {
    if (const auto error = all.folder.remove(all.entry)) all.fail(unchanged, error);
    if (const auto error = all.remove_old()) all.fail(unfinished, error);
    if (const auto error = all.rename_all_but_entry()) all.fail(unfinished, error);
  }
  if (const auto error = all.added.at(all.entry).take_place())
    all.fail(is_one_rename ? unchanged : unfinished, error);
  if (const auto error = all.folder.put_on_disk())
    all.fail("is written, but may not be on disk", error);
  files_.reset();
}

}  // namespace fw::io

#endif
