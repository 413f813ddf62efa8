#include <fastweights/any_memory/table.hpp>

#include "rule_run.hpp"

/// \file
/// Mamba-3 with several inputs and outputs. Its layer makes the values and gates of all ranks from
/// one value and one gate, v_r = mimo_v_r ⊙ v, and one output of all, o = Σ mimo_o_r ⊙ y_r.

namespace reference {

namespace {

constexpr double circle = 6.283185307179586477;

// Columns of `rows` entries, at the i-th of them.
Eigen::Map<Matrix> columns(Array& array, Index rows, Index count, Index i) {
  return {array.at(i * rows * count), rows, count};
}

// x of every token times the factors of every rank, the ranks of a token side by side.
template <class X> Matrix spread(const X& x, const Matrix& factors) {
  const Index ranks = factors.cols();
  Matrix all(x.rows(), x.cols() * ranks);
  for (Index c = 0; c < all.cols(); ++c)
    all.col(c) = factors.col(c % ranks).cwiseProduct(x.col(c / ranks));
  return all;
}
// The reverse: Σ_r of the products of every token. It is also the gradient of x.
Matrix gathered(const Matrix& all, const Matrix& factors) {
  const Index ranks = factors.cols();
  Matrix sum = Matrix::Zero(all.rows(), all.cols() / ranks);
  for (Index c = 0; c < all.cols(); ++c)
    sum.col(c / ranks) += factors.col(c % ranks).cwiseProduct(all.col(c));
  return sum;
}
// The gradient of the factors, of both.
template <class X> Matrix factor_gradients(const X& x, const Matrix& all) {
  const Index ranks = all.cols() / x.cols();
  Matrix sum = Matrix::Zero(x.rows(), ranks);
  for (Index c = 0; c < all.cols(); ++c)
    sum.col(c % ranks) += x.col(c / ranks).cwiseProduct(all.col(c));
  return sum;
}

// The arrays of a file by name, or zeros of their sizes.
class Arrays {
 public:
  explicit Arrays(const Case& file, bool zero = false) : file_(file), zero_(zero) {}
  Array& operator[](const std::string& name) {
    return all_.try_emplace(name, zero_ ? file_.like(name, 0) : file_[name]).first->second;
  }
  const std::map<std::string, Array>& all() const { return all_; }

 private:
  const Case& file_;
  bool zero_;
  std::map<std::string, Array> all_;
};

class Mimo {
 public:
  explicit Mimo(Case& file) : file_(file), in_(file), out_(file, true) {
    in_["adt"].flat() = in_["adt"].flat().array().exp();
    in_["trap"].flat() = (1 + (-in_["trap"].flat().array()).exp()).inverse();
  }
  void run() {
    for (const std::string kind : {"grad_", "gradout_"}) {
      Arrays d(file_, true);
      for (Index b = 0; b < in_["v"].axis(0); ++b)
        for (Index h = 0; h < heads_; ++h) run(b, h, kind == "grad_", d);
      d["adt"].flat().array() *= in_["adt"].flat().array();
      const auto share = in_["trap"].flat().array();
      d["trap"].flat().array() *= share * (1 - share);
      for (const auto& [name, array] : d.all()) file_.gradient(kind + name, array);
    }
    for (const auto& [name, array] : out_.all()) file_.forward(name, array);
  }

