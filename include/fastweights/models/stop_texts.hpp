#pragma once

#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Ends generated text before one of several texts.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Passes text on as it comes, up to the first stop text that is complete. A stop text may be split
/// over pieces: what may be the beginning of one is held back until it is known. What comes out
/// does not depend on how the text is cut into pieces. Of stop texts that end together the longest
/// counts. If pieces and stop texts are complete UTF-8 then so is what comes out.
class StopTexts {
 public:
  /// Throws std::invalid_argument for an empty stop text.
  explicit StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {
    for (const std::string& stop : stops_)
      if (stop.empty())
        fw::detail::throw_invalid({"StopTexts: a stop text is empty, expected a character"});
  }

  /// The text that is known to come before a stop text; none after one was found.
  std::string add(std::string_view piece) {
    if (found_) return {};
    held_ += piece;
    std::string known = held_.substr(0, beginning_of_stop());
    held_.erase(0, found_ ? held_.size() : known.size());
    return known;
  }
  /// The text that was held back, at the end. A new text begins afterwards.
  std::string finish() {
    found_ = false;
    return std::exchange(held_, {});
  }
  /// True after a stop text, until finish().
  bool found() const { return found_; }

 private:
  std::size_t beginning_of_stop() {
    std::size_t begin = held_.size(), end = std::string::npos;
    for (const std::string& stop : stops_) {
      const std::size_t at = held_.find(stop);
      if (at == std::string::npos) continue;
      if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
        begin = at;
        end = at + stop.size();
      }
    }
    found_ = end != std::string::npos;
    return found_ ? begin : held_.size() - unfinished();
  }

  // The longest end of the text that begins a stop text.
  std::size_t unfinished() const {
    std::size_t longest = 0;
    for (const std::string& stop : stops_)
      for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n)
        if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) longest = n;
    return longest;
  }

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace fw::models
