#include <fastweights/any_memory/table.hpp>

#include "rule_run.hpp"

/// \file
/// Stick-breaking attention. The files have what is left of the stick too, which is 1 minus the
/// output for values of ones.

namespace reference {

namespace {

// The entries of an array, with one row more.
Matrix with_row(Array& array, Index b, Index h, const Eigen::RowVectorXd& row) {
  const auto head = array.head(b, h);
  Matrix result(head.rows() + 1, head.cols());
  result << head, row;
  return result;
}

void stick_breaking(Case& file, const std::string& name) {
  Array q = file["q"], k = file["k"], v = file["v"], up = file["up_o"], up_rem = file["up_rem"],
        o = file.like("o"), rem = file.like("rem"), dq = file.like("q"), dk = file.like("k", 0),
        dv = file.like("v", 0);
  const Index steps = q.axis(1), heads = q.axis(2);
  const Memory m = fw::make_memory<double>(
      name,
      {.key_size = q.axis(3), .value_size = v.axis(3) + 1, .more = {{"capacity", double(steps)}}});
  const Eigen::RowVectorXd ones = Eigen::RowVectorXd::Ones(steps);
  for (Index b = 0; b < q.axis(0); ++b)
    for (Index h = 0; h < heads; ++h) {
      const Index shared = h * k.axis(2) / heads;
      Matrix value = with_row(v, b, shared, ones), dy = with_row(up, b, h, -up_rem.head(b, h)),
             y = 0 * dy, dvalue = 0 * value, dquery = 0 * q.head(b, h);
      auto state = m.initial_state(), ds = m.zero_gradient();
      scan_and_backward(m, state, {k.view(b, shared), value}, {q.view(b, h)}, {y}, {dy}, ds,
                        {dk.view(b, shared), dvalue}, {dquery});
      o.head(b, h) = y.topRows(v.axis(3));
      rem.head(b, h) = ones - y.bottomRows(1);
      dq.head(b, h) = dquery;
      dv.head(b, shared) += dvalue.topRows(v.axis(3));
    }
  file.forward("o", o);
  file.forward("rem", rem);
  file.gradient("grad_q", dq);
  file.gradient("grad_k", dk);
  file.gradient("grad_v", dv);
}

}  // namespace

std::map<std::string, Test> stick_breaking_tests() {
  return {{"stickbreaking_attn",
           [](Case& file) { stick_breaking(file, "StrictStickBreakingAttention"); }},
          {"stickbreaking_attn_current",
           [](Case& file) { stick_breaking(file, "StickBreakingAttention"); }}};
}

}  // namespace reference
