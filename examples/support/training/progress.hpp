#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

/// A progress bar on a terminal; in other outputs a line every ten seconds.
class Progress {
 public:
  Progress(std::string title, long total)
      : title_(std::move(title)), total_(total), live_(isatty(fileno(stderr)) != 0) {}

  /// Shows that `done` of the total is done, and a note.
  void show(long done, const std::string& note) {
    const bool last = done >= total_;
    const auto now = Clock::now();
    if (!last && now - shown_ < std::chrono::milliseconds(live_ ? 100 : 10000)) return;
    shown_ = now;
    const int percent = static_cast<int>(100 * done / total_);
    const std::string bar(static_cast<std::size_t>(percent) / 5, '=');
    std::fprintf(stderr, "%s%-16s [%-20s] %3d %%  %4.0f s  %s%s", live_ ? "\r" : "", title_.c_str(),
                 bar.c_str(), percent, std::chrono::duration<double>(now - start_).count(),
                 note.c_str(), live_ && !last ? "  " : "\n");
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string title_;
  long total_;
  bool live_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};