 private:
  void run(Index b, Index h, bool with_state, Arrays& d) {
    const Memory m = fw::make_memory<double>(
        "Mamba3Mimo", {.key_size = dk_,
                       .value_size = dv_,
                       .more = {{"ranks", double(ranks_)}, {"angles", double(angles_)}}});
    const auto of_ranks = [&](Array& array, Index i) {
      return columns(array, array.shape.back(), ranks_, i);
    };
    auto state = m.initial_state(), ds = m.zero_gradient();
    const Index i = b * heads_ + h;
    entries(state, "W") = in_["initial_state"].matrix(i);
    entries(state, "angle") = columns(in_["initial_angle"], angles_, 1, i);
    entries(state, "key") = of_ranks(in_["initial_k"], i);
    entries(state, "value") = of_ranks(in_["initial_v"], i);
    entries(state, "slow.key_bias") = of_ranks(in_["k_bias"], h);
    entries(state, "slow.query_bias") = of_ranks(in_["q_bias"], h);
    entries(state, "slow.skip")(0) = in_["D"].flat()[h];
    if (with_state) {
      entries(ds, "W") = in_["up_final_state"].matrix(i);
      entries(ds, "angle") = columns(in_["up_final_angle"], angles_, 1, i);
      entries(ds, "key") = of_ranks(in_["up_final_k"], i);
      entries(ds, "value") = of_ranks(in_["up_final_v"], i);
    }
    const Matrix mimo_v = of_ranks(in_["mimo_v"], h), mimo_z = of_ranks(in_["mimo_z"], h),
                 mimo_o = of_ranks(in_["mimo_o"], h);
    Matrix value = spread(in_["v"].head(b, h), mimo_v), gate = spread(in_["z"].head(b, h), mimo_z),
           output = 0 * value, doutput = spread(in_["up_o"].head(b, h), mimo_o), dvalue = 0 * value,
           dgate = 0 * value;
    scan_and_backward(m, state,
                      {keys(in_["k"], b, h), value, row(in_["adt"], i), row(in_["dt"], i),
                       row(in_["trap"], i), in_["angles"].view(b, h)},
                      {keys(in_["q"], b, h), value, gate}, {output}, {doutput}, ds,
                      {keys(d["k"], b, h), dvalue, row(d["adt"], i), row(d["dt"], i),
                       row(d["trap"], i), d["angles"].view(b, h)},
                      {keys(d["q"], b, h), dvalue, dgate});
    d["v"].head(b, h) += gathered(dvalue, mimo_v);
    d["z"].head(b, h) += gathered(dgate, mimo_z);
    of_ranks(d["mimo_v"], h) += factor_gradients(in_["v"].head(b, h), dvalue);
    of_ranks(d["mimo_z"], h) += factor_gradients(in_["z"].head(b, h), dgate);
    of_ranks(d["mimo_o"], h) += factor_gradients(in_["up_o"].head(b, h), output);
    d["initial_state"].matrix(i) = entries(ds, "W");
    columns(d["initial_angle"], angles_, 1, i) = entries(ds, "angle");
    of_ranks(d["initial_k"], i) = entries(ds, "key");
    of_ranks(d["initial_v"], i) = entries(ds, "value");
    of_ranks(d["k_bias"], h) += entries(ds, "slow.key_bias");
    of_ranks(d["q_bias"], h) += entries(ds, "slow.query_bias");
    d["D"].flat()[h] += entries(ds, "slow.skip")(0);

    out_["o"].head(b, h) = gathered(output, mimo_o);
    out_["final_state"].matrix(i) = entries(state, "W");
    of_ranks(out_["final_k"], i) = entries(state, "key");
    of_ranks(out_["final_v"], i) = entries(state, "value");
    // The file's angles have all their turns.
    const auto theirs = columns(in_["final_angle"], angles_, 1, i);
    const Matrix ours = entries(state, "angle");
    columns(out_["final_angle"], angles_, 1, i) =
        ours.array() + circle * ((theirs - ours).array() / circle).round();
  }
  // [B, T, R, G, N]: the keys of a head's group, the ranks of a token side by side.
  fw::AnyView<double> keys(Array& array, Index b, Index h) const {
    const Index groups = array.axis(3), count = array.axis(1) * ranks_;
    return {array.at((b * count * groups + h * groups / heads_) * dk_), dk_, count, groups * dk_};
  }
  // [B, H, T]
  static fw::AnyView<double> row(Array& array, Index i) {
    return {array.at(i * array.axis(2)), 1, array.axis(2), 1};
  }

  Case& file_;
  Arrays in_, out_;
  Index heads_ = in_["v"].axis(2), dv_ = in_["v"].axis(3), ranks_ = in_["k"].axis(2),
        dk_ = in_["k"].axis(4), angles_ = in_["angles"].axis(3);
};

}  // namespace

std::map<std::string, Test> mamba3_mimo_tests() {
  return {{"mamba3_mimo", [](Case& file) { Mimo(file).run(); }}};
}

}  // namespace reference
