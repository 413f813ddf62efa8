#pragma once

#include <fastweights/models/config.hpp>

/// \file
/// The options of rotary positions. All architectures look them up here, each option in
/// `rope_parameters`, else in `rope_scaling`, else in config.json itself.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Reads the options. Its functions throw std::invalid_argument, which names the entry.
class RopeOptions {
 public:
  /// `c` must outlive it. Fails for another kind of positions than the plain one, for options that
  /// differ by the kind of a layer, and for two places that differ.
  explicit RopeOptions(const Config& c) : whole_(c), own_(c.part(place(c))) {
    for (const std::string& name : own_.names())
      if (own_.is_object(name)) own_.fail(name, "supported are the same options for all layers");
    own_.expect("type", {"default"});
    holder("rope_type").expect("rope_type", {"default"});
  }

  /// θ.
  double theta(double otherwise) const {
    const double theta = number("rope_theta", otherwise);
    if (!(theta >= 1)) fail("rope_theta", "expected at least 1");
    return theta;
  }
  /// True if θ is null.
  bool has_no_theta() const { return has_null("rope_theta"); }

  /// The part of a head that rotates.
  double part(double otherwise) const {
    const double part = number("partial_rotary_factor", otherwise);
    if (!(part >= 0 && part <= 1)) fail("partial_rotary_factor", "expected 0 to 1");
    return part;
  }
  /// The part for a model whose published code does not read it outside of rope_parameters and
  /// rope_scaling, and takes `otherwise`: fails for another one there.
  double nested_part(double otherwise) const {
    const double part = this->part(otherwise);
    if (part != otherwise && !own_.contains("partial_rotary_factor"))
      fail("partial_rotary_factor", "is read in rope_parameters only");
    return part;
  }
  /// θ where whole heads rotate; fails for a part.
  double theta_of_whole_heads(double otherwise) const {
    if (part(1) != 1) fail("partial_rotary_factor", "supported is 1");
    return theta(otherwise);
  }

 private:
  // The object in which an option is read. A null is an option too: it hides other places.
  const Config& holder(const char* name) const { return own_.contains(name) ? own_ : whole_; }
  double number(const char* name, double otherwise) const {
    if (has_null(name)) fail(name, "expected a number");
    return holder(name).number(name, otherwise);
  }
  bool has_null(const char* name) const { return holder(name).is_null(name); }
  [[noreturn]] void fail(const char* name, const std::string& expected) const {
    holder(name).fail(name, expected);
  }

  static const char* place(const Config& c) {
    const Config newer = c.part("rope_parameters"), older = c.part("rope_scaling");
    if (newer.names().empty()) return "rope_scaling";
    if (!older.names().empty() && older != newer)
      c.fail("rope_scaling", "expected the same as in rope_parameters, or one of them alone");
    return "rope_parameters";
  }

  const Config& whole_;
  Config own_;
};

}  // namespace fw::models
