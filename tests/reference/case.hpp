#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fastweights/any_memory/views.hpp>
#include <fastweights/io/safetensors.hpp>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/largest_entry.hpp"
#include "support/relative_error.hpp"

/// \file
/// One file of reference vectors: its arrays, and the errors of our results. The axis orders are
/// those of the libraries that computed the vectors; all arrays are views of the file's own layout.

namespace reference {

using fw::Index;
using Matrix = Eigen::MatrixXd;

/// An array of any rank in the file's row-major order.
struct Array {
  fw::io::Shape shape;
  std::vector<double> values;

  Index axis(std::size_t i) const { return shape.at(i); }
  double* at(Index offset) { return values.data() + offset; }

  /// [B, T, H, D], or [B, T, H] for one number per step: batch b, head h as D×T.
  fw::SequenceView<double, fw::Dynamic> head(Index b, Index h) {
    const Index steps = axis(1), heads = axis(2), d = shape.size() > 3 ? axis(3) : 1;
    return {at((b * steps * heads + h) * d), d, steps, heads * d};
  }
  /// A head as an input of a memory.
  fw::AnyView<double> view(Index b, Index h) { return head(b, h); }
  /// [B, T, D]: batch b as D×T.
  fw::SequenceView<double, fw::Dynamic> batch(Index b) {
    return {at(b * axis(1) * axis(2)), axis(2), axis(1), axis(2)};
  }
  /// [T, B, D]: batch b as D×T.
  fw::SequenceView<double, fw::Dynamic> time_first(Index b) {
    return {at(b * axis(2)), axis(2), axis(0), axis(1) * axis(2)};
  }
  /// [B, H, K, V], rows = key axis: W of head h, V×K column-major in the same memory.
  Eigen::Map<Matrix> key_major(Index b, Index h) {
    const Index k = axis(2), v = axis(3);
    return {at((b * axis(1) + h) * k * v), v, k};
  }
  /// [..., rows, cols]: the i-th matrix.
  Eigen::Map<Eigen::Matrix<double, fw::Dynamic, fw::Dynamic, Eigen::RowMajor>> matrix(Index i = 0) {
    const Index rows = shape.size() > 1 ? shape[shape.size() - 2] : 1, cols = shape.back();
    return {at(i * rows * cols), rows, cols};
  }
  /// [..., D]: the vectors along the last axis.
  Eigen::Map<Matrix> columns() {
    return {values.data(), shape.back(), Index(values.size()) / shape.back()};
  }
  Eigen::Map<Eigen::VectorXd> flat() { return {values.data(), Index(values.size())}; }
};

/// A file, and the largest relative errors so far.
class Case {
 public:
  explicit Case(fw::io::SafeTensors file) : file_(std::move(file)) {
    for (const std::string& name : file_.names())
      if (name.starts_with("grad"))
        for (const double x : file_.values<double>(name))
          largest_gradient_ = std::max(largest_gradient_, std::abs(x));
  }

  bool has(const std::string& name) const { return file_.contains(name); }
  Array operator[](const std::string& name) const {
    return {file_.shape(name), file_.values<double>(name)};
  }
  /// An array of the same shape to be filled. All entries are NaN, or zero for accumulated
  /// gradients.
  Array like(const std::string& name,
             double fill = std::numeric_limits<double>::quiet_NaN()) const {
    Array array = (*this)[name];
    array.values.assign(array.values.size(), fill);
    return array;
  }
  std::string setting(const std::string& key) const { return file_.metadata().at(key); }

  std::vector<std::int64_t> integers(const std::string& name) const {
    return file_.values<std::int64_t>(name);
  }
  std::vector<std::string> names() const { return file_.names(); }

  /// Limits other than 1e-12 and 1e-10, for files with less accurate numbers.
  void allow(double forward, double gradient) {
    forward_limit_ = forward;
    gradient_limit_ = gradient;
  }
  /// True if all compared arrays are within the limits. False if no array was compared, or no
  /// gradient although the file has gradients.
  bool right() const {
    const auto names = file_.names();
    const bool none = std::ranges::none_of(names, [](auto& n) { return n.starts_with("grad_"); });
    return forward_ >= 0 && forward_ <= forward_limit_ &&
           (has_gradient() ? gradient_ <= gradient_limit_ : none);
  }

  /// Compares with the array of this name: max|a − b| / max|b|. A gradient that is 0 up to rounding
  /// is compared with the largest gradient of the file.
  void forward(const std::string& name, const Array& ours) { worst(forward_, name, ours, 0); }
  void gradient(const std::string& name, const Array& ours) {
    worst(gradient_, name, ours, largest_gradient_);
  }

  double forward_error() const { return forward_; }
  double gradient_error() const { return gradient_; }
  bool has_gradient() const { return gradient_ >= 0; }

 private:
  void worst(double& error, const std::string& name, const Array& ours, double largest_of_all) {
    const std::vector<double> theirs = file_.values<double>(name);
    const bool same_size = ours.values.size() == theirs.size();
    keep_worst(error, same_size ? relative_error(ours.values.data(), theirs, largest_of_all)
                                : std::numeric_limits<double>::infinity());
  }

  fw::io::SafeTensors file_;
  double largest_gradient_ = 0;
  double forward_ = -1, gradient_ = -1;
  double forward_limit_ = 1e-12, gradient_limit_ = 1e-10;
};

using Test = std::function<void(Case&)>;

/// The rules of each source file that are more than a memory of the table, by file stem.
std::map<std::string, Test> typed_memory_tests();
std::map<std::string, Test> rwkv_tests();
std::map<std::string, Test> mamba3_mimo_tests();
std::map<std::string, Test> stick_breaking_tests();
std::map<std::string, Test> cyclic_flow_tests();
std::map<std::string, Test> programmer_tests();
std::map<std::string, Test> feature_map_tests();
std::map<std::string, Test> layer_tests();
std::map<std::string, Test> infformer_tests();
std::map<std::string, Test> fast_weights_rnn_tests();
std::map<std::string, Test> hypernetwork_tests();
std::map<std::string, Test> synthetic_tests();
std::map<std::string, Test> recurrent_layer_tests();

}  // namespace reference
