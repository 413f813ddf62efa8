// Replaces functions of the C library: they fail on request, and are the library's own otherwise.

#include "calls.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <string_view>

namespace {

std::string_view chosen;
std::string chosen_text;
int remaining = 0, fault = 0;

bool fails(std::string_view name) {
  if (remaining == 0 || name != chosen || --remaining > 0) return false;
  errno = fault;
  return true;
}

template <class F> F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace calls {

void fail(const std::string& name, int number, int error) {
  chosen_text = name;
  chosen = chosen_text;
  remaining = number;
  fault = error;
}

void fail_none() { remaining = 0; }

bool has_failed() { return remaining == 0; }

}  // namespace calls

// If a function of the library is called by another name, as open64, that name is replaced too.
#define FAILING(name, parameters, arguments)              \
  extern "C" int name parameters {                        \
    static auto* const own = next<int parameters>(#name); \
    return fails(#name) ? -1 : own arguments;             \
  }

FAILING(fsync, (int file), (file))

// "steal" stands for another process that removes the file just before it is locked.
extern "C" int flock(int file, int operation) {
  static auto* const own = next<int(int, int)>("flock");
  if (fails("steal")) {
    char path[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    if (::readlink(link.c_str(), path, sizeof path - 1) > 0) ::unlink(path);
  }
  return fails("flock") ? -1 : own(file, operation);
}

extern "C" DIR* fdopendir(int file) {
  static auto* const own = next<DIR*(int)>("fdopendir");
  return fails("fdopendir") ? nullptr : own(file);
}

extern "C" DIR* opendir(const char* path) {
  static auto* const own = next<DIR*(const char*)>("opendir");
  return fails("opendir") ? nullptr : own(path);
}
FAILING(fchmod, (int file, mode_t mode), (file, mode))
FAILING(fchown, (int file, uid_t user, gid_t group), (file, user, group))
FAILING(fstat, (int file, struct stat* status), (file, status))
FAILING(stat, (const char* path, struct stat* status), (path, status))
FAILING(lstat, (const char* path, struct stat* status), (path, status))
FAILING(rename, (const char* from, const char* to), (from, to))
FAILING(unlink, (const char* path), (path))

extern "C" ssize_t write(int file, const void* bytes, std::size_t size) {
  static auto* const own = next<ssize_t(int, const void*, std::size_t)>("write");
  if (fails("short write")) return own(file, bytes, 1);
  return fails("write") ? -1 : own(file, bytes, size);
}

extern "C" ssize_t pread(int file, void* bytes, std::size_t size, off_t at) {
  static auto* const own = next<ssize_t(int, void*, std::size_t, off_t)>("pread");
  if (fails("short pread")) return own(file, bytes, 1, at);
  return fails("pread") ? -1 : own(file, bytes, size, at);
}

extern "C" ssize_t readlink(const char* path, char* target, std::size_t size) {
  static auto* const own = next<ssize_t(const char*, char*, std::size_t)>("readlink");
  return fails("readlink") ? -1 : own(path, target, size);
}

extern "C" int open(const char* path, int flags, ...) {
  static auto* const own = next<int(const char*, int, ...)>("open");
  std::va_list arguments;
  va_start(arguments, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
  va_end(arguments);
  return fails("open") ? -1 : own(path, flags, mode);
}
