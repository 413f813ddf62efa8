/// Files on POSIX systems.
///
/// A saved file is written beside its target under a temporary name, put on disk, and renamed. The
/// writer holds a lock (flock) on the temporary file. The system releases the lock when the process
/// ends in any way, so a temporary file without a lock was left by a process that is dead.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "fastweights/io/byte_source.hpp"
#include "fastweights/io/safetensors_format.hpp"

namespace fw::inline FASTWEIGHTS_ABI::io::detail::posix {

using std::filesystem::path;

inline std::error_code last_error() { return {errno, std::generic_category()}; }

/// Calls f again while a signal interrupts it.
template <class F> auto uninterrupted(const F& f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const path& name, int flags, mode_t mode = 0)
      : number_(uninterrupted([&] { return ::open(name.c_str(), flags | O_CLOEXEC, mode); })) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }

  /// True if the file has no name any more.
  bool is_removed() const {
    struct stat status {};
    return ::fstat(number_, &status) == 0 && status.st_nlink == 0;
  }

 private:
  int number_ = -1;
};

class FileSource final : public ByteSource {
 public:
  FileSource(Descriptor file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  // One call may read less than requested: Linux reads at most 2 GiB at once.
  std::size_t read(std::uint64_t at, std::span<std::byte> to,
                   std::error_code& error) const override {
    std::size_t count = 0;
    while (count < to.size()) {
      const ssize_t more = uninterrupted([&] {
        return ::pread(file_.number(), to.data() + count, to.size() - count,
                       static_cast<off_t>(at + count));
      });
      if (more < 0) error = last_error();
      if (more <= 0) break;
      count += static_cast<std::size_t>(more);
    }
    return count;
  }

 private:
  Descriptor file_;
  std::uint64_t size_;
};

inline std::shared_ptr<const ByteSource> open(const path& name) {
  Descriptor file(name, O_RDONLY | O_NONBLOCK);  // does not wait for the writer of a FIFO
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0)
    fail(name.string(), "cannot be opened: " + last_error().message());
  if (!S_ISREG(status.st_mode)) fail(name.string(), "cannot be opened: not a regular file");
  return std::make_shared<FileSource>(std::move(file), static_cast<std::uint64_t>(status.st_size));
}

[[noreturn]] inline void fail_to_write(const path& target, const std::string& why) {
  fail(target.string(), "cannot be written: " + why);
}

/// The end of a chain of symbolic links. It need not exist.
inline path without_links(path target) {
  constexpr int most_links = 40;  // as in Linux
  for (int i = 0; i <= most_links; ++i) {
    std::error_code error;
    const std::filesystem::file_type type = symlink_status(target, error).type();
    if (type == std::filesystem::file_type::none) fail_to_write(target, error.message());
    if (type != std::filesystem::file_type::symlink) return target;
    const path next = read_symlink(target, error);
    if (error) fail_to_write(target, error.message());
    target = target.parent_path() / next;
  }
  fail_to_write(target, "too many symbolic links");
}

inline path folder_of(const path& target) {
  return target.has_parent_path() ? target.parent_path() : path(".");
}

inline constexpr std::string_view temporary_prefix = ".fastweights-", temporary_suffix = ".tmp";
inline constexpr std::size_t temporary_digits = 16;

// Process and number make the name rare. Two files cannot get the same one: see O_EXCL below.
inline path temporary_name() {
  static std::atomic<unsigned> files = 0;
  std::array<char, temporary_digits + 1> digits;
  std::snprintf(digits.data(), digits.size(), "%08x%08x", static_cast<unsigned>(::getpid()),
                files.fetch_add(1));
  std::string name(temporary_prefix);
  return name.append(digits.data()).append(temporary_suffix);
}

inline bool is_temporary_name(std::string_view name) {
  return name.size() == temporary_prefix.size() + temporary_digits + temporary_suffix.size() &&
         name.starts_with(temporary_prefix) && name.ends_with(temporary_suffix);
}

/// Removes the temporary files of dead processes.
inline void remove_abandoned(const path& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (!is_temporary_name(entry->path().filename().native())) continue;
    const Descriptor file(entry->path(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (file && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0 && !file.is_removed())
      ::unlink(entry->path().c_str());
  }
}

/// A new file with a temporary name in a folder. It is removed at the end unless it has been
/// renamed.
class Temporary {
 public:
  Temporary(const path& folder, mode_t mode, const path& target) {
    do {
      path_ = folder / temporary_name();
      file_ = Descriptor(path_, O_WRONLY | O_CREAT | O_EXCL, mode);
      if (!file_ && errno != EEXIST) fail_to_write(target, last_error().message());
    } while (!file_ || !lock());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlink(path_.c_str());
  }

  const path& place() const { return path_; }
  /// The mode and, if the system permits it, the owner of the file that will be replaced.
  bool copy_attributes(const struct stat& old) {
    struct stat own {};
    if (::fstat(file_.number(), &own) != 0) return false;
    if (own.st_uid != old.st_uid || own.st_gid != old.st_gid) {
      [[maybe_unused]] const int may_fail = ::fchown(file_.number(), old.st_uid, old.st_gid);
    }
    return ::fchmod(file_.number(), old.st_mode & 07777) == 0;
  }

  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count =
          uninterrupted([&] { return ::write(file_.number(), bytes.data(), bytes.size()); });
      if (count < 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }

  bool put_on_disk() const { return synchronise(file_); }

  bool rename_to(const path& target) {
    renamed_ = ::rename(path_.c_str(), target.c_str()) == 0;
    return renamed_;
  }

  static bool synchronise(const Descriptor& file) {
#ifdef F_FULLFSYNC
    if (::fcntl(file.number(), F_FULLFSYNC) == 0) return true;
#endif
    return uninterrupted([&] { return ::fsync(file.number()); }) == 0;
  }

 private:
  // Another process may have taken the lock first, and removed the file as abandoned. A file system
  // may have no locks: its temporary files are never removed as abandoned.
  bool lock() {
    uninterrupted([&] { return ::flock(file_.number(), LOCK_EX); });
    return !file_.is_removed();
  }

  path path_;
  Descriptor file_;
  bool renamed_ = false;
};

/// A folder whose files change.
class Folder {
 public:
  /// Errors call it, or the file in it, `name`.
  Folder(const path& folder, const path& name)
      : path_(folder), descriptor_(folder, O_RDONLY | O_DIRECTORY) {
    if (!descriptor_) fail_to_write(name, last_error().message());
    remove_abandoned(folder);
  }

  /// Waits for other writers that hold it. Some file systems have no locks.
  void lock() const {
    uninterrupted([&] { return ::flock(descriptor_.number(), LOCK_EX); });
  }
  /// Removes a file or a link if it is there.
  std::error_code remove(const std::string& file) const {
    const bool is_gone = ::unlink((path_ / file).c_str()) == 0 || errno == ENOENT;
    return is_gone ? std::error_code() : last_error();
  }
  /// Some file systems cannot synchronise a folder, and say EINVAL.
  std::error_code put_on_disk() const {
    const bool is_done = Temporary::synchronise(descriptor_) || errno == EINVAL;
    return is_done ? std::error_code() : last_error();
  }

 private:
  path path_;
  Descriptor descriptor_;
};

/// A file under a temporary name beside its target, whose place it takes when it is complete. A
/// symbolic link at the target is replaced, not followed.
class NewFile {
 public:
  /// Errors call it `name`.
  NewFile(const path& target, const path& name)
      : target_(target),
        name_(name),
        old_(status_of_old()),
        // At no time readable by more users than the old file.
        temporary_(folder_of(target), old_ ? 0600 : 0666, name) {
    if (old_ && !temporary_.copy_attributes(*old_)) fail_to_write(name_, last_error().message());
  }

  void write(std::span<const std::byte> bytes) {
    if (!temporary_.write(bytes)) fail_to_write(name_, last_error().message());
  }
  void put_on_disk() const {
    if (!temporary_.put_on_disk()) fail_to_write(name_, last_error().message());
  }
  /// The path of the file until then.
  const path& place() const { return temporary_.place(); }
  std::error_code take_place() {
    return temporary_.rename_to(target_) ? std::error_code() : last_error();
  }

 private:
  // Nothing if there is no file, or a link.
  std::optional<struct stat> status_of_old() const {
    struct stat old {};
    if (::lstat(target_.c_str(), &old) != 0) {
      if (errno != ENOENT) fail_to_write(name_, last_error().message());
      return std::nullopt;
    }
    if (S_ISLNK(old.st_mode)) return std::nullopt;
    if (!S_ISREG(old.st_mode)) fail_to_write(name_, "not a regular file");
    return old;
  }

  path target_, name_;
  std::optional<struct stat> old_;
  Temporary temporary_;
};

inline void replace(const path& name, std::span<const std::span<const std::byte>> parts) {
  const path target = without_links(name);
  const Folder folder(folder_of(target), name);
  NewFile file(target, name);
  for (const auto part : parts) file.write(part);
  file.put_on_disk();
  if (const std::error_code error = file.take_place()) fail_to_write(name, error.message());
  if (const std::error_code error = folder.put_on_disk())
    fail(name.string(), "is written, but may not be on disk: " + error.message());
}

}  // namespace fw::io::detail::posix
